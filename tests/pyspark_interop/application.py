"""A Spark application in a process of its own: how a test starts it, and what the process itself begins with."""

import json
import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from pyspark.sql import SparkSession

import safetensors_spark as sts


def answer_of(job: str, settings: dict[str, Any], within: Sequence[str] = ()) -> Any:
    """The JSON that the job beside this file prints last; it runs within the command `within`, if there is one."""
    command = [*within, sys.executable, str(Path(__file__).with_name(job)), json.dumps(settings)]
    run = subprocess.run(command, capture_output=True, text=True, check=False)
    assert run.returncode == 0, run.stderr
    return json.loads(run.stdout.splitlines()[-1])


def start(conf: dict[str, Any]) -> SparkSession:
    os.environ["PYSPARK_PYTHON"] = sys.executable
    return sts.configure(SparkSession.builder).config("spark.ui.enabled", "false").config(map=conf).getOrCreate()
