"""Rows read back with the types that were written: sequences, text, bytes, numbers of every dtype; and refusals."""

import datetime
import json
import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from pyspark.errors import AnalysisException
from pyspark.ml.linalg import Vectors
from pyspark.sql import DataFrame, SparkSession
from safetensors.numpy import save_file

from official import BITS, NUMPY_TYPES, Tensor, load
from spark_io import assert_says, error_of, frame, no_job, write

DAY = datetime.date(1969, 12, 31)
MOMENT = datetime.datetime(2024, 2, 29, 12, 30, 15, 123456)


def save(path: Path, tensors: dict[str, Tensor]) -> None:
    """A file of any dtypes, in the order of their alignment."""
    ordered = sorted(tensors.items(), key=lambda item: -BITS[item[1].dtype])
    header, data = {}, b""
    for name, tensor in ordered:
        ends = [len(data), len(data) + len(tensor.data)]
        header[name] = {"dtype": tensor.dtype, "shape": tensor.shape, "data_offsets": ends}
        data += tensor.data
    text = json.dumps(header).encode()
    path.write_bytes(len(text).to_bytes(8, "little") + text + data)
    assert load(path) == tensors


def rows_of(spark: SparkSession, path: Path, schema: str | None = None, **options: Any) -> DataFrame:
    """The samples at a path, decoded to the types that were written or to those of a schema."""
    reader = spark.read.format("safetensors").options(layout="rows", **options)
    reader = reader.option("decode", "true") if schema is None else reader.schema(schema)
    return reader.load(str(path))


def tuples(df: DataFrame) -> list[tuple[Any, ...]]:
    return [tuple(row) for row in df.collect()]


SCHEMA = (
    "name string, ids array<bigint>, v array<float>, raw binary, n int, ok boolean, day date, ts timestamp, "
    "ntz timestamp_ntz, image array<array<smallint>>, mask array<boolean>, words array<array<double>>, b tinyint, "
    "s smallint, l bigint, f float, d double"
)

ROWS = [
    (
        name, ids, [float(i), -0.5], raw, -i, i % 2 == 0, DAY + datetime.timedelta(i), MOMENT, MOMENT,
        [[i, 2, 3], [4, 5, -i]], [True, False, i == 1], words, i, -i, i << 40, i / 3, i / 7,
    )
    for i, (name, ids, raw, words) in enumerate(
        [
            ("née 😀", [1, 2, 3], b"\xff\xd8\0", [[1.5, 2.5]]),
            ("", [], b"", []),
            ("plain", [1 << 60], b"x", [[0.0, -1.0], [3.0, 4.0]]),
        ]
    )
]  # fmt: skip


@pytest.mark.short
def test_rows_come_back_as_they_were_written(spark: SparkSession, path: Path) -> None:
    source = frame(spark, SCHEMA, *ROWS)
    write(source, path, batch_size=2, ragged="ids,words")
    back = rows_of(spark, path)
    assert back.dtypes == source.dtypes
    assert tuples(back) == tuples(source)
    assert back.count() == 3


@pytest.mark.short
def test_rows_of_ragged_columns_are_bytes_without_decode(spark: SparkSession, path: Path) -> None:
    write(
        frame(spark, "ids array<int>, t string, n int", ([1, 2], "né", 7), ([], "", 8)),
        path,
        batch_size=2,
        ragged="ids",
    )
    df = spark.read.format("safetensors").options(layout="rows", inferSchema="true").load(str(path))
    assert sorted(df.columns) == ["ids", "n", "t"]
    found = [
        {name: (bytes(row[name].data), row[name].shape, row[name].dtype) for name in df.columns} for row in df.collect()
    ]
    assert found == [
        {
            "ids": (np.array([1, 2], "<i4").tobytes(), [2], "I32"),
            "t": ("né".encode(), [3], "U8"),
            "n": (b"\7\0\0\0", [], "I32"),
        },
        {"ids": (b"", [0], "I32"), "t": (b"", [0], "U8"), "n": (b"\x08\0\0\0", [], "I32")},
    ]
    for layout in ("wide", "long"):
        df = spark.read.format("safetensors").options(layout=layout, inferSchema="true").load(str(path))
        names = df.columns if layout == "wide" else [row["tensor_key"] for row in df.collect()]
        assert sorted(names) == ["ids", "ids.offsets", "n", "t", "t.offsets"]


