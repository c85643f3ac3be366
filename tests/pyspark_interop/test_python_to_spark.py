"""Files of the official library, read by Spark."""

from itertools import permutations
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from pyspark.errors import AnalysisException
from pyspark.sql import SparkSession
from pyspark.sql.functions import col
from pyspark.sql.types import StructField, StructType
from safetensors import TensorSpec, serialize_file
from safetensors.numpy import save_file

from official import NUMPY_TYPES
from safetensors_spark.functions import st_to_array
from spark_io import TENSOR_STRUCT, assert_says, error_of, read, wide_schema

NUMBERS = np.array([[0, 1, 2], [3, 4, 8]])

ARRAYS = {
    dtype: np.exp2(NUMBERS).astype(numpy_type) if dtype == "F8_E8M0" else NUMBERS.astype(numpy_type)
    for dtype, numpy_type in NUMPY_TYPES.items()
}

# Values that use the whole width of a type, not only small numbers.
WIDE_VALUES: dict[str, np.ndarray[Any, Any]] = {
    "U8": np.array([0, 255], np.uint8),
    "I8": np.array([-128, 127], np.int8),
    "U16": np.array([0, 65535], np.uint16),
    "I16": np.array([-32768, 32767], np.int16),
    "U32": np.array([0, 2**32 - 1], np.uint32),
    "I32": np.array([-(2**31), 2**31 - 1], np.int32),
    "U64": np.array([2**63, 2**64 - 1], np.uint64),
    "I64": np.array([-(2**63), 2**63 - 1], np.int64),
    "F16": np.array([65504, -(2.0**-24), np.inf, np.nan], np.float16),
    "BF16": np.array([3.0e38, -1.0e-40, -np.inf, np.nan]).astype(NUMPY_TYPES["BF16"]),
    "F32": np.array([3.4e38, 1.0e-45, -0.0, np.nan], np.float32),
    "F64": np.array([1e300, -1e-300, np.pi, np.nan], np.float64),
}


@pytest.fixture
def file(tmp_path: Path) -> Path:
    """A file of two tensors, `image` and `label`."""
    path = tmp_path / "two.safetensors"
    save_file({"image": np.arange(12, dtype=np.float32).reshape(3, 4), "label": np.array(7, np.int64)}, path)
    return path


@pytest.mark.short
def test_tensors_of_every_dtype_arrive_with_shape_and_bytes(spark: SparkSession, tmp_path: Path) -> None:
    path = tmp_path / "all.safetensors"
    save_file(ARRAYS, path)
    [row] = read(spark, path).collect()
    found = {name: (tensor.dtype, tensor.shape, bytes(tensor.data)) for name, tensor in row.asDict().items()}
    assert found == {dtype: (dtype, [2, 3], array.tobytes()) for dtype, array in ARRAYS.items()}


def test_packed_f4_arrives_with_its_logical_shape(spark: SparkSession, tmp_path: Path) -> None:
    path = tmp_path / "f4.safetensors"
    data = np.arange(6, dtype=np.uint8)
    spec = TensorSpec(dtype="float4_e2m1fn_x2", shape=[2, 3], data_ptr=data.ctypes.data, data_len=6)
    serialize_file({"x": spec}, path)
    [row] = read(spark, path).collect()
    assert (row.x.dtype, row.x.shape, bytes(row.x.data)) == ("F4", [2, 6], data.tobytes())


@pytest.mark.short
def test_st_to_array_gives_the_values_as_float32(spark: SparkSession, tmp_path: Path) -> None:
    path = tmp_path / "values.safetensors"
    save_file(WIDE_VALUES, path)
    [row] = read(spark, path).select(*(st_to_array(dtype).alias(dtype) for dtype in WIDE_VALUES)).collect()
    for dtype, values in WIDE_VALUES.items():
        with np.errstate(over="ignore"):
            expected = values.astype(np.float32)
        np.testing.assert_allclose(np.array(row[dtype], np.float32), expected, rtol=1e-6, err_msg=dtype)


@pytest.mark.short
def test_inferred_schema_is_a_tensor_struct_per_tensor(spark: SparkSession, file: Path) -> None:
    schema = read(spark, file).schema
    assert sorted(schema.names) == ["image", "label"]
    assert schema == wide_schema(*schema.names)


