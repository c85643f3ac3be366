"""Ways into a dataset other than `save`, each read back; and what is refused, with what to do instead."""

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq  # type: ignore[import-untyped]
import pytest
from pyspark.errors import AnalysisException, PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.functions import col

from official import load
from safetensors_spark.functions import st_to_array
from spark_io import Dataset, assert_says, error_of, files, frame, no_job, read, write

TENSOR = "struct<data: binary, shape: array<int>, dtype: string>"


@pytest.fixture
def table(spark: SparkSession) -> Iterator[str]:
    """A name for a table, which does not exist yet."""
    name = "ways_in"
    yield name
    spark.sql(f"DROP TABLE IF EXISTS {name}")


def tensors(spark: SparkSession, *values: float) -> DataFrame:
    """Rows of a Tensor Struct `x`, of one float each."""
    rows = frame(spark, "v float", *((value,) for value in values))
    return rows.selectExpr("arr_to_st(array(v), array(1), 'F32') AS x")


def shards(path: Path) -> list[list[float]]:
    """The values of `x` in each shard, as the official library finds them."""
    return [load(shard)["x"].array.ravel().tolist() for shard in Dataset(path).shards]


def rows(df: DataFrame) -> list[list[float]]:
    """The same, as Spark reads them."""
    return [row["values"] for row in df.select(st_to_array("x").alias("values")).collect()]


def create(spark: SparkSession, table: str, path: Path, columns: str, options: str = "batch_size 2") -> None:
    spark.sql(f"CREATE TABLE {table} ({columns}) USING safetensors OPTIONS ({options}) LOCATION '{path}'")


@pytest.mark.parametrize("mode", [None, "errorifexists", "ignore"])
def test_save_in_another_mode_is_refused_with_those_that_work(
    spark: SparkSession, path: Path, mode: str | None
) -> None:
    writer = tensors(spark, 1.5).write.format("safetensors").option("batch_size", 1)
    with no_job(spark), pytest.raises(AnalysisException) as error:
        (writer if mode is None else writer.mode(mode)).save(str(path))
    assert_says(str(error.value), "safetensors", "Append", "Overwrite")
    assert not path.exists()


@pytest.mark.short
def test_save_as_table_creates_appends_and_overwrites(spark: SparkSession, path: Path, table: str) -> None:
    def save(mode: str, *values: float) -> None:
        writer = tensors(spark, *values).write.format("safetensors").mode(mode)
        writer.option("path", str(path)).option("batch_size", 2).saveAsTable(table)

    save("errorifexists", 1.5, 2.5)
    save("append", 3.5)
    assert shards(path) == [[1.5, 2.5], [3.5]]
    assert rows(spark.table(table)) == [[1.5], [2.5], [3.5]]
    assert table in error_of(lambda: save("errorifexists", 4.5))
    save("ignore", 4.5)
    assert shards(path) == [[1.5, 2.5], [3.5]]
    save("overwrite", 5.5)
    assert shards(path) == rows(spark.table(table)) == [[5.5]]


def test_managed_table_is_a_dataset_that_goes_with_the_table(spark: SparkSession, table: str) -> None:
    tensors(spark, 1.5).write.format("safetensors").option("batch_size", 1).saveAsTable(table)
    warehouse = Path(str(spark.conf.get("spark.sql.warehouse.dir")).removeprefix("file:"))
    assert shards(warehouse / table) == rows(spark.table(table)) == [[1.5]]
    spark.sql(f"DROP TABLE {table}")
    assert not (warehouse / table).exists()


