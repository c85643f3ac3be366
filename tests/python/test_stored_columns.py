"""Rows that are stored with another dtype or shape, and tensors whose bytes are given."""

from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import pyarrow as pa  # type: ignore[import-untyped]
import pytest
from safetensors import safe_open
from safetensors.numpy import load_file

from safetensors_spark import InvalidWriteError
from safetensors_spark.dataset import open_dataset
from test_writer import manifest, schema, write


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "dataset"


ROUNDED = np.array([1.0, 1.0 / 3, -2.0 / 3, 65504.0, 1e-7, -6e-8, 0.0, -0.0, np.inf, -np.inf, np.nan, 448, 1000])


def test_numbers_are_rounded_as_numpy_and_pytorch_do(path: Path) -> None:
    kinds = {"F16": np.float16, "BF16": ml_dtypes.bfloat16}
    for name, kind in kinds.items():
        for values in (ROUNDED, ROUNDED.astype(np.float32)):
            loaded = load_file(write(path, {"x": values}, batch_size=99, dtype=name, rounding="nearest_even")[-1])["x"]
            assert np.array_equal(loaded.astype(float), values.astype(kind).astype(float), equal_nan=True)
        path = path / "next"
    # 2^53 + 1 is no double: rounded there first, this number would become another one.
    whole = np.array([(1 << 60) + (1 << 52) + 1, -(1 << 60) - (1 << 52) - 1, 3])
    loaded = load_file(write(path, {"x": whole}, batch_size=9, dtype="BF16", rounding="nearest_even")[0])["x"]
    assert loaded.astype(float).tolist() == [2.0**60 + 2.0**53, -(2.0**60) - 2.0**53, 3.0]
    path = path / "next"
    write(path, {"x": np.array([500.0, -np.inf, 0.3, 1e-9])}, batch_size=9, dtype="F8_E4M3")
    assert open_dataset(path)[:]["x"].astype(float).tolist() == [448.0, -448.0, 0.3125, 0.0]


def test_numbers_are_cut_off(path: Path) -> None:
    rows = {
        "f": np.array([1.9, -1.9, 255.99]), "n": [5, 6, 7], "t": ["a", "b", "c"],
        "b": np.array([0.5, 1.5, -0.5], np.float32),
        "h": np.array([1 + 2**-11 + 2**-20, -1 - 2**-10, 65535.9]),
    }  # fmt: skip
    [shard] = write(path, rows, batch_size=3, dtype={"f": "I16", "b": "BOOL", "h": "F16"})
    loaded = load_file(shard)
    assert {name: loaded[name].tolist() for name in "fbnh"} == {
        "f": [1, -1, 255], "b": [False, True, False], "n": [5, 6, 7], "h": [1.0, -1 - 2**-10, 65504.0],
    }  # fmt: skip
    assert [column[1] for column in schema(path)] == ["I16", "I64", "U8", "BOOL", "F16"]
    assert [column[4] for column in schema(path)] == ["double", "bigint", "string", "float", "double"]


@pytest.mark.parametrize(
    ("values", "dtype", "message"),
    [
        (np.array([1, 300]), "U8", "`x`, row 1: U8 cannot hold 300: it holds whole numbers from 0 to 255"),
        (
            np.array([[1.0, 2.0], [3.0, np.nan]]),
            "I32",
            "row 1: I32 cannot hold nan: it holds whole numbers from",
        ),
        (np.array([2.0**63]), "I64", "I64 cannot hold 9.22"),
        (np.array([-1]), "U64", "U64 cannot hold -1"),
        (np.array([2**63], np.uint64), "I64", "I64 cannot hold 9223372036854775808"),
        (np.array([2]), "BOOL", "BOOL cannot hold 2: it holds whole numbers from 0 to 1"),
        (np.array([70000.0], np.float32), "F16", r"F16 cannot hold 70000.0: it holds finite values up to 65504"),
        (np.array([1e300]), "F32", "F32 cannot hold 1e.300: it holds finite values"),
        ([[1], [2, 700]], "I8", "row 1: I8 cannot hold 700"),
        (np.array([1.0]), "F8_E8M0", "`x` holds numbers of F64, which cannot be written as F8_E8M0, only as: F16"),
        (np.array([1j]), "F32", "NumPy's complex128 is not a dtype"),
        (["a"], {"x": "I8"}, "`x` is text, which is stored as U8, not as I8. Leave it out"),
    ],
)
def test_numbers_that_a_dtype_cannot_hold_are_refused(path: Path, values: Any, dtype: Any, message: str) -> None:
    ragged = ["x"] if isinstance(values, list) and isinstance(values[0], list) else []
    with pytest.raises(InvalidWriteError, match=message):
        write(path, {"x": values}, batch_size=2, dtype=dtype, ragged=ragged)
    assert not list(path.rglob("*"))


