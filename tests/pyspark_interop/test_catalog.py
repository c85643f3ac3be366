"""The catalog `safetensors`: tables by path, in SQL and in DataFrames, each judged by the files that it writes."""

import json
import os
import shutil
from pathlib import Path

import pytest
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.functions import call_function, lit

from official import load
from spark_io import MANIFEST, Dataset, assert_says, error_of, frame, listing, no_job, write

CATALOG = "io.github.semyonsinchenko.safetensors.SafetensorsCatalog"


@pytest.fixture
def table(path: Path) -> str:
    """The name of what will be at `path`."""
    return name(path)


def name(path: object, layout: str = "") -> str:
    return f"safetensors.{layout}{'.' if layout else ''}`{path}`"


def numbers(spark: SparkSession, *values: float) -> DataFrame:
    """Rows of an array `x` of one float each."""
    return frame(spark, "x array<float>", *(([value],) for value in values))


def create(spark: SparkSession, table: str, *values: float, options: str = "batch_size 2") -> None:
    numbers(spark, *values).createOrReplaceTempView("source")
    spark.sql(f"CREATE TABLE {table} OPTIONS ({options}) AS SELECT * FROM source")


def shards(path: Path) -> list[list[float]]:
    """The values of `x` in each shard, as the official library finds them."""
    return [load(shard)["x"].array.ravel().tolist() for shard in Dataset(path).shards]


def rows(df: DataFrame) -> list[list[float]]:
    """The same, as Spark reads them."""
    return [row["v"] for row in df.select(call_function("safetensors.st_to_array", "x").alias("v")).collect()]


@pytest.mark.short
def test_create_as_select_and_select(spark: SparkSession, path: Path, table: str) -> None:
    create(spark, table, 1.5, 2.5, 3.5)
    assert shards(path) == [[1.5, 2.5], [3.5]]
    assert rows(spark.table(table)) == rows(spark.sql(f"SELECT x FROM {table}")) == [[1.5], [2.5], [3.5]]
    assert spark.table(table).count() == 3
    assert rows(spark.table(name(path, "wide"))) == shards(path)
    long = spark.sql(f"SELECT tensor_key, safetensors.st_to_array(tensor) AS v FROM {name(path, 'long')}").collect()
    assert [(row["tensor_key"], row["v"]) for row in long] == [("x", [1.5, 2.5]), ("x", [3.5])]


@pytest.mark.short
def test_what_exists_is_not_created_again(spark: SparkSession, path: Path, table: str) -> None:
    create(spark, table, 1.5)
    before = listing(path)
    with no_job(spark):
        assert_says(error_of(lambda: create(spark, table, 2.5)), "TABLE_OR_VIEW_ALREADY_EXISTS", str(path))
        assert_says(error_of(numbers(spark, 2.5).writeTo(table).option("batch_size", 1).create), str(path))
        spark.sql(f"CREATE TABLE IF NOT EXISTS {table} OPTIONS (batch_size 1) AS SELECT array(2.5F) AS x")
    assert listing(path) == before


FAILURES = {
    "an option": ("batch_szie 1", "array(1.5F) AS x", ["`batch_szie`", "`batch_size`"]),
    "a schema": ("batch_size 1", "array('a') AS x", ["`x`", "array<string>"]),
    "a row": ("batch_size 1", "array(1.5F, null) AS x", ["`x`", "row 0", "element 1 is null"]),
    "a commit": ("name_col 'k', generate_index true", "1 AS k, explode(array(1, 2)) AS x", ["`1`"]),
}


@pytest.mark.short
@pytest.mark.parametrize("case", FAILURES)
def test_creation_that_fails_leaves_nothing(spark: SparkSession, path: Path, table: str, case: str) -> None:
    options, columns, words = FAILURES[case]
    statement = f"TABLE {table} OPTIONS ({options}) AS SELECT /*+ REPARTITION(2) */ {columns}"
    assert_says(error_of(lambda: spark.sql(f"CREATE {statement}")), *words)
    assert not path.exists()
    path.mkdir()
    assert_says(error_of(lambda: spark.sql(f"CREATE {statement}")), *words)
    assert path.exists()
    assert listing(path) == {}
    create(spark, table, 1.5)
    before = listing(path)
    assert_says(error_of(lambda: spark.sql(f"CREATE OR REPLACE {statement}")), *words)
    assert listing(path) == before