@pytest.mark.short
@pytest.mark.parametrize("place", ["LOCATION", "path"])
def test_create_table_insert_into_and_insert_overwrite(spark: SparkSession, path: Path, table: str, place: str) -> None:
    options, location = ("batch_size 2", f"LOCATION '{path}'")
    if place == "path":
        options, location = (f"batch_size 2, path '{path}'", "")
    spark.sql(f"CREATE TABLE {table} (x {TENSOR}) USING safetensors OPTIONS ({options}) {location}")
    tensors(spark, 1.5, 2.5, 3.5).createOrReplaceTempView("source")
    spark.sql(f"INSERT INTO {table} SELECT * FROM source")
    spark.sql(f"INSERT INTO {table} TABLE source")
    assert shards(path) == [[1.5, 2.5], [3.5]] * 2
    assert rows(spark.table(table)) == [[1.5], [2.5], [3.5]] * 2
    spark.sql(f"INSERT OVERWRITE {table} SELECT arr_to_st(array(7.5), array(1), 'F32') AS x")
    assert shards(path) == rows(spark.table(table)) == [[7.5]]
    assert len(list(path.glob("*.safetensors"))) == 1


@pytest.mark.short
def test_insert_takes_names_and_types_from_the_table(spark: SparkSession, path: Path, table: str) -> None:
    create(spark, table, path, "x array<float>, label bigint")
    # `VALUES` has columns `col1` and `col2`, of decimals and ints.
    spark.sql(f"INSERT INTO {table} VALUES (array(1.5, 2.5), 7)")
    loaded = load(Dataset(path).shard)
    assert {name: (t.dtype, t.array.tolist()) for name, t in loaded.items()} == {
        "x": ("F32", [[1.5, 2.5]]),
        "label": ("I64", [7]),
    }


@pytest.mark.short
def test_insert_by_key_keeps_the_index_up(spark: SparkSession, path: Path, table: str) -> None:
    create(spark, table, path, "k varchar(3), x array<float>", "name_col 'k', generate_index true")
    spark.sql(f"INSERT INTO {table} VALUES ('a', array(1.5)), ('b', array(2.5, 3.5))")
    spark.sql(f"INSERT INTO {table} VALUES ('c', array())")
    found = {key: tensor.array.tolist() for shard in Dataset(path).shards for key, tensor in load(shard).items()}
    assert found == {"a": [1.5], "b": [2.5, 3.5], "c": []}
    (index,) = path.glob("_tensor_index*.parquet")
    assert pq.read_table(index)["tensor_key"].to_pylist() == ["a", "b", "c"]
    assert "`a`" in error_of(lambda: spark.sql(f"INSERT INTO {table} VALUES ('a', array(4.5))"))


def test_insert_by_name_and_by_list_find_their_columns(spark: SparkSession, path: Path, table: str) -> None:
    create(spark, table, path, "x array<float>, label int")
    spark.sql(f"INSERT INTO {table} BY NAME SELECT 7 AS label, array(1.5) AS x")
    spark.sql(f"INSERT INTO {table} (label, x) VALUES (8, array(2.5))")
    found = [load(shard) for shard in Dataset(path).shards]
    assert [(t["x"].array.tolist(), t["label"].array.tolist()) for t in found] == [([[1.5]], [7]), ([[2.5]], [8])]


@pytest.mark.parametrize(
    ("query", "words"),
    [
        ("SELECT array('a') AS x", ["`x`", "STRING"]),
        ("SELECT array(1.5) AS x, 1 AS more", ["more"]),
        ("SELECT named_struct('data', 1) AS x", ["`x`"]),
    ],
)
def test_insert_of_other_columns_is_refused(
    spark: SparkSession, path: Path, table: str, query: str, words: list[str]
) -> None:
    create(spark, table, path, "x array<float>")
    with no_job(spark), pytest.raises(AnalysisException) as error:
        spark.sql(f"INSERT INTO {table} {query}")
    assert_says(str(error.value), table, *words)
    assert files(path) == {}


def test_options_of_a_call_come_before_the_table_s(spark: SparkSession, path: Path, table: str) -> None:
    create(spark, table, path, f"x {TENSOR}")
    tensors(spark, 1.5, 2.5).writeTo(table).append()
    tensors(spark, 3.5, 4.5).writeTo(table).option("BATCH_SIZE", "1").append()
    tensors(spark, 5.5).write.insertInto(table)
    assert shards(path) == [[1.5, 2.5], [3.5], [4.5], [5.5]]


