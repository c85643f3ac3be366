"""What a reader sees while executors die, and while the dataset changes under it: an exact state, or a clear error."""

import json
import shutil
import subprocess
import sys
from pathlib import Path

from pyspark.sql import DataFrame, SparkSession

from read_failure_job import SAMPLES, SHARDS
from spark_io import assert_says, error_of, write

JOB = Path(__file__).with_name("read_failure_job.py")


def test_killed_executors_and_overwritten_datasets_on_a_cluster(tmp_path: Path) -> None:
    for step in ("killed", "overwritten"):
        (tmp_path / step).mkdir()
    command = [sys.executable, str(JOB), str(tmp_path)]
    run = subprocess.run(command, capture_output=True, text=True, check=False)
    assert run.returncode == 0, run.stderr
    answer = json.loads(run.stdout.splitlines()[-1])
    # An executor was killed in the middle of a shard: each row is there, once.
    assert answer["killed"]["dead"] == 1
    assert answer["killed"]["rows"] == list(range(SHARDS * SAMPLES))
    overwritten = answer["overwritten"]
    assert overwritten["before"] == list(range(SAMPLES))
    assert_says(overwritten["error"], ".safetensors is gone", "when the table was loaded", "Load the table again")
    assert overwritten["after"] == list(range(1000, 1000 + SHARDS * SAMPLES))


def planned(spark: SparkSession, path: Path) -> DataFrame:
    """A query whose files are settled."""
    df = spark.read.format("safetensors").options(layout="rows", inferSchema="true").load(str(path))
    query = df.selectExpr("st_to_array(x)[0]")
    query._jdf.queryExecution().executedPlan()
    return query


def numbers(spark: SparkSession, path: Path, first: int, mode: str = "append") -> None:
    write(spark.range(first, first + 4, 1, 2).selectExpr("array(cast(id as float)) x"), path, mode, batch_size=2)


def seen(df: DataFrame) -> list[int]:
    return [int(row[0]) for row in df.collect()]


def test_a_query_that_is_planned_does_not_see_an_append(spark: SparkSession, path: Path) -> None:
    numbers(spark, path, 0)
    query = planned(spark, path)
    numbers(spark, path, 4)
    assert seen(query) == [0, 1, 2, 3]
    assert seen(planned(spark, path)) == list(range(8))


def test_a_query_whose_dataset_is_overwritten_fails_and_says_so(spark: SparkSession, path: Path) -> None:
    numbers(spark, path, 0)
    query = planned(spark, path)
    numbers(spark, path, 4, "overwrite")
    assert_says(error_of(lambda: seen(query)), ".safetensors is gone", "Load the table again")
    assert seen(planned(spark, path)) == [4, 5, 6, 7]


def test_a_query_whose_dataset_is_deleted_fails_and_says_so(spark: SparkSession, path: Path) -> None:
    numbers(spark, path, 0)
    query = planned(spark, path)
    shutil.rmtree(path)
    assert_says(error_of(lambda: seen(query)), ".safetensors is gone")
    assert_says(error_of(lambda: planned(spark, path)), f"Path does not exist: file:{path}")


def test_a_file_that_changes_its_length_is_an_error(spark: SparkSession, path: Path) -> None:
    numbers(spark, path, 0)
    query = planned(spark, path)
    shard = min(path.glob("*.safetensors"))
    length = shard.stat().st_size
    with shard.open("ab") as file:
        file.write(b"more")
    assert_says(error_of(lambda: seen(query)), shard.name, "has changed", str(length), str(length + 4))
