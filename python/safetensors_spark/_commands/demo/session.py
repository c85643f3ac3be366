"""A small local Spark session that keeps its log out of the way."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from safetensors_spark._commands.demo.report import Clock
from safetensors_spark._errors import SafetensorsSparkError
from safetensors_spark._spark.session import configure

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_SETTINGS = {
    "spark.driver.memory": "1g",
    "spark.driver.host": "127.0.0.1",
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.sql.shuffle.partitions": "2",
}


@contextmanager
def quiet(log: Path, clock: Clock) -> Iterator[SparkSession]:
    """A session on two cores of this machine, whose JVM writes to this log and not to the terminal."""
    from pyspark.errors import PySparkException
    from pyspark.sql import SparkSession

    builder = SparkSession.builder.master("local[2]").appName("safetensors-spark demo")
    for key, value in _SETTINGS.items():
        builder = builder.config(key, value)
    try:
        with clock.step("start Spark"), _stderr_to(log):
            spark = configure(builder).getOrCreate()
        try:
            yield spark
        finally:
            spark.stop()
    except PySparkException as error:
        raise SafetensorsSparkError(
            f"{error}\nSpark's log is {log}. `safetensors-spark doctor` says whether Spark can be used here."
        ) from error


@contextmanager
def _stderr_to(log: Path) -> Iterator[None]:
    """Standard error goes to a file: for a process started meanwhile for good, for this one until the end."""
    sys.stderr.flush()
    terminal = os.dup(2)
    try:
        with log.open("wb") as file:
            os.dup2(file.fileno(), 2)
        yield
    finally:
        sys.stderr.flush()
        os.dup2(terminal, 2)
        os.close(terminal)