def test_rows_are_given_another_shape(path: Path) -> None:
    [shard] = write(path, {"x": np.arange(12).reshape(2, 6), "n": [1, 2]}, batch_size=2, shapes={"x": [2, 3], "n": [1]})
    assert (load_file(shard)["x"].shape, load_file(shard)["n"].shape) == ((2, 2, 3), (2, 1))
    assert manifest(path)["options"] == {"batch_size": "2", "shapes": '{"x": [2, 3], "n": [1]}'}
    with pytest.raises(InvalidWriteError, match=r"`x`: rows of shape \[4\], but `shapes` gives the column \[3\]"):
        write(path / "other", {"x": np.zeros((2, 4))}, batch_size=2, shapes={"x": (3,)})
    with pytest.raises(InvalidWriteError, match="`shapes` names `t`, which is text"):
        write(path / "other", {"t": ["a"]}, batch_size=2, shapes={"t": [1]})
    with pytest.raises(InvalidWriteError, match="`shapes` names `y`, but the columns to write are: x"):
        write(path / "other", {"x": [1]}, batch_size=2, shapes={"y": []})


TENSOR = pa.struct({"data": pa.binary(), "shape": pa.list_(pa.int32()), "dtype": pa.string()})


def tensors(*rows: tuple[bytes, list[int], str]) -> pa.Array:
    return pa.array([dict(zip(("data", "shape", "dtype"), row, strict=True)) for row in rows], TENSOR)


def test_tensor_structs_are_stored_as_they_are(path: Path) -> None:
    bf16 = [np.full((2, 2), n, ml_dtypes.bfloat16) for n in range(3)]
    table = pa.table(
        {
            "x": tensors(*((one.tobytes(), [2, 2], "BF16") for one in bf16)),
            "r": tensors(*((bytes(range(n)), [n, 1], "U8") for n in (0, 2, 1))),
            "f4": tensors(*((bytes([n]), [2], "F4") for n in (1, 2, 3))),
        }
    )
    around = pa.concat_tables([table, table]).combine_chunks()
    shards = write(path, around.slice(2, 3), batch_size=2, ragged=["r"], tail_strategy="pad")
    with safe_open(shards[0], "numpy") as file:
        assert file.get_slice("f4").get_shape() == [2, 2]
        assert file.get_slice("f4").get_dtype() == "F4"
        assert file.get_tensor("x").tolist() == [bf16[2].tolist(), bf16[0].tolist()]
        assert (file.get_tensor("r").tolist(), file.get_tensor("r.offsets").tolist()) == ([[0]], [0, 1, 1])
    struct = "struct<data:binary,shape:array<int>,dtype:string>"
    assert schema(path) == [
        ("x", "BF16", [2, 2], None, struct), ("r", "U8", [1], "ragged", struct), ("f4", "F4", [2], None, struct),
    ]  # fmt: skip
    mixed = pa.table({"k": ["a", "b"], "x": tensors((b"\1\2", [2], "U8"), (b"\1\2\3\4", [], "F32"))})
    [shard] = write(path / "keyed", mixed, name_col="k")
    assert {name: array.shape for name, array in load_file(shard).items()} == {"a": (2,), "b": ()}
    write(path / "none", table.slice(0, 0), batch_size=1, ragged=["r"])
    assert schema(path / "none") == [
        ("x", None, None, None, struct), ("r", None, None, "ragged", struct), ("f4", None, None, None, struct),
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("rows", "options", "message"),
    [
        ([(b"12", [2], "U9")], {}, "`x`, row 0: the unknown dtype `U9`, expected one of"),
        ([(b"12", [2], "U8"), (b"12", [3], "U8")], {}, r"row 1: 2 bytes of data, but shape \[3\] of U8 takes 3"),
        ([(b"12", [-2], "U8")], {}, r"the negative dimension in shape \[-2\]"),
        ([(b"12", [3], "F4")], {}, r"shape \[3\] of F4, which fills no whole bytes"),
        ([(b"12", [2], "U8"), (b"1", [1], "U8")], {}, r"row 1: U8 \[1\], but other rows have U8 \[2\].*`ragged`"),
        ([(b"12", [2], "U8"), (b"12", [1], "I16")], {"ragged": "x"}, r"row 1: I16 \[1\], but other rows have U8 \[2\]"),
        ([(b"1", [], "U8")], {"ragged": "x"}, r"row 0: U8 \[\], and the rows of a ragged column have a first"),
        ([(b"1", [2, 1], "F4")], {"ragged": "x"}, r"F4 \[1\] fill no whole bytes"),
        ([(b"12", [2], "U8")], {"dtype": "F32"}, "dtype U8, but the option `dtype` asks for F32, and bytes are not"),
        ([(None, [2], "U8")], {}, "row 0: `data` is null"),
        ([(b"12", [None], "U8")], {}, "row 0: a dimension in `shape` is null"),
    ],
)
def test_tensor_structs_that_are_none_are_refused(path: Path, rows: Any, options: Any, message: str) -> None:
    with pytest.raises(InvalidWriteError, match=message):
        write(path, pa.table({"x": tensors(*rows)}), batch_size=2, **options)
    assert not list(path.rglob("*"))
