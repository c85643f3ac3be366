"""Tensor Structs as NumPy arrays and back, without Spark: what is a view, and what is refused."""

import subprocess
import sys
from collections.abc import Callable
from typing import Any

import ml_dtypes
import numpy as np
import pandas as pd  # type: ignore[import-untyped]
import pyarrow as pa  # type: ignore[import-untyped]
import pytest

from official import NUMPY_TYPES
from safetensors_spark import InvalidTensorError
from safetensors_spark.arrow import stack, tensors, to_structs

Row = tuple[bytes, list[int], str] | None

BATCH = np.arange(24, dtype=np.float32).reshape(4, 2, 3)


def column(*rows: Row, data: Any = None) -> pa.StructArray:
    """A column of Tensor Structs, as Spark hands it over; `data` is another type for the bytes."""
    fields = {"data": data or pa.binary(), "shape": pa.list_(pa.int32()), "dtype": pa.string()}
    values = [row and dict(zip(fields, row, strict=True)) for row in rows]
    return pa.array(values, pa.struct(list(fields.items())))


def rows_of(batch: np.ndarray[Any, Any], dtype: str) -> list[Row]:
    return [(array.tobytes(), list(array.shape), dtype) for array in batch]


def address(array: np.ndarray[Any, Any] | None) -> int:
    assert array is not None
    return int(array.__array_interface__["data"][0])


def same(left: np.ndarray[Any, Any] | None, right: np.ndarray[Any, Any]) -> bool:
    """Whether type, shape and bits are equal."""
    return (
        left is not None
        and (left.dtype, left.shape) == (right.dtype, right.shape)
        and left.tobytes() == right.tobytes()
    )


@pytest.mark.parametrize("data", [pa.binary(), pa.large_binary()])
def test_arrays_are_read_only_views_of_arrow_s_memory(data: pa.DataType) -> None:
    structs = column(*rows_of(BATCH, "F32"), data=data)
    start = structs.field("data").buffers()[2].address
    assert [address(array) for array in tensors(structs)] == [start + 24 * row for row in range(4)]
    assert address(stack(structs)) == start
    assert same(stack(structs), BATCH)
    assert address(stack(structs[2:])) == start + 48
    assert same(stack(structs[2:]), BATCH[2:])
    assert not any(array.flags.writeable for array in (stack(structs), *tensors(structs)) if array is not None)


def test_views_keep_the_memory_that_they_show() -> None:
    structs = to_structs(BATCH.copy())
    views = [stack(structs), *tensors(structs)]
    del structs
    assert same(views[0], BATCH)
    assert same(views[4], BATCH[3])


@pytest.mark.parametrize("dtype", NUMPY_TYPES)
def test_every_dtype_that_numpy_has_there_and_back(dtype: str) -> None:
    numpy = NUMPY_TYPES[dtype]
    batch = np.frombuffer(bytes(range(6)) * numpy.itemsize, numpy).reshape(3, 2)
    for structs in (to_structs(batch), to_structs(list(batch))):
        assert structs.to_pylist() == column(*rows_of(batch, dtype)).to_pylist()
        assert same(stack(structs), batch)
        assert all(same(array, row) for array, row in zip(tensors(structs), batch, strict=True))


def test_a_batch_becomes_structs_of_its_own_memory() -> None:
    batch = np.arange(24, dtype=np.float32).astype(ml_dtypes.bfloat16).reshape(4, 6)
    assert to_structs(batch).field("data").buffers()[2].address == address(batch)
    assert to_structs(batch[1:]).field("data").buffers()[2].address == address(batch) + 12


def test_a_batch_of_3_gib_is_not_copied_either() -> None:
    batch = np.zeros((3, 2**30), np.uint8)  # memory that nothing touches
    structs = to_structs(batch)
    assert structs.type.field("data").type == pa.large_binary()
    assert address(stack(structs)) == address(batch)
    assert address(tensors(structs)[2]) == address(batch) + 2**31


def test_batches_that_lie_otherwise_become_the_same_structs() -> None:
    expected = to_structs(BATCH)
    assert expected.type == column().type
    assert to_structs(np.asfortranarray(BATCH)) == expected
    assert to_structs(BATCH.astype(">f4")) == expected
    assert to_structs(list(BATCH)) == expected
    assert to_structs(BATCH.repeat(2, axis=0)[::2]) == expected


def test_scalars_empty_tensors_and_no_rows() -> None:
    for batch in (np.array([1.5, 2.5]), np.zeros((3, 0, 2), np.int8)):
        assert same(stack(to_structs(batch)), batch)
        assert same(stack(to_structs(list(batch))), batch)
    assert tensors(column()) == tensors(pa.chunked_array([column()])) == []
    assert to_structs(np.zeros((0, 3))).to_pylist() == to_structs([]).to_pylist() == []


def test_nulls_stay_null_and_shapes_may_differ() -> None:
    structs = column((b"\x01\x02", [2], "U8"), None, (b"\x00\x3c", [1, 1], "F16"))
    first, null, last = tensors(structs)
    assert same(first, np.array([1, 2], np.uint8))
    assert null is None
    assert same(last, np.array([[1]], np.float16))
    assert to_structs([first, null, last]) == structs
    assert tensors(structs[1:])[0] is None