@pytest.mark.short
def test_schema_says_what_columns_are_read_as(spark: SparkSession, path: Path) -> None:
    write(
        frame(spark, "x array<float>, y int, t string", ([1.5, 2.5], 7, "a"), ([3.5, 4.5], 8, "b")), path, batch_size=2
    )
    back = rows_of(spark, path, "t string, x array<double>, y bigint")
    assert back.columns == ["t", "x", "y"]
    assert tuples(back) == [("a", [1.5, 2.5], 7), ("b", [3.5, 4.5], 8)]
    tensor = "struct<data: binary, shape: array<int>, dtype: string>"
    mixed = rows_of(spark, path, f"x {tensor}, t string").collect()
    assert [(row["x"].shape, row["t"]) for row in mixed] == [([2], "a"), ([2], "b")]
    assert rows_of(spark, path, "y int").where("y = 8").count() == 1
    assert rows_of(spark, path, "t string, x array<float>").where("t IS NOT NULL").count() == 2
    assert tuples(rows_of(spark, path).select("t").where("x[0] > 2").distinct()) == [("b",)]


@pytest.mark.parametrize(
    ("schema", "words"),
    [
        ("x array<int>", ["`x`", "array<int>", "F32", "array<float>"]),
        ("x float", ["`x`", "float", "[2]", "array<float>"]),
        ("x array<array<float>>", ["`x`", "array<array<float>>", "array<float>"]),
        ("t binary", ["`t`", "binary", "text", "string"]),
        ("t array<tinyint>", ["`t`", "array<tinyint>", "text", "string"]),
        ("ids string", ["`ids`", "string", "ragged", "array<int>"]),
        ("y date", ["`y`", "date", "I32", "int"]),
        ("day int", ["`day`", "int", "date"]),
        ("x decimal(10,2)", ["`x`", "decimal(10,2)", "struct<data:binary"]),
    ],
)
def test_types_that_do_not_fit_are_refused_with_those_that_do(
    spark: SparkSession, path: Path, schema: str, words: list[str]
) -> None:
    row = ([1.5, 2.5], 7, "a", [1], datetime.date(2024, 1, 1))
    write(
        frame(spark, "x array<float>, y int, t string, ids array<int>, day date", row), path, batch_size=1, ragged="ids"
    )
    with no_job(spark), pytest.raises(AnalysisException) as error:
        rows_of(spark, path, schema).collect()
    assert_says(str(error.value), *words)


@pytest.mark.short
def test_decode_needs_samples(spark: SparkSession, path: Path) -> None:
    write(frame(spark, "x array<float>", ([1.5],)), path, batch_size=1)
    reader = spark.read.format("safetensors").option("decode", "true")
    assert_says(error_of(lambda: reader.load(str(path))), "`decode`", "`wide`", "layout=rows")
    schema = spark.read.format("safetensors").schema("x array<float>").load(str(path))
    assert_says(error_of(schema.collect), "`x`", "array<float>", "`wide`", "`rows`")