def test_creation_in_a_directory_of_other_files_is_refused(spark: SparkSession, path: Path, table: str) -> None:
    path.mkdir()
    (path / "notes.txt").touch()
    assert_says(error_of(lambda: create(spark, table, 1.5)), str(path), "not empty", "notes.txt")
    assert listing(path) == {"notes.txt": b""}


@pytest.mark.short
def test_replace_as_select_takes_the_place_of_what_was_there(spark: SparkSession, path: Path, table: str) -> None:
    replace = f"REPLACE TABLE {table} USING safetensors OPTIONS (batch_size 1) AS SELECT"
    assert_says(error_of(lambda: spark.sql(f"{replace} array(1.5F) AS x")), "TABLE_OR_VIEW_NOT_FOUND")
    spark.sql(f"CREATE OR {replace} array(1.5F) AS x")
    spark.sql(f"{replace} explode(array(x, x)) AS x FROM {table}")
    assert shards(path) == [[1.5], [1.5]]
    spark.sql(f"CREATE OR {replace} array(2.5F) AS x")
    assert shards(path) == rows(spark.table(table)) == [[2.5]]
    assert len(list(path.glob("*.safetensors"))) == 1


def test_a_dataset_in_batches_can_be_inserted_into_itself(spark: SparkSession, path: Path, table: str) -> None:
    create(spark, table, 1.5, 2.5, 3.5)
    spark.sql(f"INSERT INTO {table} SELECT safetensors.st_to_array(x) FROM {table}")
    assert rows(spark.table(table)) == [[1.5], [2.5], [3.5]] * 2
    structs = path.with_name("structs")
    spark.sql(f"CREATE TABLE {name(structs)} OPTIONS (batch_size 2) AS SELECT * FROM {table}")
    spark.sql(f"INSERT INTO {name(structs)} SELECT * FROM {name(structs)}")
    assert rows(spark.table(name(structs))) == [[1.5], [2.5], [3.5]] * 4


KINDS = (
    "SELECT array(id, 2) AS x, concat('row ', id) AS t, sequence(0, id % 3) AS ids, date'2026-01-01' AS day "
    "FROM range(5)"
)


@pytest.mark.short
def test_tensors_are_inserted_by_the_layout_in_the_name(spark: SparkSession, path: Path, table: str) -> None:
    spark.sql(f"CREATE TABLE {table} OPTIONS (batch_size 4, ragged 'ids') AS {KINDS}")
    once = spark.read.format("safetensors").options(layout="rows", decode="true").load(str(path)).collect()
    assert len(once) == 5
    spark.sql(f"INSERT INTO {name(path, 'rows')} SELECT * FROM {table}")
    decoded = spark.read.format("safetensors").options(layout="rows", decode="true").load(str(path))
    assert sorted(decoded.collect()) == sorted(once * 2)
    spark.sql(f"INSERT INTO {name(path, 'rows')} BY NAME SELECT x, day, t, ids FROM {table} LIMIT 1")
    spark.table(table).limit(1).writeTo(name(path, "rows")).append()
    assert decoded.count() == 10
    spark.sql(f"INSERT OVERWRITE {name(path, 'rows')} SELECT * FROM {table} WHERE get(st_to_array_long(x), 0) < 2")
    decoded = spark.read.format("safetensors").options(layout="rows", decode="true").load(str(path))
    assert decoded.dtypes == [("x", "array<bigint>"), ("t", "string"), ("ids", "array<bigint>"), ("day", "date")]
    found, kept = decoded.collect(), [row for row in once if row["x"][0] < 2]
    assert [row for row in found if row not in kept] == [row for row in kept if row not in found] == []
    changed = "SELECT arr_to_st(array(1), array(1), 'F32') AS x, day, t, ids"
    message = error_of(lambda: spark.sql(f"INSERT OVERWRITE {name(path, 'rows')} BY NAME {changed} FROM {table}"))
    assert_says(message, "`x`", "F32 [1]", "the rows of the dataset have I64 [2]")


