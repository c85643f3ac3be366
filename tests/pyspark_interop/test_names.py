"""Tensors of any name, from files of the official library to rows and back."""

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from pyspark.errors import AnalysisException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.functions import col
from pyspark.sql.types import StructField, StructType
from safetensors.numpy import save_file

from official import load
from spark_io import TENSOR_STRUCT, assert_says, error_of, read, wide_schema, write

# Every plane of Unicode, and every character that means something to JSON, to SQL, or to a path.
SPECIAL = (
    "".join(chr((plane << 16) + 0xFFFD) for plane in range(17)) + "\0\n\x1f\x7f\"\\/.`'*:%,;[]{}()$ _-éßİΣ\u2028\ufeff"
)
NAMES = [
    "", " ", ".", "a.b", "data", "x.shape", "`", "``", "a`b", 'a"b', "a'b", "*", "a.*", "a\nb", "\0", "é",
    "e\u0301", "ß", "ss", "😀", "\uffff", "\U0010ffff", "_metadata", "__metadata", "__metadata__x",
    " __metadata__", "tensor_key", "n" * 100_000,
]  # fmt: skip

names = st.text(st.one_of(st.sampled_from(SPECIAL), st.characters(codec="utf-8")), max_size=8)
sets_of_names = st.lists(names.filter(lambda name: name != "__metadata__"), min_size=1, max_size=30, unique=True)


@pytest.fixture
def case_sensitive(spark: SparkSession) -> Iterator[None]:
    spark.conf.set("spark.sql.caseSensitive", "true")
    yield
    spark.conf.unset("spark.sql.caseSensitive")


def save(path: Path, tensors: list[str]) -> dict[str, int]:
    """A file with these tensors, each with a number of its own."""
    numbers = {name: number for number, name in enumerate(tensors)}
    save_file({name: np.array(number, np.int32) for name, number in numbers.items()}, path)
    return numbers


def number_of(data: bytearray) -> int:
    return int.from_bytes(data, "little")


def wide_numbers(df: DataFrame) -> dict[str, int]:
    [row] = df.collect()
    return {name: number_of(tensor.data) for name, tensor in zip(df.columns, row, strict=True)}


def long(spark: SparkSession, path: Path) -> DataFrame:
    return spark.read.format("safetensors").option("layout", "long").load(str(path))


def long_numbers(df: DataFrame) -> dict[str, int]:
    return {row.tensor_key: number_of(row.tensor.data) for row in df.collect()}


def quoted(name: str) -> str:
    return "`" + name.replace("`", "``") + "`"


@pytest.mark.usefixtures("case_sensitive")
@settings(
    max_examples=5,
    deadline=None,
    derandomize=True,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow, HealthCheck.data_too_large],
)
@given(tensors=sets_of_names)
def test_any_names_pass_both_ways_in_every_layout(
    spark: SparkSession, tmp_path_factory: pytest.TempPathFactory, tensors: list[str]
) -> None:
    path = tmp_path_factory.mktemp("names")
    file = path / "names.safetensors"
    numbers = save(file, tensors)
    assert wide_numbers(read(spark, file)) == numbers
    assert wide_numbers(read(spark, file, wide_schema(*tensors))) == numbers
    assert wide_numbers(read(spark, file).select(*map(quoted, tensors))) == numbers
    assert long_numbers(long(spark, file)) == numbers
    keyed = write(long(spark, file).select("tensor_key", "tensor").coalesce(1), path / "keyed", name_col="tensor_key")
    assert load(keyed.shard) == load(file)
    assert long_numbers(long(spark, keyed.path)) == numbers


@pytest.fixture(scope="module")
def file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A file with all of the names."""
    path = tmp_path_factory.mktemp("names") / "names.safetensors"
    save(path, NAMES)
    return path


@pytest.mark.short
def test_a_tensor_is_selected_by_its_name_and_its_fields_by_theirs(spark: SparkSession, file: Path) -> None:
    df = read(spark, file)
    selected = df.select(*(col(quoted(name) + ".data") for name in NAMES), *(quoted(name) + ".dtype" for name in NAMES))
    [row] = selected.collect()
    assert [number_of(data) for data in row[: len(NAMES)]] == list(range(len(NAMES)))
    assert set(row[len(NAMES) :]) == {"I32"}


@pytest.mark.short
def test_a_key_finds_its_tensor(spark: SparkSession, file: Path) -> None:
    tensors = long(spark, file)
    for name in ("", "a`b", "a'b", "\0", "\U0010ffff", "__metadata__x"):
        assert long_numbers(tensors.where(col("tensor_key") == name)) == {name: NAMES.index(name)}
    assert long_numbers(tensors.where(col("tensor_key").isin(NAMES))) == {n: i for i, n in enumerate(NAMES)}


@pytest.fixture(scope="module")
def cases(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A file with names that differ only in case."""
    path = tmp_path_factory.mktemp("cases") / "cases.safetensors"
    save(path, ["weight", "Weight", "other"])
    return path


