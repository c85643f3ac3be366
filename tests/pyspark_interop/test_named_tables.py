"""Tables of Spark's own catalog: what is written to one is read from it, or refused before anything is written."""

import datetime
from collections.abc import Iterator
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from pyspark.errors import AnalysisException
from pyspark.ml.linalg import Vectors
from pyspark.sql import SparkSession

from spark_io import Dataset, assert_says, error_of, files, frame, no_job, write

COLUMNS = "x array<float>, y bigint, t string"
VALUES = "(array(1.5, 2.5), 7, 'née'), (array(3.5, 4.5), 8, '')"
ROWS = [([1.5, 2.5], 7, "née"), ([3.5, 4.5], 8, "")]


@pytest.fixture
def table(spark: SparkSession) -> Iterator[str]:
    """A name for a table, which does not exist yet."""
    name = "named"
    yield name
    spark.sql(f"DROP TABLE IF EXISTS {name}")


def warehouse(spark: SparkSession) -> Path:
    return Path(str(spark.conf.get("spark.sql.warehouse.dir")).removeprefix("file:"))


def create(
    spark: SparkSession, table: str, columns: str = COLUMNS, options: str = "batch_size 2", rest: str = ""
) -> None:
    spark.sql(f"CREATE TABLE {table} ({columns}) USING safetensors OPTIONS ({options}) {rest}")


def rows(spark: SparkSession, table: str) -> list[tuple[Any, ...]]:
    return [tuple(row) for row in spark.table(table).collect()]


@pytest.mark.short
def test_insert_takes_columns_by_position_and_select_returns_them(spark: SparkSession, table: str) -> None:
    create(spark, table)
    assert rows(spark, table) == []
    assert spark.table(table).count() == 0
    spark.sql(f"INSERT INTO {table} VALUES {VALUES}")
    assert rows(spark, table) == ROWS
    assert spark.table(table).dtypes == [("x", "array<float>"), ("y", "bigint"), ("t", "string")]
    spark.sql(f"INSERT INTO {table} SELECT array(y, y) AS a, y AS x, 't' FROM {table} WHERE y = 8")
    assert rows(spark, table) == [*ROWS, ([8.0, 8.0], 8, "t")]
    spark.sql(f"INSERT INTO {table} (t, y, x) VALUES ('z', 1, array(0, 1))")
    spark.sql(f"INSERT INTO {table} BY NAME SELECT 2 AS y, '' AS t, array(2, 3) AS x")
    assert rows(spark, table)[3:] == [([0.0, 1.0], 1, "z"), ([2.0, 3.0], 2, "")]
    assert spark.sql(f"SELECT count(*), sum(y), max(x[1]) FROM {table} WHERE t <> ''").collect() == [(3, 16, 8.0)]
    spark.sql(f"INSERT OVERWRITE {table} VALUES {VALUES}")
    assert rows(spark, table) == ROWS
    spark.sql(f"DROP TABLE {table}")
    assert not (warehouse(spark) / table).exists()


@pytest.mark.short
def test_save_as_table_create_and_ctas_can_be_read(spark: SparkSession, table: str) -> None:
    source = frame(spark, COLUMNS, *ROWS)
    source.createOrReplaceTempView("source")
    source.write.format("safetensors").option("batch_size", 2).saveAsTable(table)
    assert rows(spark, table) == ROWS
    # Spark keeps no options of `saveAsTable`: those of the last write are taken.
    source.write.format("safetensors").mode("append").saveAsTable(table)
    spark.sql(f"INSERT INTO {table} TABLE source")
    source.write.insertInto(table)
    assert rows(spark, table) == ROWS * 4
    source.write.format("safetensors").option("batch_size", 1).mode("overwrite").saveAsTable(table)
    assert rows(spark, table) == ROWS
    spark.sql(f"DROP TABLE {table}")
    source.writeTo(table).using("safetensors").option("batch_size", 2).create()
    source.writeTo(table).append()
    assert rows(spark, table) == ROWS * 2
    spark.sql(f"DROP TABLE {table}")
    spark.sql(f"CREATE TABLE {table} USING safetensors OPTIONS (batch_size 2) AS SELECT * FROM source")
    assert rows(spark, table) == ROWS
    assert spark.table(table).dtypes == source.dtypes