def test_table_may_have_properties_that_are_no_options(spark: SparkSession, path: Path, table: str) -> None:
    layout = f"USING safetensors OPTIONS (batch_size 2) LOCATION '{path}' TBLPROPERTIES ('team' = 'vision')"
    spark.sql(f"CREATE TABLE {table} (x array<float>) {layout}")
    spark.sql(f"INSERT INTO {table} SELECT array(1F)")
    assert shards(path) == [[1.0]]


def test_table_over_a_dataset_takes_its_schema_from_there(spark: SparkSession, path: Path, table: str) -> None:
    write(tensors(spark, 1.5, 2.5), path, batch_size=2)
    spark.sql(f"CREATE TABLE {table} USING safetensors OPTIONS (inferSchema true, batch_size 1) LOCATION '{path}'")
    assert rows(spark.table(table)) == [[1.5], [2.5]]
    spark.sql(f"INSERT INTO {table} SELECT arr_to_st(array(3.5), array(1), 'F32') AS x")
    assert shards(path) == [[1.5, 2.5], [3.5]]
    assert rows(spark.table(table)) == [[1.5], [2.5], [3.5]]


@pytest.mark.short
def test_create_table_as_select(spark: SparkSession, path: Path, table: str) -> None:
    tensors(spark, 1.5, 2.5, 3.5).createOrReplaceTempView("source")
    ctas = f"TABLE {table} USING safetensors OPTIONS (batch_size 2) LOCATION '{path}' AS SELECT * FROM source"
    spark.sql(f"CREATE {ctas}")
    assert shards(path) == [[1.5, 2.5], [3.5]]
    assert rows(spark.table(table)) == [[1.5], [2.5], [3.5]]


@pytest.mark.parametrize(
    ("options", "query", "words"),
    [
        ("batch_size 0", "array(1.5F) AS x", ["batch_size", "0"]),
        ("batch_size 1", "array(1.5F, null) AS x", ["`x`", "row 0", "element 1 is null"]),
    ],
)
def test_create_table_as_select_that_fails_makes_no_table(
    spark: SparkSession, path: Path, table: str, options: str, query: str, words: list[str]
) -> None:
    ctas = f"CREATE TABLE {table} USING safetensors OPTIONS ({options}) LOCATION '{path}' AS SELECT {query}"
    assert_says(error_of(lambda: spark.sql(ctas)), *words)
    assert not spark.catalog.tableExists(table)
    assert files(path) == {}


@pytest.mark.short
def test_foreach_batch_appends_each_micro_batch(spark: SparkSession, path: Path, tmp_path: Path) -> None:
    source = tmp_path / "source"
    for number, values in enumerate([[1.5, 2.5, 3.5], [4.5]]):
        source.mkdir(exist_ok=True)
        (source / f"{number}.json").write_text("\n".join(json.dumps({"v": value}) for value in values))
    batches: list[int] = []

    def append(batch: DataFrame, number: int) -> None:
        batches.append(number)
        write(batch.coalesce(1).selectExpr("arr_to_st(array(v), array(1), 'F32') AS x"), path, batch_size=2)

    stream = spark.readStream.schema("v float").option("maxFilesPerTrigger", 1).json(str(source))
    checkpoint = str(tmp_path / "checkpoint")
    query = stream.writeStream.foreachBatch(append).option("checkpointLocation", checkpoint)
    query.trigger(availableNow=True).start().awaitTermination()
    assert batches == [0, 1]
    assert sorted(shards(path)) == sorted(rows(read(spark, path))) == [[1.5, 2.5], [3.5], [4.5]]


# What to do instead.
LAYOUT = ["repartition", "sortWithinPartitions"]

LAID_OUT: dict[str, Callable[[Any, str], object]] = {
    "partitionBy": lambda writer, path: writer.partitionBy("k").save(path),
    "clusterBy": lambda writer, path: writer.clusterBy("k").save(path),
    "partitionBy of a table": lambda writer, path: writer.option("path", path).partitionBy("k").saveAsTable("ways_in"),
    "clusterBy of a table": lambda writer, path: writer.option("path", path).clusterBy("k").saveAsTable("ways_in"),
    "bucketBy of a table": lambda writer, path: writer.option("path", path).bucketBy(2, "k").saveAsTable("ways_in"),
}


