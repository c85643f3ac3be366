"""Jobs that write in processes of their own, and what readers then find."""

import json
import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from pyspark.sql import SparkSession

import quick_jvm
from spark_io import Dataset, files, read, write

JOB = Path(__file__).with_name("failure_job.py")

# A job writes this many numbers, each a row `[number, 0.5]`, from `first` on.
ROWS = 24
PARTITIONS = 4
OPTIONS: dict[str, Any] = {"batch_size": 2}


def append(spark: SparkSession, path: Path, first: int, mode: str = "append") -> list[int]:
    """Writes a job's rows from this process, and gives their numbers."""
    rows = spark.range(first, first + ROWS, 1, PARTITIONS)
    write(rows.selectExpr("array(cast(id as float), 0.5F) as x"), path, mode, **OPTIONS)
    return written(first)


def written(first: int) -> list[int]:
    return list(range(first, first + ROWS))


def seen(spark: SparkSession, path: Path) -> list[int]:
    """The numbers that a reader sees, in the dataset's order."""
    rows = [np.frombuffer(row["x"]["data"], "<f4").reshape(-1, 2) for row in read(spark, path).collect()]
    samples = np.concatenate(rows)
    assert samples[:, 1].tolist() == [0.5] * len(samples)
    return [int(number) for number in samples[:, 0]]


def leftovers(path: Path) -> list[str]:
    """The files that are neither the manifest nor named by it."""
    dataset = Dataset(path)
    named = {shard.name for shard in dataset.shards} | {part["file"] for part in dataset.manifest["index_parts"]}
    return [name for name in files(path) if name not in named | {"dataset_manifest.json"}]


class Job:
    """A job that runs; its log is what Spark says."""

    def __init__(self, path: Path, log: Path, env: Mapping[str, str] | None = None, **settings: Any) -> None:
        self.path = path
        self.log = log
        self._env = {**os.environ, **(env or {})}
        self._settings = {"path": str(path), "mode": "append", "options": OPTIONS, "first": 100, **settings}

    def __enter__(self) -> "Job":
        with self.log.open("w") as log:
            command = [sys.executable, str(JOB), json.dumps(self._settings)]
            self.process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=log, text=True, env=self._env)
        return self

    def __exit__(self, *error: object) -> None:
        self.process.kill()
        self.process.communicate()

    def _line(self) -> str:
        assert self.process.stdout is not None
        line = self.process.stdout.readline()
        assert line, self.log.read_text()
        return line

    @cached_property
    def ids(self) -> dict[str, Any]:
        """Of the `application`, and of the `driver`'s process."""
        ids: dict[str, Any] = json.loads(self._line())
        return ids

    def finish(self) -> dict[str, list[str]]:
        """Waits for the end of the write; gives the attempts by partition."""
        assert self.ids
        attempts: dict[str, list[str]] = json.loads(self._line())
        assert self.process.wait(120) == 0
        return attempts

    def await_shards(self) -> None:
        """Waits until tasks are in the midst of writing."""

        def found() -> bool:
            assert self.process.poll() is None, self.log.read_text()
            return any(self.path.glob("_temporary/*/_temporary/*/*.safetensors"))

        wait_for(found)

    def executors(self) -> list[int]:
        """The processes of the application's executors."""
        application = self.ids["application"]
        listed = subprocess.run(["ps", "-axww", "-o", "pid=,args="], capture_output=True, text=True, check=True)
        lines = [line.split(None, 1) for line in listed.stdout.splitlines()]
        return [
            int(pid)
            for pid, command in lines
            if "CoarseGrainedExecutorBackend" in command and f"--app-id {application}" in command
        ]


def wait_for(condition: Callable[[], object], seconds: float = 120) -> None:
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, "it did not come in time"
        time.sleep(0.02)


@contextmanager
def daemon(spark_class: Path, log: Path, *command: str) -> Iterator[None]:
    """A process of Spark's own, such as a worker, as long as the block runs."""
    with log.open("w") as output:
        env = {**os.environ, "SPARK_DAEMON_JAVA_OPTS": quick_jvm.OPTIONS}
        process = subprocess.Popen([str(spark_class), *command], stdout=output, stderr=output, cwd=log.parent, env=env)
    try:
        yield
    finally:
        process.terminate()
        process.wait(60)