def test_every_type_that_can_be_written_is_read(spark: SparkSession, table: str) -> None:
    moment = datetime.datetime(2024, 2, 29, 12, 30, 15, 123456)
    columns = (
        "a boolean, b tinyint, c smallint, d int, e bigint, f float, g double, h date, i timestamp, j timestamp_ntz, "
        "k binary, l varchar(3), m array<array<int>>, n array<boolean>, o array<double>, "
        "p struct<data: binary, shape: array<int>, dtype: string>"
    )
    row = (
        True, 1, -2, 3, -4, 0.5, 0.25, datetime.date(2024, 2, 29), moment, moment, bytearray(b"\xff"), "abc",
        [[1, 2], [3, 4]],
        [True, False], [0.125], (bytearray(b"\0\1"), [2], "U8"),
    )  # fmt: skip
    create(spark, table, columns)
    frame(spark, columns.replace("varchar(3)", "string"), row).write.insertInto(table)
    assert rows(spark, table) == [row]


def test_vectors_come_back_as_vectors(spark: SparkSession, table: str) -> None:
    source = spark.createDataFrame([(Vectors.dense([1.0, 2.0]), 1), (Vectors.sparse(2, {1: 5.0}), 2)], ["v", "y"])
    source.coalesce(1).write.format("safetensors").option("batch_size", 2).saveAsTable(table)
    assert [row["v"].toArray().tolist() for row in spark.table(table).collect()] == [[1.0, 2.0], [0.0, 5.0]]


def test_ragged_columns_and_options_of_the_table(spark: SparkSession, table: str) -> None:
    create(spark, table, "ids array<int>, points array<array<int>>", "batch_size 2, ragged 'ids,points'")
    spark.sql(f"INSERT INTO {table} VALUES (array(1, 2), array(array(1, 2))), (array(), array()), (array(3), array())")
    assert rows(spark, table) == [([1, 2], [[1, 2]]), ([], []), ([3], [])]


@pytest.mark.short
def test_tensor_structs_are_the_rows_that_were_written(spark: SparkSession, table: str) -> None:
    source = spark.sql("SELECT arr_to_st(array(id, 1), array(2), 'F32') AS x FROM range(0, 3, 1, 1)")
    source.write.format("safetensors").option("batch_size", 2).saveAsTable(table)
    assert [row["x"].shape for row in spark.table(table).collect()] == [[2]] * 3
    assert rows(spark, table) == [tuple(row) for row in source.collect()]


@pytest.mark.short
def test_tables_by_key_have_a_row_for_each_key(spark: SparkSession, table: str) -> None:
    create(spark, table, "k string, x array<float>", "name_col 'k', generate_index true")
    assert rows(spark, table) == []
    spark.sql(f"INSERT INTO {table} VALUES ('a', array(1.5)), ('b', array(2.5, 3.5))")
    spark.sql(f"INSERT INTO {table} (x, k) VALUES (array(), 'c')")
    assert rows(spark, table) == [("a", [1.5]), ("b", [2.5, 3.5]), ("c", [])]
    assert spark.sql(f"SELECT x FROM {table} WHERE k = 'b'").collect() == [([2.5, 3.5],)]
    assert spark.sql(f"SELECT k FROM {table} WHERE get(x, 0) < 2").collect() == [("a",)]
    assert (spark.table(table).count(), spark.table(table).select("k").distinct().count()) == (3, 3)
    spark.sql(f"INSERT OVERWRITE {table} VALUES ('d', array(9))")
    assert rows(spark, table) == [("d", [9.0])]