@pytest.mark.short
def test_given_schema_is_kept_as_it_is(spark: SparkSession, file: Path) -> None:
    for names in (("label", "image"), ("image",)):
        df = read(spark, file, wide_schema(*names))
        assert df.schema == wide_schema(*names)
        [row] = df.collect()
        assert row.image.shape == [3, 4]


def test_scalar_has_an_empty_shape(spark: SparkSession, file: Path) -> None:
    [row] = read(spark, file).collect()
    assert (row.label.shape, bytes(row.label.data)) == ([], np.int64(7).tobytes())


def test_a_directory_gives_a_row_for_each_file(spark: SparkSession, tmp_path: Path) -> None:
    for number in range(5):
        save_file({"x": np.array([number], np.int32)}, tmp_path / f"{number}.safetensors")
    rows = read(spark, tmp_path).collect()
    assert sorted(int.from_bytes(row.x.data, "little") for row in rows) == [0, 1, 2, 3, 4]


FIELDS = [f"{name}.{field}" for name in ("image", "label") for field in ("data", "shape", "dtype")]


@pytest.mark.parametrize("fields", [*permutations(FIELDS, 1), *permutations(FIELDS, 2)], ids=", ".join)
def test_any_nested_fields_in_any_order(spark: SparkSession, file: Path, fields: tuple[str, ...]) -> None:
    [whole] = read(spark, file).collect()
    [row] = read(spark, file).select(*fields).collect()
    assert list(row) == [whole[name][field] for name, field in (path.split(".") for path in fields)]


@pytest.mark.short
def test_unselected_fields_are_not_part_of_the_scan(spark: SparkSession, file: Path) -> None:
    df = read(spark, file).select("image.shape")
    [schema] = [line for line in df._jdf.queryExecution().executedPlan().toString().splitlines() if "BatchScan" in line]
    assert "image" in schema
    assert "label" not in schema
    scan = df._jdf.queryExecution().optimizedPlan().collectLeaves().head().output().head().dataType().simpleString()
    assert scan == "struct<shape:array<int>>"


def test_struct_and_field_together(spark: SparkSession, file: Path) -> None:
    [row] = read(spark, file).select("label", col("image.dtype").alias("dtype"), "image.shape").collect()
    assert (row.label.dtype, row.dtype, row["shape"]) == ("I64", "F32", [3, 4])


def test_count_without_any_column(spark: SparkSession, file: Path) -> None:
    assert read(spark, file).count() == 1


@pytest.mark.short
def test_neither_schema_nor_inference_is_an_error_with_the_way_out(spark: SparkSession, file: Path) -> None:
    with pytest.raises(AnalysisException) as error:
        spark.read.format("safetensors").load(str(file))
    assert_says(str(error.value), "inferSchema", ".schema(")


def test_missing_tensor_is_null_where_the_schema_allows_it(spark: SparkSession, file: Path) -> None:
    schema = StructType([StructField("label", TENSOR_STRUCT, False), StructField("other", TENSOR_STRUCT, True)])
    [row] = read(spark, file, schema).collect()
    assert (row.other, row.label.dtype) == (None, "I64")


def test_missing_tensor_is_an_error_with_file_and_tensor(spark: SparkSession, file: Path) -> None:
    message = error_of(lambda: read(spark, file, wide_schema("other")).collect())
    assert_says(message, file.name, "other")


def test_schema_of_other_types_is_refused(spark: SparkSession, file: Path) -> None:
    with pytest.raises(AnalysisException, match="image"):
        spark.read.format("safetensors").schema("image array<float>").load(str(file)).collect()


@pytest.mark.short
@pytest.mark.parametrize("schema", [None, wide_schema("image", "label")], ids=["inferred", "given"])
def test_a_broken_file_is_an_error_with_file_and_rule(
    spark: SparkSession, file: Path, schema: StructType | None
) -> None:
    file.write_bytes(file.read_bytes() + b"more")
    message = error_of(lambda: read(spark, file, schema).collect())
    assert_says(message, file.name, "MetadataIncompleteBuffer")


def test_path_that_is_not_there_is_named(spark: SparkSession, tmp_path: Path) -> None:
    message = error_of(lambda: read(spark, tmp_path / "nowhere").collect())
    assert "nowhere" in message