def test_tensors_by_key_are_inserted_by_the_layout_in_the_name(spark: SparkSession, path: Path, table: str) -> None:
    other = path.with_name("other")
    for place, key in ((table, "a"), (name(other), "b")):
        spark.sql(f"CREATE TABLE {place} OPTIONS (name_col 'k') AS SELECT '{key}' AS k, array(1.5F) AS v")
    spark.sql(f"INSERT INTO {name(path, 'long')} SELECT * FROM {name(other)}")
    assert sorted(row["tensor_key"] for row in spark.table(table).collect()) == ["a", "b"]
    spark.sql(f"CREATE OR REPLACE TABLE {table} OPTIONS (name_col 'k') AS SELECT 'a' AS k, 1 AS v, 2 AS w")
    message = error_of(lambda: spark.sql(f"INSERT INTO {name(path, 'long')} SELECT * FROM {name(other)}"))
    assert_says(message, "`long`", "cannot be written", "like those that were written")


@pytest.mark.short
def test_insert_by_key_takes_columns_where_they_were_written(spark: SparkSession, path: Path, table: str) -> None:
    spark.sql(f"CREATE TABLE {table} OPTIONS (name_col 'id') AS SELECT array(1F) AS x, array(2L) AS y, 0 AS id")
    spark.sql(f"INSERT INTO {table} VALUES (array(3), array(4), 1)")
    spark.sql(f"INSERT INTO {table} SELECT array(5) AS id, array(6), 2 AS y")
    spark.sql(f"INSERT INTO {table} (y, id, x) VALUES (array(8), 3, array(7))")
    spark.sql(f"INSERT INTO {table} BY NAME SELECT array(9) AS x, array(10) AS y, 4 AS id")
    spark.sql("SELECT array(12) AS y, 5 AS id, array(11) AS x").writeTo(table).append()
    found = {key: tensor.array.tolist() for shard in Dataset(path).shards for key, tensor in load(shard).items()}
    assert found == {f"{key}__{column}": [2 * key + 1 + at] for key in range(6) for at, column in enumerate("xy")}
    before = listing(path)
    with no_job(spark):
        assert_says(error_of(lambda: spark.sql(f"INSERT INTO {table} SELECT 6, array(1), array(2)")), "`x`", "ARRAY")
        assert_says(error_of(lambda: spark.sql(f"INSERT INTO {table} VALUES (array(1), 7)")), "ARITY_MISMATCH", "`id`")
    assert listing(path) == before


def by_key(path: Path) -> dict[str, object]:
    """All tensors of the dataset, by their names."""
    return {key: tensor.array.tolist() for shard in Dataset(path).shards for key, tensor in load(shard).items()}


@pytest.mark.short
def test_numbers_by_key_are_inserted_by_position(spark: SparkSession, path: Path, table: str) -> None:
    spark.sql(f"CREATE TABLE {table} OPTIONS (name_col 'id') AS SELECT 1 AS y, 2 AS id, 3 AS z")
    assert Dataset(path).manifest["key_place"] == 1
    spark.sql(f"INSERT INTO {table} VALUES (4, 5, 6)")
    # The order of an append's own rows changes nothing.
    write(spark.sql("SELECT 8 AS id, 7 AS y, 9 AS z"), path, name_col="id")
    spark.sql(f"INSERT INTO {table} SELECT 10, 11, 12")
    spark.sql(f"INSERT OVERWRITE {table} SELECT y, id, z FROM VALUES (1, 2, 3), (4, 5, 6) AS t(y, id, z)")
    spark.sql(f"INSERT INTO {table} (z, id, y) VALUES (9, 8, 7)")
    assert by_key(path) == {"2__y": 1, "2__z": 3, "5__y": 4, "5__z": 6, "8__y": 7, "8__z": 9}
    assert_says(error_of(lambda: spark.sql(f"INSERT INTO {table} VALUES (1, 2)")), "ARITY_MISMATCH", "`id`")


