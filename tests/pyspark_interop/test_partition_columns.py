"""Columns of directories named `key=value`, beside those that Spark's Parquet source makes of the same tree."""

import datetime
import re
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa  # type: ignore[import-untyped]
import pyarrow.parquet as pq  # type: ignore[import-untyped]
import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import ArrayType, ByteType, DataType, IntegerType
from safetensors.numpy import save_file

from safetensors_spark.dataset import open_dataset
from spark_io import TENSOR_STRUCT, assert_says, error_of, read, wide_schema, write

NULL = "__HIVE_DEFAULT_PARTITION__"


def tree(root: Path, *folders: str) -> Path:
    """A safetensors file in each folder, with one tensor `x`, which counts them."""
    for number, folder in enumerate(folders):
        (root / folder).mkdir(parents=True)
        save_file({"x": np.array([number], np.uint8)}, root / folder / "file.safetensors")
    return root


def parquet_tree(root: Path, *folders: str) -> Path:
    """The same for Parquet."""
    for number, folder in enumerate(folders):
        (root / folder).mkdir(parents=True)
        pq.write_table(pa.table({"x": [bytes([number])]}), root / folder / "file.parquet")
    return root


def long(spark: SparkSession, path: Path, **options: Any) -> DataFrame:
    return spark.read.format("safetensors").options(layout="long", **options).load(str(path))


VALUES = {
    "ints": ["1", "-2", "007", "+5"],
    "longs": ["1", "3000000000"],
    "wider_than_longs": ["1", "12345678901234567890"],
    "doubles": ["1.5", "2", "-.5"],
    "doubles_and_longs": ["1.5", "3000000000"],
    "dates": ["2026-11-21", "2024-02-29"],
    "no_dates": ["2026-02-30", "2026-11-21"],
    "times": ["2026-11-21 10%3A00%3A00", "2026-11-21 10%3A00%3A00.5"],
    "dates_and_times": ["2026-11-21", "2026-11-21 10%3A00%3A00"],
    "strings": ["de", "1", "2026-11-21"],
    "escaped": ["a%2Fb", "100%25", "a b", "ключ", "%3D", "a%3Ab"],
    "nulls": ["1", NULL],
    "booleans_are_strings": ["true", "false"],
}


@pytest.mark.parametrize("values", VALUES.values(), ids=VALUES)
def test_types_and_values_are_those_of_spark_s_parquet(spark: SparkSession, tmp_path: Path, values: list[str]) -> None:
    folders = [f"k={value}" for value in values]
    expected = spark.read.parquet(str(parquet_tree(tmp_path / "parquet", *folders)))
    found = read(spark, tree(tmp_path / "tensors", *folders))
    assert found.schema["k"] == expected.schema["k"]
    assert found.columns == ["x", "k"]
    rows = [(bytes(row["data"]), row["k"]) for row in found.select("x.data", "k").collect()]
    assert sorted(rows, key=str) == sorted(((bytes(row["x"]), row["k"]) for row in expected.collect()), key=str)


def test_a_column_of_nulls_alone_is_of_strings(spark: SparkSession, tmp_path: Path) -> None:
    found = read(spark, tree(tmp_path, f"k={NULL}"))
    assert (dict(found.dtypes)["k"], found.select("k").collect()) == ("string", [(None,)])


def test_what_only_java_takes_for_a_number_is_a_string(spark: SparkSession, tmp_path: Path) -> None:
    found = read(spark, tree(tmp_path, "k=1d", "k=NaN", "k=0x1p3", "k=٣"))
    assert sorted(row["k"] for row in found.select("k").collect()) == ["0x1p3", "1d", "NaN", "٣"]