def test_bits_are_named_by_a_dtype() -> None:
    bits = np.array([[0x3F80], [0x4000]], np.uint16)
    structs = to_structs(bits, "BF16")
    assert structs.field("data").buffers()[2].address == address(bits)
    assert stack(structs).tolist() == [[1.0], [2.0]]
    assert to_structs(list(bits), "BF16") == structs


def test_chunks_are_joined_by_one_copy_and_a_single_one_by_none() -> None:
    structs = to_structs(BATCH)
    empty = structs[:0]
    one = pa.chunked_array([empty, structs, empty])
    assert address(stack(one)) == address(stack(structs))
    two = pa.chunked_array([structs[:1], structs[1:]])
    assert same(stack(two), BATCH)
    assert [address(array) for array in tensors(two)] == [address(array) for array in tensors(structs)]


@pytest.mark.parametrize(
    "form",
    [
        lambda rows: pd.DataFrame(rows, columns=["data", "shape", "dtype"]),
        lambda rows: pd.Series([dict(zip(("data", "shape", "dtype"), row, strict=True)) for row in rows]),
        # Arrow 15 has no views.
        lambda rows: column(*rows, data=getattr(pa, "binary_view", pa.large_binary)()),
        lambda rows: column(*rows, data=pa.binary(24)),
        lambda rows: column(*rows).cast(
            pa.struct({"data": pa.binary(), "shape": pa.large_list(pa.int32()), "dtype": pa.large_string()})
        ),
    ],
    ids=["frame", "dicts", "binary_view", "fixed", "large"],
)
def test_other_forms_of_a_column(form: Callable[[list[Row]], Any]) -> None:
    structs = form(rows_of(BATCH, "F32"))
    assert same(stack(structs), BATCH)
    assert all(same(array, row) for array, row in zip(tensors(structs), BATCH, strict=True))
    assert not stack(structs).flags.writeable


def test_a_row_of_nulls_in_a_frame_is_a_null_tensor() -> None:
    frame = pd.DataFrame({"data": [None, b"\x07"], "shape": [None, np.array([1])], "dtype": [None, "U8"]})
    null, seven = tensors(frame)
    assert null is None
    assert same(seven, np.array([7], np.uint8))


WELL: Row = (b"\x00\x00", [1], "F16")


@pytest.mark.parametrize(
    ("row", "message"),
    [
        ((b"\x00", [1], "F16"), "Row 1: 1 bytes are no tensor F16 of shape [1]"),
        ((b"", [-1, 0], "F16"), "Row 1: 0 bytes are no tensor F16 of shape [-1, 0]"),
        ((b"\x00", [2], "F4"), "Row 1: F4 has elements smaller than a byte"),
        ((b"\x00\x00\x00", [4], "F6_E2M3"), "Row 1: F6_E2M3 has elements smaller than a byte"),
        ((b"\x00", [1], "F99"), "Row 1: 'F99' is not a dtype of safetensors."),
    ],
)
def test_a_struct_without_a_tensor_is_named_by_its_row(row: Row, message: str) -> None:
    for structs in (column(WELL, row), pa.chunked_array([column(WELL), column(row)])):
        with pytest.raises(InvalidTensorError) as error:
            tensors(structs)
        assert str(error.value).startswith(message)
    with pytest.raises(InvalidTensorError, match="Row 0: "):
        stack(column(row))


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        ([WELL, (b"\x00\x00", [1], "BF16")], "Row 1 is BF16 of shape [1], but row 0 is F16 of shape [1], and"),
        ([WELL, (b"\x00\x00", [1, 1], "F16")], "Row 1 is F16 of shape [1, 1], but row 0 is F16 of shape [1], and"),
        ([WELL, None], "Row 1 is null, and cannot be stacked."),
        ([], "The column has no rows"),
    ],
)
def test_what_cannot_be_stacked(rows: list[Row], message: str) -> None:
    with pytest.raises(InvalidTensorError) as error:
        stack(column(*rows))
    assert str(error.value).startswith(message)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: tensors(pa.array([1])), "Expected a column of Tensor Structs, but got int64."),
        (lambda: to_structs(np.array(["a"])), "NumPy's str32 is not a dtype of safetensors"),
        (lambda: to_structs(np.zeros((1, 1)), "F32"), "NumPy's float64 has elements of another size than F32."),
        (lambda: to_structs(np.zeros((1, 1), np.uint8), "F4"), "F4 has elements smaller than a byte"),
        (lambda: to_structs(np.zeros(())), "Expected an array whose first dimension is the rows"),
    ],
)
def test_what_is_no_tensor_is_refused(make: Callable[[], object], message: str) -> None:
    with pytest.raises(InvalidTensorError) as error:
        make()
    assert str(error.value).startswith(message)


def test_without_pyarrow_the_import_names_the_extra() -> None:
    script = "import sys; sys.modules['pyarrow'] = None; import safetensors_spark.arrow"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True)
    assert (
        'not installed: pyarrow. Install the extra `arrow`:\n    pip install "safetensors-spark[arrow]"' in done.stderr
    )