def test_dtypes_of_files_without_a_manifest(spark: SparkSession, tmp_path: Path) -> None:
    """Each dtype as the type that has all its values; those that are no numbers stay bytes."""
    values: dict[str, list[Any]] = {
        "BOOL": [True, False], "U8": [0, 255], "I8": [-128, 127], "I16": [-32768, 32767], "U16": [0, 65535],
        "I32": [-(1 << 31), (1 << 31) - 1], "U32": [0, (1 << 32) - 1], "I64": [-(1 << 63), (1 << 63) - 1],
        "U64": [0, (1 << 63) - 1], "F16": [6.1e-05, -2.0], "F32": [1.5, -0.0], "F64": [1e300, math.inf],
    }  # fmt: skip
    types = {
        "BOOL": "boolean", "U8": "smallint", "I8": "tinyint", "I16": "smallint", "U16": "int", "I32": "int",
        "U32": "bigint",
        "I64": "bigint", "U64": "bigint", "F16": "float", "F32": "float", "F64": "double", "BF16": "float",
        "F8_E4M3": "float", "F8_E5M2": "float", "F8_E8M0": "float",
    }  # fmt: skip
    tensors = {}
    for dtype, numbers in values.items():
        array = np.array([numbers, numbers], NUMPY_TYPES[dtype])
        tensors[dtype] = Tensor(dtype, (2, 2), array.tobytes())
        values[dtype] = array[0].tolist()
    for dtype, data, floats in [
        ("BF16", b"\x80\x3f\x00\xc0", [1.0, -2.0]), ("F8_E4M3", b"\x38\xc0", [1.0, -2.0]),
        ("F8_E5M2", b"\x3c\xc0", [1.0, -2.0]), ("F8_E8M0", b"\x7f\x80", [1.0, 2.0]),
    ]:  # fmt: skip
        tensors[dtype] = Tensor(dtype, (2, 2), data * 2)
        values[dtype] = floats
    tensors["C64"] = Tensor("C64", (2,), bytes(16))
    save(tmp_path / "a.safetensors", tensors)
    df = rows_of(spark, tmp_path)
    assert {name: kind for name, kind in df.dtypes if name != "C64"} == {
        name: f"array<{of}>" for name, of in types.items()
    }
    assert dict(df.dtypes)["C64"] == "struct<data:binary,shape:array<int>,dtype:string>"
    for row in df.collect():
        assert {name: row[name] for name in types} == {name: values[name] for name in types}


def test_values_out_of_a_type_are_an_error(spark: SparkSession, tmp_path: Path) -> None:
    save_file(
        {"x": np.array([[1, 1 << 63]], np.uint64), "y": np.array([1 << 63], np.uint64)}, tmp_path / "a.safetensors"
    )
    for column in ("x", "y"):
        message = error_of(rows_of(spark, tmp_path).select(column).collect)
        assert_says(message, "a.safetensors", f"`{column}`", "row 0", "9223372036854775808")


@pytest.mark.short
def test_dtypes_that_differ_from_the_types_come_back_as_the_types(spark: SparkSession, path: Path) -> None:
    row = ([1.5, -2.0], [3, 4], 1.25, [7, 8], [True], Vectors.dense([1.0, 2.0]), [1.0, 2.0, 3.0, 4.0], 5)
    columns = [
        "h array<float>", "small array<int>", "wide float", "asfloat array<bigint>", "m array<boolean>",
        "image array<float>",        "n int",
    ]  # fmt: skip
    plain = frame(spark, ", ".join(columns), tuple(v for i, v in enumerate(row) if i != 5))
    vectors = spark.createDataFrame([(row[5],)], ["vec"])
    source = plain.crossJoin(vectors).coalesce(1)
    dtypes = {"h": "F16", "small": "U8", "wide": "F64", "asfloat": "F32", "m": "U8", "vec": "F32", "n": "U16"}
    write(source, path, batch_size=1, dtype=json.dumps(dtypes), shapes='{"image": [2, 2]}')
    back = rows_of(spark, path)
    assert [name for name, _ in back.dtypes] == source.columns
    assert dict(back.dtypes) == dict(source.dtypes)
    assert tuples(back) == tuples(source)
    assert tuples(rows_of(spark, path, "image array<array<float>>")) == [([[1.0, 2.0], [3.0, 4.0]],)]


def test_vectors_come_back_dense_and_as_arrays_where_a_schema_says_so(spark: SparkSession, path: Path) -> None:
    vectors = [Vectors.dense([0.5, -1.0]), Vectors.sparse(2, {1: 3.0})]
    source = spark.createDataFrame([(vector, vector) for vector in vectors], ["v", "r"]).coalesce(1)
    write(source, path, batch_size=2, ragged="r", dtype='{"v": "F32"}')
    back = rows_of(spark, path)
    assert dict(back.dtypes) == dict(source.dtypes)
    assert tuples(back) == [(Vectors.dense(vector.toArray()),) * 2 for vector in vectors]
    arrays = [vector.toArray().tolist() for vector in vectors]
    assert tuples(rows_of(spark, path, "v array<double>, r array<double>")) == [(array, array) for array in arrays]
    assert tuples(rows_of(spark, path, "v array<float>")) == [(array,) for array in arrays]