def test_keys_that_are_tensors_too_are_inserted_by_position(spark: SparkSession, path: Path, table: str) -> None:
    write(spark.sql("SELECT 1 AS y, 2 AS id"), path, name_col="id", columns="y,id")
    spark.sql(f"INSERT INTO {table} VALUES (3, 4)")
    assert by_key(path) == {"2__y": 1, "2__id": 2, "4__y": 3, "4__id": 4}


def test_numbers_by_key_of_an_older_version_are_inserted_by_name(spark: SparkSession, path: Path, table: str) -> None:
    """Where the column of keys was is not recorded there, and a number could be one."""
    spark.sql(f"CREATE TABLE {table} OPTIONS (name_col 'id') AS SELECT 1 AS y, 2 AS id")
    manifest = Dataset(path).manifest
    del manifest["key_place"]
    (path / MANIFEST).write_text(json.dumps(manifest | {"format_version": "1.2"}))
    spark.sql(f"INSERT INTO {table} SELECT 3 AS y, 4 AS id")
    assert by_key(path) == {"2": 1, "4": 3}
    assert "key_place" not in Dataset(path).manifest
    assert_says(error_of(lambda: spark.sql(f"INSERT INTO {table} VALUES (5, 6)")), "`id`", "AS id")


@pytest.mark.short
def test_ragged_columns_stay_ragged_when_rows_are_replaced(spark: SparkSession, path: Path, table: str) -> None:
    spark.sql(f"CREATE TABLE {table} OPTIONS (batch_size 2, ragged 'ids') AS SELECT array(1, 2) AS ids, array(1) AS x")
    write(spark.sql("SELECT array(3) AS ids, array(2) AS x"), path, batch_size=2)
    assert json.loads(Dataset(path).manifest["options"]["ragged"]) == ["ids"]

    def kinds() -> list[str]:
        return [column.get("kind", "fixed") for column in Dataset(path).manifest["schema"]]

    other_lengths = "VALUES (array(1), array(5)), (array(2, 3, 4), array(6))"
    spark.sql(f"INSERT OVERWRITE {table} {other_lengths}")
    assert kinds() == ["ragged", "fixed"]
    spark.sql(f"INSERT OVERWRITE {table} WITH (batch_size = 1) VALUES (array(7, 8), array(9))")
    assert kinds() == ["ragged", "fixed"]
    spark.sql("SELECT array(1, 2) AS ids, array(3) AS x").writeTo(table).overwrite(lit(True))
    assert kinds() == ["ragged", "fixed"]
    spark.sql(f"INSERT OVERWRITE {table} SELECT * FROM {other_lengths} AS t(ids, x) WHERE false")
    spark.sql(f"INSERT INTO {table} {other_lengths}")
    decoded = spark.read.format("safetensors").options(layout="rows", decode="true").load(str(path))
    assert [tuple(row) for row in decoded.collect()] == [([1], [5]), ([2, 3, 4], [6])]
    # What an option names comes first.
    spark.sql(f"INSERT OVERWRITE {table} WITH (batch_size = 2, ragged = 'x') {other_lengths.replace('2, 3, 4', '2')}")
    assert kinds() == ["fixed", "ragged"]