def test_tables_by_number_with_several_columns(spark: SparkSession, table: str) -> None:
    columns = "x array<float>, id int, y bigint, z struct<data: binary, shape: array<int>, dtype: string>"
    create(spark, table, columns, "name_col 'id'")
    spark.sql(f"INSERT INTO {table} SELECT array(id, 0.5), -id, id, arr_to_st(array(id), array(1), 'U8') FROM range(3)")
    found = sorted(rows(spark, table), key=lambda row: row[2])
    assert found == [([float(i), 0.5], -i, i, (bytearray([i]), [1], "U8")) for i in range(3)]
    assert spark.sql(f"SELECT id, y FROM {table} WHERE id = -2").collect() == [(-2, 2)]
    assert spark.sql(f"SELECT z.shape FROM {table} WHERE y = 1").collect() == [([1],)]
    assert spark.table(table).count() == 3
    source = spark.table(table).where("id = 0")
    source.write.format("safetensors").option("name_col", "id").mode("overwrite").saveAsTable(f"{table}_copy")
    try:
        assert spark.table(f"{table}_copy").collect() == source.collect()
    finally:
        spark.sql(f"DROP TABLE {table}_copy")


# Columns, options, values, and what the message must say.
REFUSED: dict[str, tuple[str, str, str, list[str]]] = {
    "a column left out": (
        "x array<int>, y int",
        "batch_size 1, columns 'x'",
        "(array(1), 2)",
        ["`y`", "`columns`"],
    ),
    "another layout": (
        "x array<int>, y int",
        "batch_size 1, layout 'wide'",
        "(array(1), 2)",
        ["`layout`", "`wide`", "`x`"],
    ),
    "a dtype by key that does not fit": (
        "k string, x array<float>",
        "name_col 'k', dtype 'F64'",
        "('a', array(1))",
        ["`x`", "array<float>", "F64", "array<double>"],
    ),
    "names that end alike": (
        "k string, a int, b__a int",
        "name_col 'k'",
        "('a', 1, 2)",
        ["`__b__a`", "`__a`", "`kv_separator`"],
    ),
    "a shape of no single value": (
        "x array<int>, y int",
        "batch_size 1, shapes '{\"y\": [2]}'",
        "(array(1), 2)",
        ["`y`"],
    ),
    "no mode": ("x array<int>", "metadata '{}'", "(array(1))", ["`batch_size`", "`name_col`"]),
    "text by key": ("k string, t string", "name_col 'k'", "('a', 'b')", ["`t`", "string"]),
}


@pytest.mark.parametrize("case", REFUSED)
def test_what_could_not_be_read_is_refused_before_anything_is_written(
    spark: SparkSession, table: str, case: str
) -> None:
    columns, options, values, words = REFUSED[case]
    create(spark, table, columns, options)
    with no_job(spark), pytest.raises(AnalysisException) as error:
        spark.sql(f"INSERT INTO {table} VALUES {values}")
    assert_says(str(error.value), *words)
    assert files(warehouse(spark) / table) == {}


@pytest.mark.short
def test_columns_that_no_row_can_fill_are_refused_when_the_table_is_created(spark: SparkSession, table: str) -> None:
    with pytest.raises(AnalysisException) as error:
        create(spark, table, "y int, x array<decimal(10,2)>")
    assert_says(str(error.value), "`x`", "array<decimal(10,2)>", "cast")
    assert_says(
        error_of(lambda: spark.sql(f"CREATE TABLE {table} USING safetensors AS SELECT map(1, 2) AS m")), "`m`", "map"
    )
    assert not spark.catalog.tableExists(table)


def test_columns_that_no_row_can_fill_are_refused_by_insert(spark: SparkSession, table: str, path: Path) -> None:
    """At a LOCATION, where such a column may be one of partitions."""
    create(spark, table, "y int, x array<decimal(10,2)>", rest=f"LOCATION '{path}'")
    with no_job(spark), pytest.raises(AnalysisException) as error:
        spark.sql(f"INSERT INTO {table} VALUES (1, array(1.5))")
    assert_says(str(error.value), "`x`", "array<decimal(10,2)>", "cast")
    spark.sql(f"DROP TABLE {table}")