def test_kinds_of_files_without_a_manifest(spark: SparkSession, path: Path, tmp_path: Path) -> None:
    source = frame(
        spark,
        "t string, ids array<int>, day date",
        ("né", [1, 2], datetime.date(2024, 1, 1)),
        ("", [], datetime.date(1, 1, 1)),
    )
    shard = write(source, path, batch_size=2, ragged="ids").shard
    plain = tmp_path / "plain"
    plain.mkdir()
    (plain / "a.safetensors").write_bytes(shard.read_bytes())
    back = rows_of(spark, plain)
    assert dict(back.dtypes) == dict(source.dtypes)
    assert tuples(back.select(*source.columns)) == tuples(source)


def damaged(path: Path, t: Any, offsets: Any, kinds: str = '{"t":"text"}') -> Path:
    path.mkdir()
    tensors = {"t": np.frombuffer(t, np.uint8)} | ({} if offsets is None else {"t.offsets": np.asarray(offsets)})
    save_file(tensors, path / "a.safetensors", metadata={"column_kinds": kinds})
    return path


@pytest.mark.parametrize(
    ("text", "offsets", "words"),
    [
        (b"abc", [0, 2, 1, 3], ["ascending", "2 and 1", "row 1"]),
        (b"abc", [1, 2, 3], ["begin with 1", "expected 0"]),
        (b"abc", [0, 1, 2], ["2", "number of values, 3"]),
        (b"abc", [0, 1, 4], ["1 and 4", "row 1"]),
        (b"abc", [0, -1, 3], ["0 and -1"]),
        (b"abc", [], ["shape [0]"]),
        (b"abc", [[0, 3]], ["shape [1, 2]"]),
        (b"abc", np.array([0, 3], np.int32), ["I32", "I64"]),
        (b"abc", None, ["`t.offsets`"]),
        ("é".encode(), [0, 1, 2], ["UTF-8", "row 0"]),
        (b"\xff", [0, 1], ["UTF-8", "row 0"]),
    ],
)
def test_damaged_offsets_and_text_are_errors(
    spark: SparkSession, path: Path, text: bytes, offsets: Any, words: list[str]
) -> None:
    damaged(path, text, offsets)
    assert_says(error_of(rows_of(spark, path, "t string").collect), "a.safetensors", "`t`", *words)


@pytest.mark.parametrize("kinds", ["[]", "{", '{"t":"strange"}', '{"t":3}', ""])
def test_damaged_kinds_are_errors(spark: SparkSession, path: Path, kinds: str) -> None:
    damaged(path, b"abc", [0, 3], kinds)
    assert_says(error_of(lambda: rows_of(spark, path)), "a.safetensors", "column_kinds", "layout=wide")
    assert spark.read.format("safetensors").option("layout", "long").load(str(path)).count() == 2


def test_files_of_other_types_are_errors_that_name_them(spark: SparkSession, tmp_path: Path) -> None:
    save_file({"x": np.zeros((1, 2), np.float32)}, tmp_path / "a.safetensors")
    save_file({"x": np.zeros((1, 2), np.int64)}, tmp_path / "b.safetensors")
    assert_says(
        error_of(rows_of(spark, tmp_path).collect), "b.safetensors", "`x`", "array<float>", "I64", "array<bigint>"
    )
    merged = {"mergeSchema": "true"}
    assert_says(error_of(lambda: rows_of(spark, tmp_path, **merged)), "`x`", "array<float>", "array<bigint>")


def test_merged_schema_of_decoded_files(spark: SparkSession, tmp_path: Path) -> None:
    save_file({"x": np.zeros((1, 2), np.float32)}, tmp_path / "a.safetensors")
    save_file({"y": np.ones((1,), np.int64)}, tmp_path / "b.safetensors")
    df = rows_of(spark, tmp_path, mergeSchema="true")
    assert sorted(tuples(df.select("x", "y")), key=str) == [(None, 1), ([0.0, 0.0], None)]


def test_padding_is_not_read(spark: SparkSession, path: Path) -> None:
    rows = [("a", 1), ("bc", 2), ("def", 3)]
    write(frame(spark, "t string, n int", *rows), path, batch_size=2, tail_strategy="pad")
    assert tuples(rows_of(spark, path)) == rows


def test_dataset_without_rows_has_its_types(spark: SparkSession, path: Path) -> None:
    write(frame(spark, "t string, v array<float>, n array<array<int>>"), path, batch_size=1, ragged="v")
    assert rows_of(spark, path).dtypes[:2] == [("t", "string"), ("v", "array<float>")]
    assert rows_of(spark, path).collect() == []


