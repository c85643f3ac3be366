"""Executors that come and go while an application writes: the dataset has each row once."""

import os
import signal
import time
from pathlib import Path

from pyspark.sql import SparkSession

from application import answer_of
from failures import OPTIONS, PARTITIONS, ROWS, Job, append, leftovers, seen, wait_for, written


def test_an_executor_killed_while_it_commits_a_task_costs_no_row(
    spark: SparkSession, path: Path, tmp_path: Path
) -> None:
    old = append(spark, path, 0)
    with Job(path, tmp_path / "log", master="local-cluster[2,1,512]", sleep=200) as job:
        job.await_shards()
        # The tasks come to their commits, for which they ask the driver, which does not answer.
        os.kill(job.ids["driver"], signal.SIGSTOP)
        try:
            wait_for(lambda: whole_tasks(path))
            time.sleep(1)
            os.kill(job.executors()[0], signal.SIGKILL)
        finally:
            os.kill(job.ids["driver"], signal.SIGCONT)
        attempts = job.finish()
    assert any("FAILED" in states for states in attempts.values()), attempts
    assert seen(spark, path) == old + written(100)
    assert leftovers(path) == []


def whole_tasks(path: Path) -> bool:
    """Whether each task that runs has written all of its shards."""
    shards = ROWS // PARTITIONS // OPTIONS["batch_size"]
    counts = [len(list(folder.glob("*.safetensors"))) for folder in path.glob("_temporary/*/_temporary/*")]
    return bool(counts) and all(count == shards for count in counts)


def test_an_executor_decommissioned_in_the_midst_of_a_write_ends_its_task_first(
    spark: SparkSession, path: Path, tmp_path: Path
) -> None:
    old = append(spark, path, 0)
    conf = {"spark.decommission.enabled": "true"}
    with Job(path, tmp_path / "log", master="local-cluster[2,1,512]", conf=conf, sleep=300) as job:
        job.await_shards()
        leaving = job.executors()[0]
        # As a machine that is to be taken away tells its executors.
        os.kill(leaving, signal.SIGPWR)
        wait_for(lambda: leaving not in job.executors())
        assert job.process.poll() is None
        attempts = job.finish()
    assert all(states == ["SUCCESS"] for states in attempts.values()), attempts
    assert seen(spark, path) == old + written(100)
    assert leftovers(path) == []


def test_executors_come_with_a_write_and_go_after_it_where_spark_allocates_them(tmp_path: Path, cluster: str) -> None:
    answer = answer_of("dynamic_job.py", {"master": cluster, "path": str(tmp_path / "dataset")})
    assert answer["rows"] == [*written(0), *written(100)]
    # Each write had executors of its own, and none was there between them.
    assert answer["executors"]["first"]
    assert answer["executors"]["between"] == []
    assert not set(answer["executors"]["second"]) & set(answer["executors"]["first"])
    assert leftovers(tmp_path / "dataset") == []