def test_partition_columns_may_be_of_any_type(spark: SparkSession, table: str, tmp_path: Path) -> None:
    write(frame(spark, "x int", (7,)), tmp_path / "p=1.50", batch_size=1)
    create(spark, table, "x int, p decimal(10,2)", rest=f"LOCATION '{tmp_path}'")
    assert rows(spark, table) == [(7, Decimal("1.50"))]


@pytest.mark.short
def test_table_without_columns_says_where_they_come_from(spark: SparkSession, table: str, path: Path) -> None:
    write(frame(spark, COLUMNS, *ROWS), path, batch_size=2)
    message = error_of(lambda: spark.sql(f"CREATE TABLE {table} USING safetensors LOCATION '{path}'"))
    assert_says(message, "CREATE TABLE name (column type, ...)", "OPTIONS (layout 'rows', decode true)")
    spark.sql(f"CREATE TABLE {table} USING safetensors OPTIONS (layout 'rows', decode true) LOCATION '{path}'")
    assert rows(spark, table) == ROWS


ALTERED = {
    "by samples": (COLUMNS, "batch_size 2", VALUES, "(array(1.5, 2.5), 7, 'née', 9)"),
    "by keys": ("k string, x array<float>", "name_col 'k'", "('a', array(1.5))", "('a', array(1.5), 9)"),
    "by keys, several": ("k string, x int, y int", "name_col 'k'", "('a', 1, 2)", "('a', 1, 2, 9)"),
}


@pytest.mark.short
@pytest.mark.parametrize("case", ALTERED)
def test_an_added_column_is_an_error_until_rows_have_it(spark: SparkSession, table: str, case: str) -> None:
    columns, options, values, more = ALTERED[case]
    create(spark, table, columns, options)
    spark.sql(f"INSERT INTO {table} VALUES {values}")
    before = rows(spark, table)
    spark.sql(f"ALTER TABLE {table} ADD COLUMNS (w int)")
    for query in (f"SELECT * FROM {table}", f"SELECT x FROM {table}"):
        assert_says(
            error_of(spark.sql(query).collect), "`w`", "not in the dataset", "x", "ALTER TABLE", "INSERT OVERWRITE"
        )
    assert_says(error_of(lambda: spark.sql(f"INSERT INTO {table} VALUES {more}")), "columns", "w")
    spark.sql(f"ALTER TABLE {table} DROP COLUMN w")
    assert rows(spark, table) == before
    spark.sql(f"ALTER TABLE {table} ADD COLUMNS (w int)")
    spark.sql(f"INSERT OVERWRITE {table} VALUES {more}")
    assert [row[-1] for row in rows(spark, table)] == [9]


def test_a_column_of_keys_may_be_declared_by_another_name(spark: SparkSession, table: str, path: Path) -> None:
    write(frame(spark, "k string, x int", ("a", 1)), path, name_col="k")
    create(spark, table, "k string, v int", "name_col 'k'", f"LOCATION '{path}'")
    assert rows(spark, table) == [("a", 1)]


@pytest.mark.parametrize("statement", ["DELETE FROM {}", "DELETE FROM {} WHERE y = 7", "TRUNCATE TABLE {}"])
def test_rows_are_not_deleted_and_the_error_says_what_to_do(spark: SparkSession, table: str, statement: str) -> None:
    create(spark, table)
    spark.sql(f"INSERT INTO {table} VALUES {VALUES}")
    assert_says(error_of(lambda: spark.sql(statement.format(table))), "cannot be deleted", "INSERT OVERWRITE")
    assert rows(spark, table) == ROWS
    spark.sql(f"INSERT OVERWRITE {table} SELECT * FROM {table} WHERE y <> 7")
    assert rows(spark, table) == ROWS[1:]
    spark.sql(f"INSERT OVERWRITE {table} SELECT * FROM {table} WHERE false")
    assert rows(spark, table) == []


def test_numbers_of_another_dtype_come_back_as_declared(spark: SparkSession, table: str) -> None:
    create(
        spark,
        table,
        "x array<float>, y int, z array<double>",
        """batch_size 2, dtype '{"x": "F16", "y": "U8", "z": "F32"}'""",
    )
    spark.sql(f"INSERT INTO {table} VALUES (array(1.5), 7, array(0.25)), (array(-2), 255, array(3))")
    assert rows(spark, table) == [([1.5], 7, [0.25]), ([-2.0], 255, [3.0])]


