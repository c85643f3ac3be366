"""The examples of the documents run, in one process for each page, and print what the page says they print."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from sbt import ROOT

PAGES = ["docs/python.md"]

# The command that was installed beside this Python, and a small heap.
ENVIRONMENT = {
    **os.environ,
    "PATH": os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]]),
    "PYSPARK_PYTHON": sys.executable,
    "MLFLOW_DISABLE_TELEMETRY": "true",
    "PYSPARK_SUBMIT_ARGS": "--driver-memory 1g --conf spark.ui.enabled=false pyspark-shell",
}


def script(page: Path) -> str:
    """All examples in one Python script; those for the shell are run by it where they stand."""
    blocks = re.findall(r"^```(python|bash)\n(.*?)^```$", page.read_text(), re.DOTALL | re.MULTILINE)
    shell = "import subprocess\nsubprocess.run(['bash', '-ec', {!r}], check=True)\n".format
    return "\n".join(shell(code) if language == "bash" else code for language, code in blocks)


@pytest.mark.parametrize("page", PAGES)
def test_examples_run(tmp_path: Path, page: str) -> None:
    code = script(ROOT / page)
    assert code
    done = subprocess.run([sys.executable, "-c", code], cwd=tmp_path, env=ENVIRONMENT, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