@pytest.mark.short
def test_rows_of_nested_partitions_are_those_of_spark_s_parquet(spark: SparkSession, tmp_path: Path) -> None:
    folders = [f"day={day}/hour={hour}" for day in ("2026-11-20", "2026-11-21") for hour in (1, 2, NULL)]
    spark.read.parquet(str(parquet_tree(tmp_path / "parquet", *folders))).createOrReplaceTempView("expected")
    tensors = tree(tmp_path / "tensors", *folders)
    (tensors / "day=2026-11-23" / "hour=1").mkdir(parents=True)
    tree(tensors, ".day=1/hour=1", "day=2026-11-22/_temporary")
    read(spark, tensors).selectExpr("x.data AS x", "day", "hour").createOrReplaceTempView("found")
    for condition in (
        "true", "day = '2026-11-21'", "hour > 1", "hour IS NULL", "day < '2026-11-21' AND hour IN (1, 7)",
        "hour <=> NULL", "day = date'2026-11-20' OR hour = 2", "hour + 1 = 2", "hour = 9", "NOT hour = 1",
    ):  # fmt: skip
        query = f"SELECT * FROM %s WHERE {condition} ORDER BY ALL"
        assert spark.sql(query % "found").collect() == spark.sql(query % "expected").collect(), condition


def test_a_column_may_begin_with_an_underscore(spark: SparkSession, tmp_path: Path) -> None:
    assert [tuple(row) for row in read(spark, tree(tmp_path, "_k=7")).select("_k").collect()] == [(7,)]


def test_inference_of_types_can_be_switched_off_as_for_spark_s_sources(spark: SparkSession, tmp_path: Path) -> None:
    spark.conf.set("spark.sql.sources.partitionColumnTypeInference.enabled", "false")
    try:
        assert read(spark, tree(tmp_path, "k=007")).select("k").head() == ("007",)
    finally:
        spark.conf.unset("spark.sql.sources.partitionColumnTypeInference.enabled")


def test_a_schema_types_the_columns_that_it_names_and_leaves_out_the_others(
    spark: SparkSession, tmp_path: Path
) -> None:
    tree(tmp_path, "k=007/day=2026-11-21", f"k=8/day={NULL}")
    found = read(spark, tmp_path, wide_schema("x").add("K", "string").add("day", "date"))
    assert found.columns == ["x", "K", "day"]
    rows = sorted(found.select("x.data", "K", "day").collect())
    assert [tuple(row) for row in rows] == [(b"\0", "007", datetime.date(2026, 11, 21)), (b"\1", "8", None)]
    assert read(spark, tmp_path, wide_schema("x")).columns == ["x"]
    assert read(spark, tmp_path, wide_schema("x")).count() == 2
    first = read(spark, tmp_path, wide_schema().add("k", "short").add("x", TENSOR_STRUCT))
    assert [row["k"] for row in first.where("k < 8").collect()] == [7]


@pytest.mark.parametrize(
    ("folder", "of_type", "words"),
    [
        ("k=a", IntegerType(), ["`k` is int in the schema", "`k=a`"]),
        ("k=1.7", IntegerType(), ["`k` is int", "`k=1.7`"]),
        ("k=300", ByteType(), ["`k` is tinyint", "`k=300`"]),
        ("k=1", ArrayType(IntegerType()), ["`k` is array<int>", "`k=1`"]),
    ],
)
def test_a_value_that_the_schema_s_type_cannot_hold_is_an_error(
    spark: SparkSession, tmp_path: Path, folder: str, of_type: DataType, words: list[str]
) -> None:
    schema = wide_schema("x").add("k", of_type)
    assert_says(error_of(lambda: read(spark, tree(tmp_path, folder), schema).collect()), *words, "another type")


def test_a_null_that_the_schema_does_not_allow_is_an_error(spark: SparkSession, tmp_path: Path) -> None:
    schema = wide_schema("x").add("k", IntegerType(), nullable=False)
    message = error_of(lambda: read(spark, tree(tmp_path, "k=1", f"k={NULL}"), schema).collect())
    assert_says(message, "`k` is not nullable in the schema", f"`k={NULL}`")


