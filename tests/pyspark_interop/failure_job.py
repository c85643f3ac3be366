"""A write in an application of its own, to be killed, raced or run beside others.

Run as `python failure_job.py SETTINGS`, a JSON object: `path`, `mode`, `options` of the write, `master`, `conf`,
`first` (the first of the numbers that it writes, see `failures.py`), and how to pace it: `sleep`, milliseconds for
each row; `race`, a file for which the first attempt at the first row waits, and which the second one makes; `exhaust`,
a file that the first attempt at a row in the midst of a task makes, and then takes more memory than there is; `start`,
a folder in which as many jobs as `jobs` must be ready. Prints the ids of the application and of the driver's process,
and at the end each attempt of a task, by partition.
"""

import json
import os
import sys
import time
from pathlib import Path
from typing import Any

from pyspark import TaskContext
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.functions import udf

import quick_jvm
import safetensors_spark as sts
from failures import PARTITIONS, ROWS
from spark_io import write


def start(settings: dict[str, Any]) -> SparkSession:
    os.environ["PYSPARK_PYTHON"] = sys.executable
    builder = sts.configure(SparkSession.builder).master(settings["master"])
    fixed = {"driver.memory": "512m", "executor.memory": "512m", "ui.enabled": "false", "driver.host": "127.0.0.1"}
    conf = {f"spark.{name}": value for name, value in fixed.items()} | quick_jvm.CONF | settings.get("conf", {})
    return builder.config(map=conf).getOrCreate()


def numbers(spark: SparkSession, settings: dict[str, Any]) -> DataFrame:
    rows = spark.range(settings["first"], settings["first"] + ROWS, 1, PARTITIONS)
    if "sleep" in settings:
        slept = f"coalesce(length(java_method('java.lang.Thread', 'sleep', {settings['sleep']}L)), 0)"
        return rows.selectExpr(f"array(cast(id as float), cast(0.5 + 0 * {slept} as float)) as x")
    if "exhaust" in settings:
        row, file = settings["first"] + ROWS // PARTITIONS // 2, Path(settings["exhaust"])
        bytes_of = udf(lambda number: bytes_once(number == row, file), "int").asNondeterministic()
        taken = rows.select("id", bytes_of("id").alias("bytes"))
        return taken.selectExpr("array(cast(id as float), cast(0.5 + 0 * length(repeat('x', bytes)) as float)) as x")
    if "race" in settings:
        meet = udf(lambda number: race(number, settings["first"], Path(settings["race"])), "long").asNondeterministic()
        rows = rows.select(meet("id").alias("id"))
    return rows.selectExpr("array(cast(id as float), 0.5F) as x")


def race(number: int, first: int, file: Path) -> int:
    """Holds the first attempt until the second one is as far."""
    context = TaskContext.get()
    if number == first and context is not None:
        if context.attemptNumber() > 0:
            file.touch()
        await_that(file.exists)
    return number


def bytes_once(is_deadly: bool, file: Path) -> int:
    """How many bytes a row takes: more than the executor has, at the first attempt."""
    if is_deadly:
        try:
            file.touch(exist_ok=False)
            return 2_000_000_000
        except FileExistsError:
            pass
    return 1


def await_that(condition: Any) -> None:
    deadline = time.monotonic() + 120
    while not condition():
        if time.monotonic() > deadline:
            raise TimeoutError("nothing happened for two minutes")
        time.sleep(0.01)


def meet_others(folder: Path, jobs: int) -> None:
    (folder / str(os.getpid())).touch()
    await_that(lambda: len(list(folder.iterdir())) == jobs)


def attempts(spark: SparkSession) -> dict[int, list[str]]:
    """What became of each attempt at each partition, in the stages of this application."""
    context = spark.sparkContext
    context._jsc.sc().listenerBus().waitUntilEmpty()
    store = context._jsc.sc().statusStore()
    tracker = context.statusTracker()
    found: dict[int, list[str]] = {}
    for job in tracker.getJobIdsForGroup("write"):
        for stage in getattr(tracker.getJobInfo(job), "stageIds", ()):
            listed = store.taskList(stage, 0, 1000)
            for task in (listed.apply(i) for i in range(listed.size())):
                found.setdefault(task.index(), []).append(task.status())
    return found


def run(settings: dict[str, Any]) -> None:
    spark = start(settings)
    process = spark._jvm.java.lang.ProcessHandle.current().pid()  # type: ignore[union-attr]
    print(json.dumps({"application": spark.sparkContext.applicationId, "driver": process}), flush=True)
    try:
        spark.sparkContext.setJobGroup("write", "the write")
        frame = numbers(spark, settings)
        if "start" in settings:
            meet_others(Path(settings["start"]), settings["jobs"])
        write(frame, Path(settings["path"]), settings["mode"], **settings["options"])
        print(json.dumps(attempts(spark)), flush=True)
    finally:
        spark.stop()


if __name__ == "__main__":
    run(json.loads(sys.argv[1]))
