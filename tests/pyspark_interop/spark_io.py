"""Spark's side of the tests: reading, writing, and what became of it."""

import json
import os
import sys
import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import ArrayType, BinaryType, IntegerType, StringType, StructField, StructType

import safetensors_spark as sts
from official import Tensor

TENSOR_STRUCT = StructType(
    [
        StructField("data", BinaryType(), nullable=False),
        StructField("shape", ArrayType(IntegerType()), nullable=False),
        StructField("dtype", StringType(), nullable=False),
    ]
)

MANIFEST = "dataset_manifest.json"


def local_session(warehouse: Path) -> SparkSession:
    """Two threads of this machine, and a small heap."""
    os.environ["PYSPARK_PYTHON"] = sys.executable
    builder = (
        sts.configure(SparkSession.builder)
        .master("local[2]")
        .config("spark.driver.memory", "1g")
        .config("spark.ui.enabled", "false")
        .config("spark.sql.shuffle.partitions", "2")
        .config("spark.sql.warehouse.dir", str(warehouse))
    )
    return builder.getOrCreate()


def wide_schema(*names: str) -> StructType:
    """The schema of files with these tensors."""
    return StructType([StructField(name, TENSOR_STRUCT, nullable=False) for name in names])


def read(spark: SparkSession, path: Path, schema: StructType | None = None) -> DataFrame:
    reader = spark.read.format("safetensors")
    reader = reader.option("inferSchema", "true") if schema is None else reader.schema(schema)
    return reader.load(str(path))


def tensors_frame(spark: SparkSession, rows: list[dict[str, Tensor]]) -> DataFrame:
    """A DataFrame of Tensor Structs, in one partition so that the order of rows is certain."""
    values = [tuple((t.data, list(t.shape), t.dtype) for t in row.values()) for row in rows]
    return spark.createDataFrame(values, wide_schema(*rows[0])).coalesce(1)


def frame(spark: SparkSession, schema: str, *rows: tuple[Any, ...]) -> DataFrame:
    """A DataFrame by a schema such as `x array<float>, y int`, in one partition."""
    return spark.createDataFrame(list(rows), schema).coalesce(1)


def write(df: DataFrame, path: Path, mode: str = "append", **options: Any) -> "Dataset":
    df.write.format("safetensors").mode(mode).options(**options).save(str(path))
    return Dataset(path)


class Dataset:
    """A directory that was written; the manifest says which files are its shards."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.manifest: dict[str, Any] = json.loads((path / MANIFEST).read_text())
        self.shards: list[Path] = [path / shard["file"] for shard in self.manifest["shards"]]
        self.samples = [shard["samples_count"] for shard in self.manifest["shards"]]

    @property
    def shard(self) -> Path:
        """The only shard."""
        assert len(self.shards) == 1
        return self.shards[0]


def files(path: Path) -> dict[str, bytes]:
    """Everything below a directory, by relative path; empty where there is no directory."""
    return {str(file.relative_to(path)): file.read_bytes() for file in sorted(path.rglob("*")) if file.is_file()}


def listing(path: Path) -> dict[str, bytes | None]:
    """The same, and the directories, which have no bytes."""
    return {**files(path), **{str(folder.relative_to(path)): None for folder in path.rglob("*") if folder.is_dir()}}


def error_of(action: Callable[[], object]) -> str:
    """The message of the error that the action must raise: one of Spark's, without a Java stack trace."""
    try:
        action()
    except PySparkException as error:
        return str(error)
    raise AssertionError("no error was raised")


def assert_says(message: str, *words: str) -> None:
    """Holds that a message names all of these."""
    assert [word for word in words if word not in message] == [], message


@contextmanager
def no_job(spark: SparkSession) -> Iterator[None]:
    """Holds that nothing inside started a Spark job."""
    context = spark.sparkContext
    group = str(uuid.uuid4())
    context.setJobGroup(group, "must start no job")
    try:
        yield
    finally:
        context.setJobGroup("", "")
    # Spark hears of a job through the listener bus, a little later.
    context._jsc.sc().listenerBus().waitUntilEmpty()
    assert list(context.statusTracker().getJobIdsForGroup(group)) == []


def explain_insert(rows: DataFrame, path: Path, **options: Any) -> str:
    """What EXPLAIN says of inserting rows into a table at a path: a plan, or the error. No job may run for it."""
    spark = rows.sparkSession
    rows.createOrReplaceTempView("rows_to_explain")
    texts = {name: str(value) for name, value in options.items()}
    spark.catalog.createTable("explained", str(path), "safetensors", rows.schema, **texts)
    try:
        with no_job(spark):
            plan = spark.sql("EXPLAIN INSERT INTO explained SELECT * FROM rows_to_explain").collect()
    finally:
        spark.sql("DROP TABLE explained")
    return "\n".join(row[0] for row in plan)
