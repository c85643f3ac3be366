"""Indexes and shards that no writer makes: a store refuses them, and `verify` says what is wrong."""

import json
import os
import struct
from collections.abc import Callable
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
import pyarrow as pa  # type: ignore[import-untyped]
import pyarrow.parquet as pq  # type: ignore[import-untyped]
import pytest

import safetensors_spark as sts
from handmade import Handmade
from safetensors_spark._files.storage import LocalFolder
from safetensors_spark.dataset import open_dataset, open_store, verify

INDEX = "_tensor_index.parquet"


@pytest.fixture
def dataset(tmp_path: Path) -> Handmade:
    made = Handmade(tmp_path / "store")
    made.part(made.shard(a=[1.0], b=[2.0], c=[3.0]))
    made.commit()
    return made


def set_cell(column: str, value: Any) -> Callable[[pa.Table], pa.Table]:
    """Replace the cell of the second row, and the type of the column."""

    def change(table: pa.Table) -> pa.Table:
        cells = table.column(column).to_pylist()
        cells[1] = value(cells[1]) if callable(value) else value
        number = table.column_names.index(column)
        return table.set_column(number, column, pa.array(cells, table.schema.field(number).type))

    return change


def no_utf8(column: str) -> Callable[[pa.Table], pa.Table]:
    def change(table: pa.Table) -> pa.Table:
        cells = [one.encode() for one in table.column(column).to_pylist()]
        cells[1] = b"b\xff\xfe"
        offsets, data = pa.array(cells, pa.binary()).buffers()[1:]
        odd = pa.StringArray.from_buffers(len(cells), offsets, data)
        return table.set_column(table.column_names.index(column), column, odd)

    return change


def cast(column: str, kind: pa.DataType) -> Callable[[pa.Table], pa.Table]:
    def change(table: pa.Table) -> pa.Table:
        number = table.column_names.index(column)
        cells = [0] * len(table) if pa.types.is_struct(kind) is False else [{"a": 0}] * len(table)
        return table.set_column(number, column, pa.array(cells, kind))

    return change


ODD: dict[str, Callable[[pa.Table], pa.Table]] = {
    **{f"a null {column}": set_cell(column, None) for column in ("tensor_key", "file_name", "shape", "dtype")},
    **{f"a null {column}": set_cell(column, None) for column in ("data_start", "data_end")},
    "a null dimension": set_cell("shape", [None]),
    **{f"{column} that is not UTF-8": no_utf8(column) for column in ("tensor_key", "file_name", "dtype")},
    "keys that are numbers": cast("tensor_key", pa.int64()),
    "keys that are structs": cast("tensor_key", pa.struct([("a", pa.int64())])),
    "shapes that are numbers": cast("shape", pa.int64()),
    "a key that is a shard's twice": set_cell("tensor_key", "a"),
    "an entry before the byte buffer": lambda table: set_cell("data_end", lambda end: end - 64)(
        set_cell("data_start", lambda start: start - 64)(table)
    ),
    "an entry behind the file": lambda table: set_cell("data_end", lambda end: end + 64)(
        set_cell("data_start", lambda start: start + 64)(table)
    ),
    "an entry of a huge tensor": set_cell("shape", [1 << 62, 1 << 62]),
}


@pytest.mark.parametrize("odd", ODD)
def test_an_index_with_an_odd_cell(dataset: Handmade, odd: str) -> None:
    path = dataset.folder / INDEX
    table = pq.read_table(path)
    pq.write_table(ODD[odd](table).replace_schema_metadata(table.schema.metadata), path)
    with pytest.raises(sts.InvalidIndexError):
        print({key: array.tolist() for key, array in open_store(dataset.folder).items()})
    assert [fault.file for fault in verify(dataset.folder).faults][:1] == [INDEX]


def test_an_index_with_a_column_whose_name_is_not_utf8(dataset: Handmade) -> None:
    path = dataset.folder / INDEX
    path.write_bytes(path.read_bytes().replace(b"tensor_key", b"tensor_k\xff\xff"))
    with pytest.raises(sts.InvalidIndexError):
        list(open_store(dataset.folder))
    assert [fault.file for fault in verify(dataset.folder).faults][:1] == [INDEX]


def test_a_key_twice_in_two_row_groups(dataset: Handmade) -> None:
    path = dataset.folder / INDEX
    table = pq.read_table(path)
    pq.write_table(set_cell("tensor_key", "a")(table), path, row_group_size=1)
    with pytest.raises(sts.InvalidIndexError):
        list(open_store(dataset.folder))
    with pytest.raises(sts.InvalidIndexError):
        open_store(dataset.folder)["b"]
    assert [fault.file for fault in verify(dataset.folder).faults][:1] == [INDEX]


