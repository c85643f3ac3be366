"""What a query does not read: files, tensors, rows that its conditions, its columns, a count or a limit leave out."""

import json
import re
from pathlib import Path

import numpy as np
import pytest
from pyspark.sql import DataFrame, SparkSession
from safetensors.numpy import save_file

from spark_io import Dataset, files, wide_schema, write
from test_metrics import last_metrics


@pytest.fixture(scope="module")
def models(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Three files: `0` and `1` differ in dtype and shape of `w`, `2` has none; `0` says something of itself."""
    folder = tmp_path_factory.mktemp("models")
    save_file({"w": np.zeros((2, 3), np.float32), "b": np.zeros(2, np.int8)}, folder / "0.safetensors", {"by": "me"})
    save_file({"w": np.zeros((3, 3), np.float16), "b": np.zeros(2, np.int8)}, folder / "1.safetensors")
    save_file({"b": np.zeros(1, np.int8)}, folder / "2.safetensors")
    return folder


@pytest.fixture(scope="module")
def store(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Dataset:
    """A thousand keys in four shards, with an index."""
    rows = spark.range(0, 1000, 1, 4).selectExpr("concat('k', id) k", "array(cast(id as float)) v")
    return write(rows, tmp_path_factory.mktemp("store") / "store", name_col="k", generate_index="true")


def wide(spark: SparkSession, path: Path) -> DataFrame:
    return spark.read.format("safetensors").option("mergeSchema", "true").load(str(path))


def long(spark: SparkSession, path: Path, **options: str) -> DataFrame:
    return spark.read.format("safetensors").options(layout="long", **options).load(str(path))


def plan(df: DataFrame) -> str:
    return str(df._jdf.queryExecution().executedPlan().toString())


def metrics(df: DataFrame) -> dict[str, str]:
    """Runs the query, and gives what Spark's UI shows of it."""
    df.collect()
    return last_metrics(df.sparkSession)


DECIDED_BY_HEADERS = [
    ("w IS NULL", ["2"]),
    ("w IS NOT NULL", ["0", "1"]),
    ("w.data IS NULL", ["2"]),
    ("w.dtype = 'F16'", ["1"]),
    ("w.dtype <> 'F16'", ["0"]),
    ("NOT (w.dtype <=> 'F16')", ["0", "2"]),
    ("w.dtype IN ('F16', 'F32') AND b.shape = array(2)", ["0", "1"]),
    ("w.dtype = 'F16' OR b.shape = array(1)", ["1", "2"]),
    ("w.dtype = 'F16' OR w IS NULL", ["1", "2"]),
    ("NOT (w.dtype = 'F16' AND b.dtype = 'I8')", ["0"]),
    ("w.shape = array(2, 3)", ["0"]),
    ("w.shape <> array(2, 3)", ["1"]),
    ("_metadata.file_name = '1.safetensors'", ["1"]),
    ("_metadata.file_name LIKE '%2.safe%' OR w.dtype = 'F32'", ["0", "2"]),
    ("_metadata.file_path LIKE '%/0.safetensors'", ["0"]),
    ("_metadata.file_size > 1000000", []),
    ("_metadata.file_modification_time > '2020-01-01 00:00:00'", ["0", "1", "2"]),
]


@pytest.mark.parametrize(("condition", "found"), DECIDED_BY_HEADERS)
def test_conditions_on_tensors_of_a_file_leave_the_plan(
    spark: SparkSession, models: Path, condition: str, found: list[str]
) -> None:
    df = wide(spark, models).where(condition).selectExpr("_metadata.file_name")
    assert [row[0].removesuffix(".safetensors") for row in df.collect()] == found
    assert not re.search(r"\bFilter\b", plan(df)), plan(df)
    # Spark's own verdict, on the same rows.
    everything = wide(spark, models).select("*", "_metadata").collect()
    schema = wide(spark, models).select("*", "_metadata").schema
    by_spark = spark.createDataFrame(everything, schema).where(condition).selectExpr("_metadata.file_name").collect()
    assert by_spark == df.collect()


@pytest.mark.parametrize("condition", ["length(w.data) > 12", "st_to_array(b)[0] = 0", "size(w.shape) = 2"])
def test_conditions_on_values_stay_with_spark(spark: SparkSession, models: Path, condition: str) -> None:
    df = wide(spark, models).where(condition)
    assert re.search(r"\bFilter\b", plan(df)), plan(df)
    df.collect()


def test_a_condition_does_not_hide_that_a_required_tensor_is_absent(spark: SparkSession, models: Path) -> None:
    required = spark.read.format("safetensors").schema(wide_schema("w", "b")).load(str(models))
    with pytest.raises(Exception, match=r"2\.safetensors has no tensor `w`, which the schema requires"):
        required.where("w.dtype = 'F16'").select("b").collect()


def test_conditions_on_samples(spark: SparkSession, path: Path) -> None:
    rows = spark.range(0, 10, 1, 1).selectExpr("array(cast(id as float), 0F) x")
    write(rows, path, batch_size=4)
    df = spark.read.format("safetensors").options(layout="rows", inferSchema="true").load(str(path))
    assert len(df.where("x.shape = array(2)").collect()) == 10
    assert df.where("x.shape = array(4, 2)").collect() == []
    assert df.where("x.dtype = 'F16'").collect() == []


@pytest.mark.short
def test_a_key_is_looked_up_in_the_index_and_nothing_else_is_opened(spark: SparkSession, store: Dataset) -> None:
    shown = metrics(long(spark, store.path).where("tensor_key = 'k777'"))
    assert (shown["files opened"], shown["files skipped by conditions"]) == ("1", "3")
    # Where the tensor is, the index says: no header is read.
    assert (shown["bytes of headers read"], shown["bytes of tensors read"]) == ("0", "4")


@pytest.mark.parametrize(
    "condition",
    [
        "tensor_key BETWEEN 'k997' AND 'k998'",
        "tensor_key > 'k997'",
        "tensor_key >= 'k998' AND tensor_key <= 'k999'",
        "tensor_key LIKE 'k9%' AND tensor_key < 'k902' AND tensor_key > 'k90'",
        "tensor_key LIKE 'k99%' AND tensor_key IN ('k1', 'k2', 'k990', 'k991')",
        "tensor_key LIKE 'k99%' AND tensor_key > 'k997' OR tensor_key = 'k990'",
    ],
)
def test_conditions_on_keys_open_the_shards_that_the_index_names(
    spark: SparkSession, store: Dataset, condition: str
) -> None:
    shown = metrics(long(spark, store.path).where(condition))
    assert (shown["files opened"], shown["files skipped by conditions"]) == ("1", "3")
    assert shown["bytes of headers read"] == "0"


def test_many_keys_are_looked_up_in_the_index(spark: SparkSession, store: Dataset) -> None:
    df = long(spark, store.path)
    keys = [f"k{number}" for number in range(-500, 500)]
    found = df.where(df.tensor_key.isin(keys)).selectExpr("tensor_key", "st_to_array(tensor)[0]")
    assert sorted(found.collect()) == sorted((f"k{number}", number) for number in range(500))
    shown = metrics(found)
    assert (shown["files opened"], shown["bytes of headers read"]) == ("2", "0")


@pytest.mark.parametrize(
    ("condition", "count"),
    [
        ("tensor_key = 'k777'", 1),
        ("tensor_key IN ('k1', 'k500', 'k999', 'absent')", 3),
        ("tensor_key LIKE 'k99%'", 11),
        ("tensor_key LIKE 'k99%' AND tensor_key <> 'k990'", 10),
        ("tensor_key = 'k1' OR tensor_key = 'k999'", 2),
        ("tensor_key = 'k1' OR tensor_key LIKE 'k99%'", 12),
        ("tensor_key LIKE '%'", 1000),
        ("tensor_key > 'k998'", 1),
        ("tensor_key BETWEEN 'k10' AND 'k100'", 2),
        ("tensor_key < 'k10' OR tensor_key >= 'k99'", 13),
        ("NOT (tensor_key > 'k1')", 2),
        ("tensor_key > 'l' AND tensor_key < 'j'", 0),
        ("tensor_key LIKE 'k99%' AND tensor.dtype = 'F16'", 0),
        ("tensor.dtype = 'F16'", 0),
        ("tensor.dtype = 'F32' AND tensor.shape = array(1)", 1000),
        ("tensor_key = 'absent'", 0),
        ("tensor_key LIKE 'k99%' AND st_to_array(tensor)[0] > 990", 9),
    ],
)
def test_the_index_finds_what_headers_find(
    spark: SparkSession, store: Dataset, tmp_path: Path, condition: str, count: int
) -> None:
    for name, content in files(store.path).items():
        if not name.startswith("_"):
            (tmp_path / name).write_bytes(content)
    query = ("tensor_key", "tensor.shape", "tensor.dtype", "hex(tensor.data)", "_metadata.file_name")
    by_index = sorted(long(spark, store.path).where(condition).selectExpr(*query).collect())
    by_headers = sorted(long(spark, tmp_path).where(condition).selectExpr(*query).collect())
    assert by_index == by_headers
    assert len(by_index) == count


def test_a_dtype_that_is_nowhere_opens_no_file(spark: SparkSession, store: Dataset) -> None:
    assert metrics(long(spark, store.path).where("tensor.dtype = 'F16'"))["files skipped by conditions"] == "4"


def test_headers_are_read_where_the_query_asks_for_what_they_say(spark: SparkSession, store: Dataset) -> None:
    rows = long(spark, store.path).where("tensor_key = 'k5'").select("_metadata.header", "tensor_key").collect()
    assert [(row[0], row[1]) for row in rows] == [({"format": "pt"}, "k5")]


def test_an_index_of_another_commit_counts_for_nothing(spark: SparkSession, path: Path) -> None:
    rows = spark.range(3).selectExpr("concat('k', id) k", "array(1F) v")
    write(rows, path, name_col="k", generate_index="true")
    old = (path / "_tensor_index.parquet").read_bytes()
    more = spark.range(3, 6).selectExpr("concat('k', id) k", "array(1F) v")
    (part,) = write(more, path, name_col="k").manifest["index_parts"]
    (path / part["file"]).write_bytes(old)
    (path / f".{part['file']}.crc").unlink(missing_ok=True)
    assert len(long(spark, path).where("tensor_key = 'k4'").collect()) == 1


def test_the_metadata_column_tells_of_the_file(spark: SparkSession, models: Path) -> None:
    rows = wide(spark, models).select("_metadata.*").collect()
    for row, file in zip(rows, sorted(models.iterdir()), strict=True):
        assert row["file_path"] == f"file:{file}"
        assert (row["file_name"], row["file_size"]) == (file.name, file.stat().st_size)
        assert row["file_modification_time"].timestamp() == int(file.stat().st_mtime * 1000) / 1000
    assert [row["header"] for row in rows] == [{"by": "me"}, {}, {}]
    assert "_metadata" not in wide(spark, models).columns
    # The names are those of Spark's own sources.
    text = spark.read.text(str(models / "2.safetensors")).select("_metadata.*")
    own = wide(spark, models / "2.safetensors").select("_metadata.*")
    for name in ("file_path", "file_name", "file_size", "file_modification_time"):
        assert own.select(name).first() == text.select(name).first()
        assert own.schema[name].dataType == text.schema[name].dataType


def test_a_tensor_called_metadata_hides_the_column(spark: SparkSession, tmp_path: Path) -> None:
    save_file({"_metadata": np.zeros(2, np.int8)}, tmp_path / "a.safetensors")
    assert wide(spark, tmp_path).select("_metadata.dtype").collect() == [("I8",)]


def test_rows_are_counted_by_the_listing(spark: SparkSession, path: Path) -> None:
    rows = spark.range(0, 10, 1, 2).selectExpr("array(cast(id as float)) x")
    write(rows, path, batch_size=4, tail_strategy="pad")
    for layout, count in (("wide", 4), ("rows", 10)):
        df = spark.read.format("safetensors").options(layout=layout, inferSchema="true").load(str(path))
        assert df.count() == count
        assert "LocalTableScan" in plan(df.groupBy().count())
        assert df.where("x.dtype = 'F32'").count() == count
        assert df.where("x.dtype = 'F16'").count() == 0
        assert df.selectExpr("count(*)", "count(1)", "count(x)").collect() == [(count,) * 3]
        assert df.groupBy("x.dtype").count().collect() == [("F32", count)]


def test_tensors_are_counted_by_the_manifest(spark: SparkSession, store: Dataset, path: Path) -> None:
    write(spark.range(0, 10, 1, 2).selectExpr("array(id) x", "array(id) y"), path, batch_size=4)
    for place, count in ((store.path, 1000), (path, 8)):
        df = long(spark, place)
        assert df.count() == count
        assert "LocalTableScan" in plan(df.groupBy().count())
        assert df.where("tensor.dtype = 'F16'").count() == 0


def test_tensors_by_key_are_counted_by_key_and_column(spark: SparkSession, path: Path) -> None:
    rows = spark.range(0, 10, 1, 1).selectExpr("cast(id / 2 as int) k", "array(id) x", "array(id) y")
    write(rows, path, name_col="k", duplicatesStrategy="lastWin")
    df = long(spark, path)
    assert (df.count(), len(df.collect())) == (10, 10)


def test_a_count_notices_a_shard_that_is_gone(spark: SparkSession, path: Path) -> None:
    dataset = write(spark.range(4).selectExpr("array(1F) x"), path, batch_size=1)
    df = spark.read.format("safetensors").options(layout="rows").schema(wide_schema("x")).load(str(path))
    dataset.shards[0].unlink()
    with pytest.raises(Exception, match="is gone"):
        df.count()


def test_a_limit_opens_no_more_files_than_it_needs(spark: SparkSession, path: Path) -> None:
    write(spark.range(0, 40, 1, 1).selectExpr("array(1F) x"), path, batch_size=4)
    for layout, opened in (("wide", 3), ("rows", 1)):
        reader = spark.read.format("safetensors").options(layout=layout, inferSchema="true")
        limited = reader.load(str(path)).limit(3)
        assert len(limited.collect()) == 3
        assert f"safetensors {opened} of 10 files" in plan(limited)
        # What is filtered behind the scan must not be limited before it.
        some = reader.load(str(path)).where("length(x.data) > 0 AND x.dtype = 'F32'").limit(3)
        assert len(some.collect()) == 3
    long_limited = long(spark, path).limit(5)
    assert len(long_limited.collect()) == 5


def size_in_bytes(df: DataFrame) -> int:
    return int(df._jdf.queryExecution().optimizedPlan().stats().sizeInBytes())


def test_spark_knows_how_large_a_table_is(spark: SparkSession, path: Path) -> None:
    dataset = write(spark.range(0, 4000, 1, 2).selectExpr("array_repeat(1F, 1000) x"), path, batch_size=1000)
    df = spark.read.format("safetensors").options(layout="rows", inferSchema="true").load(str(path))
    assert size_in_bytes(df) == dataset.manifest["total_bytes"]
    assert size_in_bytes(df.select("x.shape")) < dataset.manifest["total_bytes"] / 100
    # By it, a join sends the small side to the large one.
    small = spark.range(3).selectExpr("concat('F', id) dtype")
    join = plan(df.selectExpr("x.dtype", "x.data").join(small, "dtype"))
    assert join.index("BatchScan") < join.index("BroadcastExchange") < join.index("Range"), join
    assert str(df._jdf.queryExecution().optimizedPlan().stats().rowCount()) == "Some(4000)"


def test_metrics_tell_what_was_read(spark: SparkSession, models: Path) -> None:
    shown = metrics(wide(spark, models).select("b", "w.shape"))
    headers = sum(8 + int.from_bytes(file.read_bytes()[:8], "little") for file in models.iterdir())
    assert (shown["files opened"], shown["bytes of tensors read"]) == ("3", "5")
    assert shown["bytes of headers read"] == str(headers)
    assert shown["number of output rows"] == "3"


def test_shapes_of_a_terabyte_cost_its_headers(spark: SparkSession, tmp_path: Path) -> None:
    size = 256 << 30
    for number in range(4):
        header = json.dumps({"x": {"dtype": "U8", "shape": [size >> 20, 1 << 20], "data_offsets": [0, size]}}).encode()
        with (tmp_path / f"{number}.safetensors").open("wb") as file:
            file.write(len(header).to_bytes(8, "little") + header)
            # It takes no room on the disk.
            file.truncate(8 + len(header) + size)
    df = long(spark, tmp_path).select("tensor.shape", "tensor_key")
    assert df.collect() == [([size >> 20, 1 << 20], "x")] * 4
    shown = metrics(df)
    assert shown["bytes of tensors read"] == "0"
    assert int(shown["bytes of headers read"]) < 1000