def test_nulls_are_errors_that_leave_the_table_as_it_was(spark: SparkSession, table: str) -> None:
    create(spark, table)
    spark.sql(f"INSERT INTO {table} VALUES {VALUES}")
    for values in ("(array(1.5, null), 1, 'a')", "(array(1.5, 2), null, 'a')", "(array(1.5, 2), 1, null)"):
        assert_says(error_of(lambda values=values: spark.sql(f"INSERT INTO {table} VALUES {values}")), "null", "row 0")  # type: ignore[misc]
    assert rows(spark, table) == ROWS


@pytest.mark.short
@pytest.mark.parametrize("way", ["LOCATION", "OPTIONS", "saveAsTable"])
def test_relative_path_is_below_the_warehouse_as_for_parquet(spark: SparkSession, table: str, way: str) -> None:
    def make(name: str, source: str, options: str) -> None:
        if way == "LOCATION":
            spark.sql(
                f"CREATE TABLE {name} (x array<float>) USING {source} OPTIONS ({options}) LOCATION 'relative/{name}'"
            )
        elif way == "OPTIONS":
            spark.sql(
                f"CREATE TABLE {name} (x array<float>) USING {source} OPTIONS ({options}, path 'relative/{name}')"
            )
        else:
            writer = frame(spark, "x array<float>", ([0.5],)).write.format(source).option("batch_size", 1)
            writer.option("path", f"relative/{name}").saveAsTable(name)
        spark.sql(f"INSERT INTO {name} VALUES (array(1.5))")

    table, beside = f"{table}_{way.lower()}", f"beside_{way.lower()}"
    try:
        make(table, "safetensors", "batch_size 1")
        make(beside, "parquet", "compression 'none'")
        below = warehouse(spark) / "relative"
        assert (below / beside).is_dir()
        assert Dataset(below / table).samples
        assert sorted(rows(spark, table)) == sorted(rows(spark, beside))
        assert not Path("relative").exists()
    finally:
        spark.sql(f"DROP TABLE IF EXISTS {beside}")
        spark.sql(f"DROP TABLE IF EXISTS {table}")


@pytest.mark.short
def test_describe_and_show_create_table(spark: SparkSession, table: str, path: Path) -> None:
    create(spark, table, rest=f"LOCATION '{path}'")
    found = {row["col_name"]: row["data_type"] for row in spark.sql(f"DESCRIBE EXTENDED {table}").collect()}
    assert (found["x"], found["y"], found["Provider"]) == ("array<float>", "bigint", "safetensors")
    assert found["Location"].endswith(str(path))
    spark.sql(f"INSERT INTO {table} VALUES {VALUES}")
    made = spark.sql(f"SHOW CREATE TABLE {table}").collect()[0][0]
    assert_says(made, "ARRAY<FLOAT>", "USING safetensors", "'batch_size' = '2'", str(path))
    spark.sql(f"DROP TABLE {table}")
    spark.sql(made)
    assert rows(spark, table) == ROWS


def test_table_over_a_plain_folder_has_its_columns(spark: SparkSession, table: str, path: Path, tmp_path: Path) -> None:
    create(spark, table, rest=f"LOCATION '{path}'")
    spark.sql(f"INSERT INTO {table} VALUES {VALUES}")
    spark.sql(f"DROP TABLE {table}")
    folder = tmp_path / "folder"
    folder.mkdir()
    for shard in Dataset(path).shards:
        (folder / shard.name).write_bytes(shard.read_bytes())
    create(spark, table, rest=f"LOCATION '{folder}'")
    assert rows(spark, table) == ROWS
    spark.sql(f"DROP TABLE {table}")
    create(spark, table, "x array<int>", rest=f"LOCATION '{folder}'")
    assert_says(error_of(spark.table(table).collect), "`x`", "array<int>", "array<float>")