def test_an_index_of_an_odd_commit(dataset: Handmade) -> None:
    path = dataset.folder / INDEX
    pq.write_table(pq.read_table(path).replace_schema_metadata({"safetensors.commit_id": b"\xff"}), path)
    assert open_store(dataset.folder)["a"].tolist() == [1]
    assert verify(dataset.folder).faults == []


@pytest.mark.parametrize("indexed", [True, False])
def test_a_shard_that_cannot_be_read(dataset: Handmade, indexed: bool) -> None:
    shard = dataset.folder / dataset.shards[0]["file"]
    shard.unlink()
    shard.mkdir()
    if not indexed:
        (dataset.folder / INDEX).unlink()
    assert [fault.file for fault in verify(dataset.folder).faults][:1] == [shard.name]
    with pytest.raises((sts.SafetensorsSparkError, OSError), match=shard.name):
        open_store(dataset.folder)["a"]


@pytest.mark.skipif(os.geteuid() == 0, reason="root may read any file")
def test_a_shard_without_permission(dataset: Handmade) -> None:
    shard = dataset.folder / dataset.shards[0]["file"]
    shard.chmod(0)
    (fault,) = verify(dataset.folder).faults
    assert "cannot be read: Permission denied" in fault.what


def test_a_shard_whose_device_fails(dataset: Handmade, monkeypatch: pytest.MonkeyPatch) -> None:
    whole = LocalFolder.open

    def fail(folder: LocalFolder, name: str) -> BinaryIO:
        if name == dataset.shards[0]["file"]:
            raise OSError(5, "Input/output error")
        return whole(folder, name)

    monkeypatch.setattr(LocalFolder, "open", fail)
    faults = [(fault.file, fault.what) for fault in verify(dataset.folder).faults]
    assert (dataset.shards[0]["file"], "it cannot be read: [Errno 5] Input/output error") in faults


def raw(path: Path, header: dict[str, Any] | str) -> None:
    text = (header if isinstance(header, str) else json.dumps(header)).encode()
    path.write_bytes(struct.pack("<Q", len(text)) + text)


@pytest.mark.parametrize(
    ("shape", "said"),
    [
        ([1, 0, (1 << 64) - 1], "tensor `x`"),
        ([(1 << 63) + 1, 0], "9,223,372,036,854,775,809 samples"),
        ([1] * 200 + [0], "tensor `x`"),
    ],
    ids=["a dimension beyond 64 bits", "samples beyond 63 bits", "many dimensions"],
)
def test_an_empty_tensor_that_numpy_cannot_have(tmp_path: Path, shape: list[int], said: str) -> None:
    raw(tmp_path / "a.safetensors", {"x": {"dtype": "F32", "shape": shape, "data_offsets": [0, 0]}})
    assert verify(tmp_path).faults == []
    with pytest.raises(sts.InvalidTensorError, match="tensor `x`"):
        open_store(tmp_path)["x"]
    with pytest.raises(sts.SafetensorsSparkError, match=said):
        open_dataset(tmp_path)[0]


@pytest.mark.parametrize("text", ["[" * 100_000, '{"\\ud800":{"dtype":"U8","shape":[0],"data_offsets":[0,0]}}'])
def test_an_odd_header(tmp_path: Path, text: str) -> None:
    raw(tmp_path / "a.safetensors", text)
    (fault,) = verify(tmp_path).faults
    assert "InvalidHeaderDeserialization" in fault.what
    with pytest.raises(sts.InvalidFileError):
        open_store(tmp_path)["x"]


@pytest.mark.parametrize("key", ["\ud800", "", "a\x00", 7, None, b"a", np.int64(1)])
def test_a_key_that_no_store_has(dataset: Handmade, key: Any) -> None:
    store = open_store(dataset.folder)
    assert key not in store
    with pytest.raises(KeyError):
        store.get_many([key])


def test_a_wrong_number_of_samples_by_key(dataset: Handmade) -> None:
    dataset.shards[0]["samples_count"] = 2
    dataset.commit()
    (fault,) = verify(dataset.folder).faults
    assert fault.what == "it has 3 tensors, and the manifest says 2"


def test_a_checksum_of_seven_digits(dataset: Handmade) -> None:
    dataset.shards[0]["crc32c"] = dataset.shards[0]["crc32c"][1:]
    dataset.commit()
    with pytest.raises(sts.InvalidManifestError, match="crc32c"):
        open_store(dataset.folder)
