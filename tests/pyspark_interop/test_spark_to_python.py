"""What Spark writes in batch mode, loaded by the official library."""

import json
from pathlib import Path
from typing import Any, Literal

import numpy as np
import pytest
from pyspark.sql import SparkSession
from safetensors import safe_open
from safetensors.numpy import save

from official import BITS, DTYPES, NUMPY_TYPES, Tensor, load, verdicts
from safetensors_spark.functions import arr_to_st, st_to_array
from spark_io import frame, read, tensors_frame, write

RANDOM = np.random.default_rng(20)


def random_tensor(dtype: str, shape: tuple[int, ...]) -> Tensor:
    """A tensor of any bits, NaNs and all; the number of elements must fill whole bytes."""
    return Tensor(dtype, shape, RANDOM.bytes(int(np.prod(shape)) * BITS[dtype] // 8))


@pytest.mark.short
def test_tensor_structs_of_all_dtypes_are_stacked(spark: SparkSession, path: Path) -> None:
    rows = [{dtype.lower(): random_tensor(dtype, (2, 4)) for dtype in DTYPES} for _ in range(3)]
    loaded = load(write(tensors_frame(spark, rows), path, batch_size=3).shard)
    assert loaded == {
        dtype.lower(): Tensor(dtype, (3, 2, 4), b"".join(row[dtype.lower()].data for row in rows)) for dtype in DTYPES
    }


@pytest.mark.short
def test_shard_has_the_official_library_s_bytes(spark: SparkSession, path: Path) -> None:
    names = ["a", "B", "é", "😀", "\uffff", 'q"\\', "tab\t", "a.b"]
    arrays = {
        f"{name} {dtype}": RANDOM.integers(0, 2, (2, 3)).astype(NUMPY_TYPES[dtype])
        for name in names
        for dtype in ("U8", "I8", "BOOL", "BF16", "F32", "C64", "I64", "U64")
    }
    rows = [
        {name: Tensor(name.split()[-1], (3,), array[row].tobytes()) for name, array in arrays.items()} for row in (0, 1)
    ]
    written = write(tensors_frame(spark, rows), path, batch_size=2).shard.read_bytes()
    assert written == save(arrays, metadata={"format": "pt"})


def test_every_sample_may_be_a_scalar_or_empty(spark: SparkSession, path: Path) -> None:
    rows = [{"scalar": Tensor("I16", (), b"\1\2"), "empty": Tensor("F64", (2, 0), b"")} for _ in range(4)]
    loaded = load(write(tensors_frame(spark, rows), path, batch_size=4).shard)
    assert loaded == {"scalar": Tensor("I16", (4,), b"\1\2" * 4), "empty": Tensor("F64", (4, 2, 0), b"")}


ARRAY_TYPES: dict[str, tuple[str, list[Any]]] = {
    "float": ("F32", [1.5, -2.25, 3.0e38]),
    "double": ("F64", [1.5, -2.25, 1.0e300]),
    "int": ("I32", [-(2**31), 0, 2**31 - 1]),
    "bigint": ("I64", [-(2**63), 0, 2**63 - 1]),
    "smallint": ("I16", [-32768, 0, 32767]),
    "tinyint": ("I8", [-128, 0, 127]),
}


@pytest.mark.short
def test_arrays_take_their_own_dtypes(spark: SparkSession, path: Path) -> None:
    rows = [tuple(values[::step] for _, values in ARRAY_TYPES.values()) for step in (1, -1)]
    df = frame(spark, ", ".join(f"{element} array<{element}>" for element in ARRAY_TYPES), *rows)
    assert load(write(df, path, batch_size=2).shard) == {
        element: Tensor(dtype, (2, 3), np.array([values, values[::-1]], NUMPY_TYPES[dtype]).tobytes())
        for element, (dtype, values) in ARRAY_TYPES.items()
    }


TARGETS = ["F16", "F32", "F64", "BF16", "U8", "I8", "U16", "I16", "U32", "I32", "U64", "I64"]


@pytest.mark.parametrize("element", ARRAY_TYPES)
def test_array_is_encoded_as_the_dtype_asked_for(spark: SparkSession, path: Path, element: str) -> None:
    values = [1.0, 0.0, 100.0] if element in ("float", "double") else [1, 0, 100]
    df = frame(spark, ", ".join(f"{target} array<{element}>" for target in TARGETS), (values,) * len(TARGETS))
    dataset = write(df, path, batch_size=1, dtype=json.dumps({target: target for target in TARGETS}))
    loaded = load(dataset.shard)
    assert {name: tensor.dtype for name, tensor in loaded.items()} == {target: target for target in TARGETS}
    assert all(tensor.array.tolist() == [[1, 0, 100]] for tensor in loaded.values())


@pytest.mark.short
def test_one_dtype_for_all_columns(spark: SparkSession, path: Path) -> None:
    df = frame(spark, "a array<float>, b array<int>", ([1.5], [2]))
    loaded = load(write(df, path, batch_size=1, dtype="F64").shard)
    assert {name: (t.dtype, t.array.tolist()) for name, t in loaded.items()} == {
        "a": ("F64", [[1.5]]),
        "b": ("F64", [[2]]),
    }


@pytest.mark.short
def test_dtype_by_column(spark: SparkSession, path: Path) -> None:
    df = frame(spark, "a array<float>, b array<int>, c array<double>", ([1.5], [2], [3.5]))
    loaded = load(write(df, path, batch_size=1, dtype=json.dumps({"a": "F16", "b": "U8"})).shard)
    assert {name: (t.dtype, t.array.tolist()) for name, t in loaded.items()} == {
        "a": ("F16", [[1.5]]),
        "b": ("U8", [[2]]),
        "c": ("F64", [[3.5]]),
    }


def test_float_gives_up_its_fraction_as_an_integer(spark: SparkSession, path: Path) -> None:
    df = frame(spark, "x array<double>", ([2.9, -2.9, 0.5],))
    assert load(write(df, path, batch_size=1, dtype="I32").shard)["x"].array.tolist() == [[2, -2, 0]]


def test_unsigned_extremes(spark: SparkSession, path: Path) -> None:
    df = frame(spark, "a array<int>, b array<bigint>, c array<double>", ([0, 255], [0, 2**32 - 1], [0.0, 2.0**63]))
    loaded = load(write(df, path, batch_size=1, dtype='{"a":"U8","b":"U32","c":"U64"}').shard)
    assert [loaded[name].array.tolist() for name in "abc"] == [[[0, 255]], [[0, 2**32 - 1]], [[0, 2**63]]]


@pytest.mark.short
def test_shapes_are_those_of_a_sample(spark: SparkSession, path: Path) -> None:
    df = frame(spark, "image array<int>, label array<bigint>", ([1, 2, 3, 4, 5, 6], [7]), ([0, 0, 0, 0, 0, 0], [8]))
    loaded = load(write(df, path, batch_size=2, shapes='{"image": [3, 2], "label": []}').shard)
    assert loaded["image"].array.tolist() == [[[1, 2], [3, 4], [5, 6]], [[0, 0]] * 3]
    assert loaded["label"].array.tolist() == [7, 8]


@pytest.mark.parametrize("columns", ["b,a", " a , b ", '["a", "b"]'])
def test_columns_choose_what_is_written(spark: SparkSession, path: Path, columns: str) -> None:
    df = frame(spark, "a array<int>, note string, b array<int>", ([1], "no tensor", [2]))
    assert set(load(write(df, path, batch_size=1, columns=columns).shard)) == {"a", "b"}


def test_columns_as_json_take_a_name_with_a_comma(spark: SparkSession, path: Path) -> None:
    df = frame(spark, "`a,b` array<int>, a array<int>", ([1], [2]))
    assert set(load(write(df, path, batch_size=1, columns='["a,b"]').shard)) == {"a,b"}


@pytest.mark.short
def test_metadata_says_pytorch_unless_told_otherwise(spark: SparkSession, tmp_path: Path) -> None:
    df = frame(spark, "x array<int>", ([1],))
    plain = write(df, tmp_path / "plain", batch_size=1).shard
    told = write(df, tmp_path / "told", batch_size=1, metadata='{"z": "1", "a": "é\\n", "format": "np"}').shard
    assert [verdict.metadata for verdict in verdicts([plain, told])] == [
        {"format": "pt"},
        {"z": "1", "a": "é\n", "format": "np"},
    ]


def test_metadata_keys_are_sorted(spark: SparkSession, path: Path) -> None:
    df = frame(spark, "x array<int>", ([1],))
    shard = write(df, path, batch_size=1, metadata='{"z": "1", "b": "2", "a": "3"}').shard.read_bytes()
    header = json.loads(shard[8 : 8 + int.from_bytes(shard[:8], "little")])
    assert list(header["__metadata__"]) == sorted(header["__metadata__"])


@pytest.mark.short
def test_safe_open_gives_numpy_arrays(spark: SparkSession, path: Path) -> None:
    df = frame(spark, "image array<float>, label array<bigint>", ([1.5, 2.5], [7]), ([3.5, 4.5], [8]))
    with safe_open(write(df, path, batch_size=2).shard, framework="np") as file:
        assert sorted(file.keys()) == ["image", "label"]
        np.testing.assert_array_equal(file.get_tensor("image"), np.array([[1.5, 2.5], [3.5, 4.5]], np.float32))
        np.testing.assert_array_equal(file.get_slice("label")[1:], np.array([[8]]))


HALF_DTYPES: list[Literal["F16", "BF16"]] = ["F16", "BF16"]

# Ties, bits on both sides of ties, subnormals of the target, and values that no rounding touches.
HALVES = np.array(
    [1 + 2**-11, 1 + 2**-11 + 2**-20, 1 + 3 * 2**-11, 1 + 2**-8, 1 + 2**-8 + 2**-20, 1 + 3 * 2**-8,
     3.14159274, -2.7182817, 2.0**-24, 2.0**-25, 3 * 2.0**-26, 6.0e-5, -6.0e-5, 1.0e-7, 0.0, -0.0, 65504.0,
     np.inf, -np.inf, np.nan],
    np.float32,
)  # fmt: skip


def truncated(values: np.ndarray[Any, Any], dtype: str) -> np.ndarray[Any, Any]:
    """The nearest number of the dtype towards zero, by NumPy's rounding to the nearest."""
    target = NUMPY_TYPES[dtype]
    nearest = values.astype(target)
    towards_zero = (nearest.view(np.uint16) - 1).view(target)
    return np.where(np.abs(nearest.astype(np.float32)) > np.abs(values), towards_zero, nearest)


def same(found: np.ndarray[Any, Any], expected: np.ndarray) -> None:
    """The same bits, and NaN where NaN is expected."""
    finite = ~np.isnan(expected.astype(np.float32))
    np.testing.assert_array_equal(found.view(np.uint16)[finite], expected.view(np.uint16)[finite])
    np.testing.assert_array_equal(np.isnan(found.astype(np.float32)), ~finite)


@pytest.mark.short
@pytest.mark.parametrize("rounding", [None, "truncate", "nearest_even"])
def test_half_floats_round_as_told(spark: SparkSession, path: Path, rounding: str | None) -> None:
    df = frame(spark, "F16 array<float>, BF16 array<float>", (HALVES.tolist(), HALVES.tolist()))
    options = {} if rounding is None else {"rounding": rounding}
    loaded = load(write(df, path, batch_size=1, dtype='{"F16": "F16", "BF16": "BF16"}', **options).shard)
    for dtype in HALF_DTYPES:
        expected = HALVES.astype(NUMPY_TYPES[dtype]) if rounding == "nearest_even" else truncated(HALVES, dtype)
        same(loaded[dtype].array[0], expected)


@pytest.mark.short
def test_arr_to_st_writes_what_the_writer_writes(spark: SparkSession, path: Path) -> None:
    df = frame(spark, "x array<float>", (HALVES.tolist(),))
    tensors = df.select(*(arr_to_st("x", [4, 5], dtype).alias(dtype) for dtype in HALF_DTYPES))
    loaded = load(write(tensors, path, batch_size=1).shard)
    for dtype in HALF_DTYPES:
        assert (loaded[dtype].dtype, loaded[dtype].shape) == (dtype, (1, 4, 5))
        same(loaded[dtype].array.ravel(), truncated(HALVES, dtype))


@pytest.mark.short
def test_written_and_read_back_by_spark(spark: SparkSession, path: Path) -> None:
    df = frame(spark, "x array<float>", ([1.5, 2.5],), ([3.5, 4.5],))
    write(df, path, batch_size=2)
    [row] = read(spark, path).select("x.shape", "x.dtype", st_to_array("x").alias("values")).collect()
    assert (row["shape"], row["dtype"], row["values"]) == ([2, 2], "F32", [1.5, 2.5, 3.5, 4.5])