@pytest.mark.short
def test_insert_goes_on_with_the_options_of_the_last_write(spark: SparkSession, path: Path, table: str) -> None:
    create(spark, table, 1.5)
    numbers(spark, 2.5, 3.5, 4.5).createOrReplaceTempView("more")
    spark.sql(f"INSERT INTO {table} SELECT * FROM more")
    spark.sql(f"INSERT INTO {table} WITH (batch_size = 1) TABLE more")
    spark.sql(f"INSERT INTO {table} (x) VALUES (array(5.5F))")
    assert shards(path) == [[1.5], [2.5, 3.5], [4.5], [2.5], [3.5], [4.5], [5.5]]
    spark.sql(f"CREATE OR REPLACE TABLE {table} OPTIONS (name_col 'k') AS SELECT 'a' AS k, array(6.5F) AS x")
    spark.sql(f"INSERT INTO {table} SELECT 'b' AS k, array(7.5F, 8.5F) AS x")
    found = {key: tensor.array.tolist() for shard in Dataset(path).shards for key, tensor in load(shard).items()}
    assert found == {"a": [6.5], "b": [7.5, 8.5]}


@pytest.mark.short
def test_insert_takes_columns_by_position_and_dataframes_by_name(spark: SparkSession, path: Path, table: str) -> None:
    spark.sql(f"CREATE TABLE {table} OPTIONS (batch_size 1) AS SELECT array(1F) AS x, 1L AS y, 2L AS z, 'a' AS t")
    spark.sql(f"INSERT INTO {table} VALUES (array(2.5), 3, 4, 'b')")
    spark.sql(f"INSERT INTO {table} SELECT array(3), 5 AS z, 6 AS y, 'c' AS x")
    spark.sql(f"INSERT INTO {table} (t, z, y, x) VALUES ('d', 8, 7, array(4))")
    spark.sql("SELECT 'e' AS t, 10 AS z, 9 AS y, array(5) AS x").writeTo(table).append()
    decoded = spark.read.format("safetensors").options(layout="rows", decode="true").load(str(path))
    assert [tuple(row) for row in decoded.collect()] == [
        ([1.0], 1, 2, "a"),
        ([2.5], 3, 4, "b"),
        ([3.0], 5, 6, "c"),
        ([4.0], 7, 8, "d"),
        ([5.0], 9, 10, "e"),
    ]
    spark.sql(f"INSERT OVERWRITE {table} SELECT array(6), 11, 12, 'f'")
    decoded = spark.read.format("safetensors").options(layout="rows", decode="true").load(str(path))
    assert [tuple(row) for row in decoded.collect()] == [([6.0], 11, 12, "f")]


@pytest.mark.short
def test_dataframes_write_to_a_path(spark: SparkSession, path: Path, table: str) -> None:
    numbers(spark, 1.5, 2.5).writeTo(table).option("batch_size", 2).create()
    numbers(spark, 3.5, 4.5).writeTo(table).append()
    numbers(spark, 5.5, 6.5).writeTo(table).option("batch_size", "1").append()
    numbers(spark, 7.5, 8.5).write.insertInto(table)
    assert shards(path) == [[1.5, 2.5], [3.5, 4.5], [5.5], [6.5], [7.5], [8.5]]
    assert rows(spark.table(table)) == [[value + 0.5] for value in range(1, 9)]
    numbers(spark, 9.5, 8.5).writeTo(table).overwrite(lit(True))
    assert shards(path) == [[9.5], [8.5]]
    numbers(spark, 7.5, 6.5).writeTo(table).using("safetensors").option("batch_size", 2).createOrReplace()
    assert shards(path) == [[7.5, 6.5]]


def test_save_as_table_by_path(spark: SparkSession, path: Path, table: str) -> None:
    def save(mode: str, value: float) -> None:
        writer = numbers(spark, value).write.format("safetensors").mode(mode)
        writer.option("batch_size", 1).saveAsTable(table)

    save("append", 1.5)
    save("append", 2.5)
    save("ignore", 3.5)
    assert_says(error_of(lambda: save("errorifexists", 4.5)), str(path))
    assert shards(path) == [[1.5], [2.5]]
    save("overwrite", 5.5)
    assert shards(path) == [[5.5]]