@pytest.mark.short
def test_splits_of_a_file_give_each_row_once(spark: SparkSession, path: Path) -> None:
    count = 2000
    texts = [chr(200 + i % 50) * (i % 40) for i in range(count)]
    rows = [(texts[i], list(range(i % 23)), i) for i in range(count)]
    write(frame(spark, "t string, ids array<int>, n int", *rows), path, batch_size=count, ragged="ids")
    spark.conf.set("spark.sql.files.maxPartitionBytes", "20000")
    try:
        back = rows_of(spark, path)
        assert back.rdd.getNumPartitions() > 2
        assert tuples(back) == rows
        assert tuples(back.limit(7)) == rows[:7]
        assert tuples(back.where("n = 1234").select("t")) == [(texts[1234],)]
    finally:
        spark.conf.unset("spark.sql.files.maxPartitionBytes")


def test_nested_arrays_equal_those_that_spark_makes(spark: SparkSession, path: Path) -> None:
    source = frame(spark, "x array<array<int>>, n int", ([[1, 2, 3], [4, 5, 6]], 1), ([[1, 2, 3], [4, 5, 6]], 2))
    write(source, path, batch_size=2)
    back = rows_of(spark, path)
    assert back.groupBy("x").count().count() == 1
    assert back.join(source, "x").count() == 4
    assert back.exceptAll(source).count() == 0


@pytest.mark.short
def test_path_table_decodes_if_its_catalog_says_so(spark: SparkSession, path: Path) -> None:
    write(frame(spark, "t string, x array<float>", ("a", [1.5])), path, batch_size=1)
    catalog = "io.github.semyonsinchenko.safetensors.SafetensorsCatalog"
    spark.conf.set("spark.sql.catalog.decoded", catalog)
    spark.conf.set("spark.sql.catalog.decoded.decode", "true")
    assert tuples(spark.sql(f"SELECT * FROM decoded.`{path}`")) == [("a", [1.5])]
    assert spark.table(f"decoded.long.`{path}`").columns == ["tensor_key", "tensor"]
    late = spark.sql(f"SELECT * FROM safetensors.`{path}` WITH (decode = true)")
    assert_says(error_of(late.collect), "`decode`", "spark.sql.catalog.safetensors.decode")


@pytest.mark.short
@pytest.mark.parametrize("layout", ["rows", "wide"])
def test_a_column_that_no_shard_has_is_an_error_with_the_nearest_name(
    spark: SparkSession, path: Path, layout: str
) -> None:
    write(frame(spark, "caption string, x array<float>", ("a", [1.5])), path, batch_size=1)
    tensor = "struct<data: binary, shape: array<int>, dtype: string>"
    reader = spark.read.format("safetensors").option("layout", layout)

    def read(columns: str) -> DataFrame:
        return reader.schema(columns).load(str(path))

    with no_job(spark):
        message = error_of(lambda: read(f"x {tensor}, captoin {tensor}").select("x").collect())
        assert_says(message, "`captoin`", "not in the dataset, which has caption, ", "x", "Did you mean `caption`?")
        message = error_of(lambda: read(f"x {tensor}, other {tensor}").count())
        assert_says(message, "`other`", "not in the dataset, which has caption, ")
        assert "Did you mean" not in message
    assert read(f"CAPTION {tensor}").count() == 1
    assert read(f"`caption.offsets` {tensor}").count() == 1 if layout == "wide" else True


def test_a_column_of_some_datasets_is_null_in_others(spark: SparkSession, path: Path) -> None:
    write(frame(spark, "x int, y int", (1, 2)), path / "p=1", batch_size=1)
    write(frame(spark, "x int", (3,)), path / "p=2", batch_size=1)
    assert tuples(rows_of(spark, path, "x int, y int, p int")) == [(1, 2, 1), (3, None, 2)]
    assert_says(error_of(lambda: rows_of(spark, path, "x int, z int, p int").collect()), "`z`", "which has x, y")
    save_file({"x": np.array([5], np.int32)}, path / "p=2" / "plain.safetensors")
    (path / "p=2" / "dataset_manifest.json").unlink()
    assert {row[1] for row in tuples(rows_of(spark, path, "x int, z int, p int"))} == {None}
