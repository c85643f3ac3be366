"""Staging for the Hub from Spark's tasks, and on S3."""

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import fsspec
import pyarrow as pa  # type: ignore[import-untyped]
import pyarrow.parquet as pq  # type: ignore[import-untyped]
import pytest
from pyspark.sql import SparkSession

import examples
from filesystems import BUCKET, s3
from safetensors_spark import InvalidShardError
from safetensors_spark.dataset import write_dataset
from safetensors_spark.publish import (
    SYNCED_DIRNAME,
    ShardSchema,
    StagedShard,
    list_pending,
    move_to,
    prune_orphans,
    stage_dataset,
    write_shard,
)


def test_each_task_of_map_in_arrow_stages_its_partition_once(spark: SparkSession, tmp_path: Path) -> None:
    code = examples.block("docs/publish.md", "df.mapInArrow").replace("/mnt/staging", str(tmp_path))
    schema = ShardSchema(columns={"id": pa.int64()}, path_in_repo="data/{run_id}.parquet")
    df = spark.range(0, 1000, 1, 3).selectExpr("id", "cast(id AS string) AS text", "array(id, id) AS v")
    for _ in range(2):
        exec(code, {"__name__": "__main__", "df": df, "schema": schema, "pa": pa, "write_shard": write_shard})
    shards = list_pending(tmp_path)
    assert [shard.path_in_repo for shard in shards] == [f"data/night-1-{number}.parquet" for number in range(3)]
    found = pa.concat_tables([pq.read_table(shard.parquet_path) for shard in shards])
    assert sorted(found["id"].to_pylist()) == list(range(1000))


@pytest.fixture(scope="module")
def bucket(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with s3(tmp_path_factory.mktemp("s3")) as server:
        settings = {"endpoint_url": server.endpoint, "key": "test", "secret": "test"}
        # As the environment or a file of fsspec's configuration says it.
        with pytest.MonkeyPatch.context() as patch:
            patch.setitem(fsspec.config.conf, "s3", settings)
            yield f"s3://{BUCKET}/staging"


def stage(folder: str, first: int, run_id: str = "run") -> StagedShard:
    rows = pa.table({"x": [first, first + 1]})
    return write_shard(rows, staging_dir=folder, run_id=run_id, schema=ShardSchema(columns={"x": pa.int64()}))


def test_a_bucket_is_a_staging_directory(bucket: str, tmp_path: Path) -> None:
    folder = f"{bucket}/one"
    shard = stage(folder, 0)
    assert str(shard.parquet_path).startswith(f"{folder}/pending/run-")
    assert list_pending(folder) == [shard] == [stage(folder, 0)]
    with pytest.raises(InvalidShardError, match="has other rows"):
        stage(folder, 1)
    synced = move_to(shard, folder, SYNCED_DIRNAME)
    assert list_pending(folder) == []
    assert stage(folder, 0) == synced
    write_dataset([{"x": [1, 2, 3]}], tmp_path / "points", batch_size=2)
    files = stage_dataset(tmp_path / "points", staging_dir=folder)
    assert len(files) == len(list_pending(folder)) == 3
    assert prune_orphans(folder, older_than_s=0) == []


def test_a_bucket_takes_one_of_several_shards_with_one_run_id(bucket: str) -> None:
    folder = f"{bucket}/many"

    def attempt(number: int) -> Any:
        try:
            return stage(folder, number)
        except InvalidShardError:
            return None

    with ThreadPoolExecutor(4) as threads:
        (winner,) = [shard for shard in threads.map(attempt, range(8)) if shard]
    assert list_pending(folder) == [winner]


def test_a_bucket_takes_the_same_rows_once(bucket: str) -> None:
    folder = f"{bucket}/same"
    with ThreadPoolExecutor(4) as threads:
        (shard,) = set(threads.map(lambda _: stage(folder, 0), range(8)))
    assert list_pending(folder) == [shard]