@pytest.mark.short
def test_dataset_by_key_is_read_by_key(spark: SparkSession, path: Path, table: str) -> None:
    spark.sql(f"CREATE TABLE {table} OPTIONS (name_col 'id') AS SELECT id, array(id) AS x FROM range(0, 3, 1, 1)")
    query = "SELECT tensor_key, safetensors.st_to_array_long(tensor) AS v FROM"
    expected = [("0", [0]), ("1", [1]), ("2", [2])]
    for there in (table, name(path, "long")):
        assert [tuple(row) for row in spark.sql(f"{query} {there}").collect()] == expected
    assert spark.table(name(path, "wide")).columns == ["0", "1", "2"]


def test_rows_of_a_dataset_by_key_are_refused_with_what_to_do(spark: SparkSession, path: Path) -> None:
    write(spark.sql("SELECT 'a' AS k, array(1.0F) AS x"), path, name_col="k")
    with pytest.raises(PySparkException) as raised:
        spark.sql(f"SELECT * FROM safetensors.rows.`{path}`")
    assert "was written by key, with `name_col`, and has no samples" in str(raised.value)
    assert f"safetensors.long.`{path}`" in str(raised.value)
    assert spark.table(f"safetensors.long.`{path}/dataset_manifest.json`").count() == 1


@pytest.mark.short
def test_layout_is_a_part_of_the_name_and_no_option(spark: SparkSession, path: Path, table: str) -> None:
    create(spark, table, 1.5)
    for df in (
        spark.sql(f"SELECT * FROM {table} WITH (layout = 'long')"),
        spark.read.option("layout", "long").table(table),
    ):
        assert_says(error_of(df.collect), "`layout`", name(path, "long"))
    assert spark.sql(f"SELECT * FROM {table} WITH (layout = 'wide')").columns == ["x"]
    error = error_of(spark.sql(f"SELECT * FROM {table} WITH (mergeSchema = true)").collect)
    assert_says(error, "`mergeSchema`", "`spark.sql.catalog.safetensors.mergeSchema`")
    error = error_of(spark.sql(f"SELECT * FROM {table} WITH (layuot = 'wide')").collect)
    assert_says(error, "`layuot`", "`layout`")


def test_options_of_the_catalog_are_those_of_its_tables(spark: SparkSession, path: Path, table: str) -> None:
    create(spark, table, 1.5)
    spark.conf.set("spark.sql.catalog.tensors", CATALOG)
    spark.conf.set("spark.sql.catalog.tensors.layout", "long")
    assert spark.table(f"tensors.`{path}`").columns == ["tensor_key", "tensor"]
    assert spark.table(f"tensors.wide.`{path}`").columns == ["x"]
    spark.conf.set("spark.sql.catalog.slip", CATALOG)
    spark.conf.set("spark.sql.catalog.slip.layuot", "long")
    assert_says(error_of(lambda: spark.table(f"slip.`{path}`")), "`layuot`", "`layout`")


def test_files_and_uris_are_paths_too(spark: SparkSession, path: Path, table: str) -> None:
    create(spark, table, 1.5)
    shard = Dataset(path).shard
    for there in (shard, path.as_uri(), shard.as_uri(), os.path.relpath(path)):
        assert rows(spark.table(name(there))) == [[1.5]], there
    for copied in ("a.safetensors", "b.safetensors"):
        shutil.copy(shard, path.with_name(copied))
    assert rows(spark.table(name(path.parent))) == [[1.5], [1.5]]


def test_dataset_without_rows_has_the_columns_that_were_written(spark: SparkSession, path: Path, table: str) -> None:
    spark.sql(f"CREATE TABLE {table} OPTIONS (batch_size 1) AS SELECT array(1F) AS x, 1 AS y WHERE false")
    assert spark.table(table).columns == ["x", "y"]
    assert spark.table(table).collect() == []
    spark.sql(f"INSERT INTO {table} SELECT array(1F) AS x, 1 AS y")
    assert spark.table(table).count() == 1