@pytest.mark.short
@pytest.mark.parametrize("schema", [None, wide_schema("weight", "Weight")], ids=["inferred", "given"])
def test_names_that_differ_only_in_case_are_an_error_with_the_ways_out(
    spark: SparkSession, cases: Path, schema: StructType | None
) -> None:
    message = error_of(lambda: read(spark, cases, schema).collect())
    ways_out = ["spark.sql.caseSensitive", "schema with one of them", "layout=long"]
    assert_says(message, "`weight`", "`Weight`", *ways_out)


def test_the_error_comes_before_any_task(spark: SparkSession, cases: Path) -> None:
    with pytest.raises(AnalysisException):
        read(spark, cases)


def test_names_that_differ_only_in_case_are_read_by_each_way_out(spark: SparkSession, cases: Path) -> None:
    assert wide_numbers(read(spark, cases, wide_schema("Weight", "other"))) == {"Weight": 1, "other": 2}
    assert long_numbers(long(spark, cases)) == {"weight": 0, "Weight": 1, "other": 2}


@pytest.mark.usefixtures("case_sensitive")
def test_names_that_differ_only_in_case_are_columns_where_spark_tells_them_apart(
    spark: SparkSession, cases: Path
) -> None:
    df = read(spark, cases)
    assert wide_numbers(df) == {"weight": 0, "Weight": 1, "other": 2}
    [row] = df.select("Weight.data", "weight.dtype", col("weight.data").alias("small")).collect()
    assert (number_of(row["data"]), row["dtype"], number_of(row["small"])) == (1, "I32", 0)


TENSOR = '"a":{"dtype":"U8","shape":[1],"data_offsets":[0,1]}'
REPEATED = {
    "tensor `a`": f"{{{TENSOR},{TENSOR}}}",
    "key `k` of `__metadata__`": f'{{"__metadata__":{{"k":"1","k":"2"}},{TENSOR}}}',
}


@pytest.mark.parametrize("repeated", REPEATED)
def test_repeated_names_are_refused_where_they_are_to_be(spark: SparkSession, tmp_path: Path, repeated: str) -> None:
    header = REPEATED[repeated].encode()
    file = tmp_path / "repeated.safetensors"
    file.write_bytes(len(header).to_bytes(8, "little") + header + b"\7")
    for options in ({"layout": "long"}, {"inferSchema": "true"}, {"mergeSchema": "true"}):
        reader = spark.read.format("safetensors").options(**options)
        assert len(reader.load(str(tmp_path)).collect()) == 1
        strict = reader.option("refuseRepeatedNames", "true")
        message = error_of(lambda strict=strict: strict.load(str(tmp_path)).collect())  # type: ignore[misc]
        assert_says(message, str(file), f"has {repeated} twice", "RepeatedName")


def test_columns_of_a_schema_are_found_as_spark_compares_names(spark: SparkSession, tmp_path: Path) -> None:
    save(tmp_path / "a.safetensors", ["label", "x", "X"])
    schema = wide_schema("Label")
    assert read(spark, tmp_path, schema).select("label.shape", "LABEL.dtype").first() == ([], "I32")
    assert read(spark, tmp_path, schema).where("label IS NOT NULL").count() == 1
    assert [row["X"]["dtype"] for row in read(spark, tmp_path, wide_schema("X")).collect()] == ["I32"]
    upper = StructType([StructField("ẍ", TENSOR_STRUCT), StructField("LABEL", TENSOR_STRUCT)])
    assert [[value is None for value in row] for row in read(spark, tmp_path, upper).collect()] == [[True, False]]
    long = spark.read.format("safetensors").option("layout", "long").schema("TENSOR_KEY string").load(str(tmp_path))
    assert long.where("tensor_key = 'label'").count() == 1


def test_several_tensors_for_a_column_are_an_error(spark: SparkSession, tmp_path: Path) -> None:
    save(tmp_path / "a.safetensors", ["labEl", "lAbel"])
    message = error_of(read(spark, tmp_path, wide_schema("label")).collect)
    assert_says(message, "several tensors for the column `label`", "`labEl`", "`lAbel`", "spark.sql.caseSensitive")


def test_with_case_sensitive_names_a_column_of_another_case_is_absent(
    spark: SparkSession, tmp_path: Path, case_sensitive: None
) -> None:
    save(tmp_path / "a.safetensors", ["label"])
    schema = StructType([StructField("Label", TENSOR_STRUCT)])
    assert [row["Label"] for row in read(spark, tmp_path, schema).collect()] == [None]