@pytest.mark.parametrize(
    ("folders", "words"),
    [
        (["k=1", "j=1"], ["different partition columns", "`j`", "`k`"]),
        (["k=1", "k=2/j=1"], ["different partition columns", "`k`", "`k`, `j`"]),
        (["k=1/K=2"], ["`K` twice"]),
        (["x=1"], ["`x` is a column of the files", "x=..."]),
        (["X=1"], ["`x` is a column of the files"]),
        ([".", "k=1"], ["holds both safetensors files and directories", "k=1"]),
        (["k=1", "k=1/j=2"], ["holds both", "k=1", "j=2"]),
    ],
)
def test_trees_that_make_no_table_say_what_to_do(
    spark: SparkSession, tmp_path: Path, folders: list[str], words: list[str]
) -> None:
    for number, folder in enumerate(folders):
        (tmp_path / folder).mkdir(parents=True, exist_ok=True)
        save_file({"x": np.array([number], np.uint8)}, tmp_path / folder / "file.safetensors")
    assert_says(error_of(lambda: read(spark, tmp_path)), *words, "recursiveFileLookup")
    everything = spark.read.format("safetensors").options(inferSchema=True, recursiveFileLookup=True)
    assert everything.load(str(tmp_path)).columns == ["x"]
    assert everything.load(str(tmp_path)).count() == len(folders)


def test_a_tensor_of_the_schema_that_is_a_partition_column_is_an_error(spark: SparkSession, tmp_path: Path) -> None:
    message = error_of(lambda: read(spark, tree(tmp_path, "x=1"), wide_schema("x")).collect())
    assert_says(message, "`x` is a tensor in the schema", "`x=...`", "recursiveFileLookup")


def test_names_that_differ_in_case_are_two_columns_where_spark_says_so(spark: SparkSession, tmp_path: Path) -> None:
    tree(tmp_path, "X=1")
    spark.conf.set("spark.sql.caseSensitive", "true")
    try:
        assert [tuple(row) for row in read(spark, tmp_path).select("x.data", "X").collect()] == [(b"\0", 1)]
    finally:
        spark.conf.unset("spark.sql.caseSensitive")


def test_base_path_says_where_columns_begin(spark: SparkSession, tmp_path: Path) -> None:
    tree(tmp_path, "k=1/j=1", "k=1/j=2", "k=2/j=1")
    rows = long(spark, tmp_path / "k=1", basePath=tmp_path).select("k", "j").collect()
    assert sorted(tuple(row) for row in rows) == [(1, 1), (1, 2)]
    assert long(spark, tmp_path / "k=1").columns == ["tensor_key", "tensor", "j"]
    file = tmp_path / "k=2" / "j=1" / "file.safetensors"
    assert long(spark, file, basePath=tmp_path).select("k", "j").collect() == [(2, 1)]
    assert long(spark, file).columns == ["tensor_key", "tensor"]
    assert long(spark, tmp_path / "k=*", basePath=f"{tmp_path}/").where("k = 2").count() == 1
    assert long(spark, tmp_path, basePath=tmp_path).columns[2:] == ["k", "j"]


def test_files_of_other_partitions_are_neither_planned_nor_opened(spark: SparkSession, tmp_path: Path) -> None:
    tree(tmp_path, *(f"day={day}/hour={hour}" for day in (1, 2, 3) for hour in (1, 2)))
    schema = read(spark, tmp_path).schema
    # Whoever opens another one fails.
    for file in tmp_path.rglob("*.safetensors"):
        if "day=2" not in str(file):
            file.write_bytes(b"no safetensors file")
    for table in (read(spark, tmp_path, schema), long(spark, tmp_path)):
        found = table.where("day = 2 AND hour > 1")
        assert found.count() == len(found.collect()) == 1
        plan = found._jdf.queryExecution().executedPlan().toString()
        assert_says(plan, "1 of 6 files")
        assert not re.search(r"\bFilter\b", plan)
    assert "no safetensors file" not in str(read(spark, tmp_path, schema).where("day = 9").collect())