@pytest.mark.short
def test_path_without_data_is_no_table(spark: SparkSession, path: Path, table: str) -> None:
    assert not spark.catalog.tableExists(table)
    assert_says(error_of(lambda: spark.table(table)), "TABLE_OR_VIEW_NOT_FOUND", "Path does not exist", str(path))
    assert_says(error_of(lambda: spark.sql(f"INSERT INTO {table} SELECT 1 AS x")), "TABLE_OR_VIEW_NOT_FOUND", str(path))
    assert_says(error_of(numbers(spark, 1.5).writeTo(table).append), "TABLE_OR_VIEW_NOT_FOUND", str(path))
    assert not path.exists()
    path.mkdir()
    assert not spark.catalog.tableExists(table)
    assert_says(error_of(lambda: spark.table(table)), "NOT_FOUND", "holds no safetensors files", str(path))
    create(spark, table, 1.5)
    assert spark.catalog.tableExists(table)


# Spark 4.0 asks what it replaces for its columns.
def test_damaged_dataset_exists_and_can_be_replaced(spark: SparkSession, path: Path, table: str) -> None:
    create(spark, table, 1.5)
    (path / MANIFEST).write_text("{")
    assert_says(error_of(lambda: spark.table(table)), MANIFEST, "not a valid dataset manifest")
    assert_says(error_of(lambda: create(spark, table, 2.5)), "TABLE_OR_VIEW_ALREADY_EXISTS")
    spark.sql(f"CREATE OR REPLACE TABLE {table} OPTIONS (batch_size 1) AS SELECT array(3.5F) AS x")
    assert shards(path) == rows(spark.table(table)) == [[3.5]]


def test_name_in_an_unknown_namespace_says_what_the_namespaces_are(spark: SparkSession) -> None:
    error = error_of(lambda: spark.table("safetensors.data.points"))
    assert_says(error, "`data`", "wide or long or rows", "backquotes")
    assert not spark.catalog.tableExists("safetensors.data.points")
    assert [row[0] for row in spark.sql("SHOW NAMESPACES IN safetensors").collect()] == ["wide", "long", "rows"]
    assert spark.sql("SHOW TABLES IN safetensors").collect() == []


def test_catalog_can_be_the_current_one(spark: SparkSession, path: Path, table: str) -> None:
    create(spark, table, 1.5)
    try:
        spark.sql("USE safetensors.long")
        assert spark.table(f"`{path}`").columns == ["tensor_key", "tensor"]
        assert spark.sql("SHOW TABLES").collect() == []
        assert spark.sql("SELECT st_to_array(arr_to_st(array(1), array(1), 'F32')) AS v").collect() == [([1.0],)]
    finally:
        spark.sql("USE spark_catalog.default")


@pytest.mark.short
def test_describe_tells_columns_path_and_options(spark: SparkSession, path: Path, table: str) -> None:
    create(spark, table, 1.5)
    found = {row["col_name"]: row["data_type"] for row in spark.sql(f"DESCRIBE EXTENDED {table}").collect()}
    assert found["x"] == "struct<data:binary,shape:array<int>,dtype:string>"
    assert (found["Provider"], found["Location"]) == ("safetensors", f"file:{path}")
    assert found["Table Properties"] == "[option.batch_size=2]"
    assert "'batch_size' = '2'" in spark.sql(f"SHOW CREATE TABLE {table}").collect()[0][0]


def test_cached_table_knows_of_an_insert(spark: SparkSession, path: Path, table: str) -> None:
    create(spark, table, 1.5)
    spark.sql(f"CACHE TABLE {table}")
    try:
        assert "InMemory" in spark.table(table)._jdf.queryExecution().executedPlan().toString()
        spark.sql(f"INSERT INTO {table} SELECT array(2.5F) AS x")
        assert rows(spark.table(table)) == [[1.5], [2.5]]
    finally:
        spark.sql(f"UNCACHE TABLE {table}")


def test_view_over_a_path_stays(spark: SparkSession, path: Path, table: str) -> None:
    create(spark, table, 1.5)
    spark.sql(f"CREATE VIEW points AS SELECT safetensors.st_to_array(x) AS v FROM {table}")
    try:
        spark.sql(f"INSERT INTO {table} SELECT array(2.5F) AS x")
        assert [row["v"] for row in spark.table("points").collect()] == [[1.5], [2.5]]
    finally:
        spark.sql("DROP VIEW points")