@pytest.mark.short
@pytest.mark.parametrize("case", LAID_OUT)
def test_partitions_clusters_and_buckets_are_refused(spark: SparkSession, path: Path, table: str, case: str) -> None:
    writer = frame(spark, "x array<float>, k string", ([1.5], "a")).write.format("safetensors").mode("append")
    with no_job(spark), pytest.raises(AnalysisException) as error:
        LAID_OUT[case](writer.option("batch_size", 1).option("columns", "x"), str(path))
    assert_says(str(error.value), case.split()[0], *LAYOUT)
    assert not path.exists()
    assert not spark.catalog.tableExists(table)


CLAUSES = {
    "PARTITIONED BY": "PARTITIONED BY (k)",
    "PARTITIONED BY a transform": "PARTITIONED BY (bucket(2, k))",
    "PARTITIONED BY days": "PARTITIONED BY (days(day))",
    "CLUSTER BY": "CLUSTER BY (k)",
    "CLUSTERED BY": "CLUSTERED BY (k) INTO 2 BUCKETS",
}


@pytest.mark.parametrize("case", CLAUSES)
def test_create_table_with_a_layout_is_refused(spark: SparkSession, path: Path, table: str, case: str) -> None:
    columns = f"x {TENSOR}, k string, day timestamp"
    with pytest.raises(AnalysisException) as error:
        spark.sql(f"CREATE TABLE {table} ({columns}) USING safetensors {CLAUSES[case]} LOCATION '{path}'")
    assert_says(str(error.value), " ".join(case.split()[:2]), *LAYOUT)
    assert not spark.catalog.tableExists(table)
    assert not path.exists()


def test_buckets_of_a_path_are_refused_by_spark(spark: SparkSession, path: Path) -> None:
    writer = frame(spark, "x array<float>", ([1.5],)).write.format("safetensors").mode("append").bucketBy(2, "x")
    assert_says(error_of(lambda: writer.option("batch_size", 1).save(str(path))), "save", "bucketBy")
    assert not path.exists()


@pytest.mark.short
def test_streaming_sink_is_refused_with_the_way_that_works(spark: SparkSession, path: Path, tmp_path: Path) -> None:
    stream = spark.readStream.format("rate").load().selectExpr("array(value) AS x").writeStream.format("safetensors")
    options = stream.option("batch_size", 1).option("checkpointLocation", str(tmp_path / "checkpoint"))
    with pytest.raises(AnalysisException) as error:
        options.start(str(path))
    assert_says(str(error.value), "foreachBatch", "append")
    assert not path.exists()


OTHER_CHANGES: dict[str, tuple[Callable[[SparkSession, str], object], str]] = {
    "delete": (lambda spark, table: spark.sql(f"DELETE FROM {table} WHERE true"), "delete"),
    "update": (lambda spark, table: spark.sql(f"UPDATE {table} SET x = null"), "UPDATE TABLE"),
    "overwrite of some rows": (
        lambda spark, table: tensors(spark, 2.5).writeTo(table).overwrite(col("x").isNull()),
        "overwrite",
    ),
    "overwrite of partitions": (
        lambda spark, table: tensors(spark, 2.5).writeTo(table).overwritePartitions(),
        "dynamic overwrite",
    ),
}


@pytest.mark.parametrize("case", OTHER_CHANGES)
def test_changes_of_rows_are_refused_and_change_nothing(spark: SparkSession, path: Path, table: str, case: str) -> None:
    change, word = OTHER_CHANGES[case]
    create(spark, table, path, f"x {TENSOR}")
    tensors(spark, 1.5).writeTo(table).append()
    before = files(path)
    with pytest.raises(PySparkException, match=word):
        change(spark, table)
    assert files(path) == before