def test_datasets_in_directories_of_their_own_are_one_table(spark: SparkSession, tmp_path: Path) -> None:
    rows = spark.range(12).selectExpr("array(cast(id as float), 0.5F) x", "id % 3 k").coalesce(1)
    for value in (0, 1, 2):
        dataset = write(rows.where(f"k = {value}").select("x"), tmp_path / f"k={value}", batch_size=3)
        (tmp_path / f"k={value}" / "left.safetensors").write_bytes(dataset.shards[0].read_bytes())
    write(rows.where("false").select("x"), tmp_path / "k=3", batch_size=3)
    samples = spark.read.format("safetensors").options(inferSchema=True, layout="rows").load(str(tmp_path))
    assert samples.columns == ["x", "k"]
    found = samples.selectExpr("st_to_array(x) AS x", "k").collect()
    assert sorted((row["x"], row["k"]) for row in found) == [([row, 0.5], row % 3) for row in range(12)]
    assert samples.count() == 12
    assert samples.where("k = 1").count() == 4
    assert samples.groupBy("k").count().orderBy("k").collect() == [(0, 4), (1, 4), (2, 4)]
    assert samples.where("k = 3").count() == 0


def test_datasets_of_no_rows_alone_are_a_table_too(spark: SparkSession, tmp_path: Path) -> None:
    rows = spark.range(0).selectExpr("array(1F) x", "1 y")
    for value in (1, 2):
        write(rows, tmp_path / f"k={value}", batch_size=3)
    for options in ({"inferSchema": True}, {"mergeSchema": True}):
        table = spark.read.format("safetensors").options(**options).load(str(tmp_path))
        assert table.columns == ["x", "y", "k"]
        assert (table.collect(), table.count()) == ([], 0)
    assert dict(table.dtypes)["k"] == "int"


def test_a_table_in_sql_is_pruned_by_its_partitions(spark: SparkSession, tmp_path: Path) -> None:
    tree(tmp_path, "k=a", "k=b")
    spark.sql(f"CREATE TABLE parted USING safetensors OPTIONS (layout 'long') LOCATION '{tmp_path}'")
    try:
        assert spark.sql("SELECT tensor.data, k FROM parted WHERE k = 'b'").collect() == [(bytearray(b"\1"), "b")]
    finally:
        spark.sql("DROP TABLE parted")


PARTITIONED = {
    "ints": ["k=1", "k=-2", "k=007", "k=10"],
    "longs": ["k=1", "k=3000000000"],
    "doubles": ["k=1.5", "k=2", "k=-.5"],
    "dates": ["k=2026-11-21", "k=2024-02-29"],
    "times": ["k=2026-11-21 10%3A00%3A00", "k=2026-11-21 10%3A00%3A00.5"],
    "text": ["k=a%2Fb", "k=100%25", "k=a b", "k=ключ", "k=1"],
    "nested": ["day=2026-11-20/hour=1", "day=2026-11-20/hour=2", "day=2026-11-21/hour=1"],
}


@pytest.mark.parametrize("folders", PARTITIONED.values(), ids=PARTITIONED)
def test_python_opens_the_rows_that_spark_reads(spark: SparkSession, tmp_path: Path, folders: list[str]) -> None:
    rows = spark.range(20).selectExpr("array(cast(id as float), 0.5F) x", "concat('row ', id) caption", "id % 4 part")
    for number, folder in enumerate(folders):
        write(rows.where(f"part = {number % 4}").drop("part").coalesce(1), tmp_path / folder, batch_size=3)
    time_zone = spark.conf.get("spark.sql.session.timeZone")
    spark.conf.set("spark.sql.session.timeZone", "UTC")
    try:
        table = spark.read.format("safetensors").options(layout="rows", decode="true").load(str(tmp_path))
        expected: Any = table.toPandas()
    finally:
        spark.conf.set("spark.sql.session.timeZone", str(time_zone))
    dataset = open_dataset(tmp_path)
    assert [column.name for column in dataset.columns] == table.columns
    assert [sample["caption"] for sample in dataset] == list(expected["caption"])
    assert dataset["x"].tolist() == [list(x) for x in expected["x"]]
    for name in table.columns[2:]:
        found = dataset[name]
        if isinstance(found, np.ndarray) and found.dtype.kind != "M":
            assert found.dtype == expected[name].dtype
            assert found.tolist() == expected[name].tolist()
        elif isinstance(found, np.ndarray):
            assert (found.astype("M8[us]") == np.array(list(expected[name]), "M8[us]")).all()
        else:
            assert list(found) == list(expected[name])