AS_SELECT = "AS SELECT array(1.5F) AS x"

REFUSALS = {
    "CREATE TABLE {new} (x array<float>)": ["AS SELECT", "USING safetensors LOCATION"],
    "CREATE OR REPLACE TABLE {table} (x array<float>)": ["AS SELECT", "USING safetensors LOCATION"],
    f"CREATE TABLE {{new}} OPTIONS (batch_size 1) PARTITIONED BY (x) {AS_SELECT}": ["PARTITIONED BY", "repartition"],
    f"CREATE TABLE {{new}} OPTIONS (batch_size 1) CLUSTER BY (x) {AS_SELECT}": ["CLUSTER BY", "repartition"],
    f"CREATE TABLE {{new}} USING parquet {AS_SELECT}": ["`parquet`", "USING safetensors"],
    f"CREATE TABLE {{new}} OPTIONS (batch_size 1) LOCATION '/elsewhere' {AS_SELECT}": ["path", "LOCATION"],
    f"CREATE TABLE {{new}} OPTIONS (batch_size 1) TBLPROPERTIES ('team' = 'a') {AS_SELECT}": ["`team`", "OPTIONS"],
    f"CREATE TABLE {{new}} {AS_SELECT}": ["`batch_size`", "`name_col`"],
    f"CREATE TABLE safetensors.other.`{{path}}` OPTIONS (batch_size 1) {AS_SELECT}": ["`other`", "wide or long"],
    "INSERT INTO {table} SELECT array(1.5F) AS x, 1 AS y": ["INSERT_COLUMN_ARITY_MISMATCH", "`x`, `y`"],
    "INSERT INTO {table} BY NAME SELECT array(1.5F) AS y": ["`y`"],
    "INSERT INTO {table} SELECT 'a'": ["`x`", "STRING"],
    "INSERT INTO {table} SELECT * FROM {table}": ["`x`", "STRUCT", "ARRAY<FLOAT>"],
    "INSERT INTO safetensors.wide.`{path}` SELECT * FROM {table}": ["`wide`", "cannot be written"],
    "DROP TABLE {table}": ["cannot be dropped", "directory"],
    "DROP TABLE {table} PURGE": ["PURGE"],
    "TRUNCATE TABLE {table}": ["cannot be deleted", "INSERT OVERWRITE", "directory"],
    "DELETE FROM {table}": ["cannot be deleted", "INSERT OVERWRITE", "directory"],
    "DELETE FROM {table} WHERE x IS NOT NULL": ["cannot be deleted", "INSERT OVERWRITE", "directory"],
    "ALTER TABLE {table} ADD COLUMN y int": ["cannot be altered", "CREATE OR REPLACE"],
    "ALTER TABLE {table} SET TBLPROPERTIES ('a' = 'b')": ["cannot be altered", "CREATE OR REPLACE"],
    "ALTER TABLE {table} RENAME TO {new}": ["cannot be renamed", "directory"],
    "CREATE NAMESPACE safetensors.data": ["layouts", "wide, long"],
    "DROP NAMESPACE safetensors.long CASCADE": ["layouts", "wide, long"],
    "SELECT * FROM {table} VERSION AS OF 1": ["versions"],
    "SELECT * FROM {table} TIMESTAMP AS OF '2026-01-01'": ["versions"],
}


@pytest.mark.parametrize("statement", REFUSALS)
def test_what_cannot_be_is_refused_and_changes_nothing(
    spark: SparkSession, path: Path, table: str, statement: str
) -> None:
    create(spark, table, 1.5)
    new = path.with_name("new")
    before = listing(path)
    with no_job(spark), pytest.raises(PySparkException) as error:
        spark.sql(statement.format(table=table, new=name(new), path=path)).collect()
    assert_says(str(error.value), *REFUSALS[statement])
    assert listing(path) == before
    assert not new.exists()
