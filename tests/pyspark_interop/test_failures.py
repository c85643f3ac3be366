"""Writers that die or race: readers see the old dataset or the new one, exactly, and a second try succeeds."""

import json
import os
import signal
import uuid
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from failures import Job, append, leftovers, seen, wait_for, written
from spark_io import Dataset, assert_says, error_of, read


def test_an_executor_killed_in_the_midst_of_a_write_costs_no_row(
    spark: SparkSession, path: Path, tmp_path: Path
) -> None:
    old = append(spark, path, 0)
    with Job(path, tmp_path / "log", master="local-cluster[2,1,512]", sleep=300) as job:
        job.await_shards()
        os.kill(job.executors()[0], signal.SIGKILL)
        attempts = job.finish()
    assert any("FAILED" in states for states in attempts.values()), attempts
    assert seen(spark, path) == old + written(100)
    assert leftovers(path) == []


@pytest.mark.parametrize("mode", ["append", "overwrite"])
def test_after_the_driver_was_killed_in_the_midst_of_a_write_the_old_dataset_stands(
    spark: SparkSession, path: Path, tmp_path: Path, mode: str
) -> None:
    old = append(spark, path, 0)
    with Job(path, tmp_path / "log", master="local[2]", mode=mode, sleep=300) as job:
        job.await_shards()
        os.kill(job.ids["driver"], signal.SIGKILL)
        job.process.wait(60)
    left = leftovers(path)
    assert left
    assert {Path(name).parts[0] for name in left} == {"_temporary"}
    assert seen(spark, path) == old
    new = append(spark, path, 200, mode)
    assert seen(spark, path) == (old + new if mode == "append" else new)
    assert leftovers(path) == left


def test_a_first_write_that_is_killed_shows_no_row_even_if_algorithm_2_is_set(
    spark: SparkSession, path: Path, tmp_path: Path
) -> None:
    conf = {"spark.hadoop.mapreduce.fileoutputcommitter.algorithm.version": "2"}
    with Job(path, tmp_path / "log", master="local[1]", conf=conf, sleep=100) as job:
        # A task has committed, wherever its files are.
        wait_for(lambda: [*path.glob("_temporary/*/task_*"), *path.glob("*.safetensors")])
        os.kill(job.ids["driver"], signal.SIGKILL)
        job.process.wait(60)
    assert_says(error_of(lambda: read(spark, path)), "holds no safetensors files")
    assert append(spark, path, 200) == seen(spark, path)


def test_a_write_that_waits_for_a_killed_commit_says_so_and_takes_its_lock(
    spark: SparkSession, path: Path, tmp_path: Path
) -> None:
    old = append(spark, path, 0)
    lock = path / "_commit.lock"
    # The commit stops where it opens this record.
    stop = path / "_pending" / str(uuid.uuid4())
    stop.parent.mkdir()
    os.mkfifo(stop)
    with Job(path, tmp_path / "killed", master="local[1]") as job:
        killed = job.ids
        wait_for(lambda: lock.exists() and lock.read_text().endswith("}"))
        os.kill(killed["driver"], signal.SIGKILL)
        job.process.wait(60)
    stop.unlink()
    stop.parent.rmdir()
    held = json.loads(lock.read_text())
    assert (held["application"], held["process"]) == (killed["application"], killed["driver"])
    lock.write_text(json.dumps(held | {"stale_after_ms": 5000}))
    with Job(path, tmp_path / "log", master="local[1]", first=200) as job:
        job.finish()
    lines = [line for line in job.log.read_text().splitlines() if str(lock) in line]
    assert len(lines) == 2, lines
    for line, words in zip(lines, ["after 5 s its lock is removed", "so its holder is dead"], strict=True):
        assert_says(line, words, f"{killed['application']}, process {killed['driver']} on {held['host']}, since 20")
    assert seen(spark, path) == old + written(200)
    assert {Path(name).parts[0] for name in leftovers(path)} == {"_temporary"}


def test_two_attempts_of_a_task_that_commit_at_once_write_its_rows_once(
    spark: SparkSession, path: Path, tmp_path: Path, cluster: str
) -> None:
    speculation = {"": "true", ".interval": "50ms", ".multiplier": "1.1", ".quantile": "0.5", ".minTaskRuntime": "50ms"}
    conf = {f"spark.speculation{name}": value for name, value in speculation.items()}
    # No task starts before both executors are there.
    conf |= {"spark.scheduler.minRegisteredResourcesRatio": "1.0"}
    old = append(spark, path, 0)
    with Job(path, tmp_path / "log", master=cluster, conf=conf, race=str(tmp_path / "both")) as job:
        attempts = job.finish()
    assert len(attempts["0"]) == 2, attempts
    assert seen(spark, path) == old + written(100)
    assert all(shard.exists() for shard in Dataset(path).shards)
    assert leftovers(path) == []


@pytest.mark.parametrize("existing", [True, False])
def test_four_threads_that_append_at_once_are_all_counted(spark: SparkSession, path: Path, existing: bool) -> None:
    expected = [append(spark, path, 0)] if existing else []
    with ThreadPoolExecutor(4) as threads:
        expected += threads.map(lambda first: append(spark, path, first), [100, 200, 300, 400])
    assert sorted(seen(spark, path)) == [number for numbers in expected for number in numbers]
    assert leftovers(path) == []


def test_two_threads_and_two_processes_that_append_at_once_are_all_counted(
    spark: SparkSession, path: Path, tmp_path: Path
) -> None:
    expected = append(spark, path, 0)
    start = tmp_path / "start"
    start.mkdir()
    with ExitStack() as stack, ThreadPoolExecutor(2) as threads:
        jobs = [
            stack.enter_context(
                Job(path, tmp_path / f"log{first}", master="local[1]", first=first, start=str(start), jobs=2)
            )
            for first in (100, 200)
        ]
        # They continue when both have come.
        wait_for(lambda: len(list(start.iterdir())) == 2, 300)
        mine = list(threads.map(lambda first: append(spark, path, first), [300, 400]))
        for job in jobs:
            job.finish()
    assert sorted(seen(spark, path)) == [*expected, *written(100), *written(200), *mine[0], *mine[1]]
    assert leftovers(path) == []
