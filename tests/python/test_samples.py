"""What a dataset's samples are taken by, and whose memory they are in."""

import ctypes
import os
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from safetensors.numpy import save_file

import safetensors_spark as sts
from handmade import Handmade
from safetensors_spark.dataset import Dataset, open_dataset, open_store


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Ten samples in shards of four, four and two. A sample has its number, and two floats of it."""
    for name, numbers in (("a", range(4)), ("b", range(4, 8)), ("c", range(8, 10))):
        x = np.array([[number, -number] for number in numbers], np.float32)
        save_file({"x": x, "n": np.array(numbers)}, tmp_path / f"{name}.safetensors")
    return tmp_path


@pytest.fixture
def ds(folder: Path) -> Dataset:
    return open_dataset(folder)


MASK = [False, True, False, False, False, True, False, False, False, True]


@pytest.mark.parametrize(
    ("index", "expected"),
    [
        ([1, 2], [1, 2]),
        ([9, -10, 5, 5], [9, 0, 5, 5]),
        ([-1], [9]),
        (np.array([7, -3], np.int8), [7, 7]),
        (np.array([7], np.uint64), [7]),
        (range(8, 0, -3), [8, 5, 2]),
        (MASK, [1, 5, 9]),
        (np.array(MASK), [1, 5, 9]),
        ([False] * 10, []),
        ([], []),
    ],
)
def test_samples_by_numbers_and_by_a_mask(ds: Dataset, index: Any, expected: list[int]) -> None:
    for batch in (ds[index], ds.take(index)):
        assert batch["n"].tolist() == expected
        assert batch["x"].tolist() == [[number, -number] for number in expected]


@pytest.mark.parametrize(
    ("index", "said"),
    [
        ([0.0, 1.0], "of dtype float64, expected integers, or a mask of booleans"),
        ([2**70], "of dtype object, expected integers"),
        ([True, False], "the mask has 2 elements, expected one for each of the 10 samples"),
        ([0, 10], "samples are numbered 0 to 9, and 10 is asked for"),
        ([-11], "samples are numbered 0 to 9, and -11 is asked for"),
        (np.array([2**64 - 1], np.uint64), "18446744073709551615 is asked for"),
        ([[0], [1]], "an array of 2 dimensions, expected one"),
    ],
)
def test_numbers_that_no_sample_has(ds: Dataset, index: Any, said: str) -> None:
    for take in (ds.__getitem__, ds.take):
        with pytest.raises(IndexError, match=re.escape(said)):
            take(index)


@pytest.mark.parametrize("index", [1.0, None, (1, 2), {"x"}, True, np.False_])
def test_what_is_no_index(ds: Dataset, index: Any) -> None:
    with pytest.raises(TypeError, match=rf"by a number, .*, not {type(index).__name__}"):
        ds[index]


@pytest.mark.parametrize("index", [10, -11, np.int64(10)])
def test_a_number_that_no_sample_has(ds: Dataset, index: int) -> None:
    with pytest.raises(IndexError, match=f"samples are numbered 0 to 9, and {index} is asked for"):
        ds[index]


def test_a_column_by_its_name(ds: Dataset, folder: Path) -> None:
    assert ds["n"].tolist() == list(range(10))
    assert ds["x"].shape == (10, 2)
    with pytest.raises(KeyError, match=r"has no column `y`; it is read with n, x"):
        ds["y"]
    with pytest.raises(KeyError, match="has no column `x`; it is read with n"):
        open_dataset(folder, columns=["n"])["x"]


def test_what_it_shows(ds: Dataset, folder: Path) -> None:
    assert repr(ds) == f"<Dataset {folder}: 10 samples of n I64 [], x F32 [2] in 3 shards>"
    many = folder / "many"
    many.mkdir()
    save_file({f"c{number:02}": np.zeros((1, 2), np.int8) for number in range(20)}, many / "0.safetensors")
    assert repr(open_dataset(many)).endswith("c06 I8 [2], c07 I8 [2] and 12 more columns in 1 shard>")


def test_arguments_of_the_wrong_type(folder: Path) -> None:
    with pytest.raises(TypeError, match=r"columns is the string 'n', expected a list of names: columns=\['n'\]"):
        open_dataset(folder, columns="n")
    functions: list[Callable[..., Any]] = [open_dataset, open_store]
    for open_one in functions:
        with pytest.raises(TypeError, match="storage_options is a list, expected a dictionary"):
            open_one(folder, ["n"])


TAKES: list[Callable[[Dataset], Any]] = [
    lambda ds: ds[5]["x"],
    lambda ds: next(iter(ds))["x"],
    lambda ds: ds.__getitems__([5])[0]["x"],
    lambda ds: ds[1:3]["x"],
    lambda ds: ds[7:5:-1]["x"],
    lambda ds: ds[1:6]["x"],
    lambda ds: ds[3:3]["x"],
    lambda ds: ds[[5]]["x"],
    lambda ds: ds["x"],
    lambda ds: next(iter(ds.batches(2)))["x"],
]


@pytest.mark.parametrize("take", TAKES)
def test_arrays_are_the_caller_s(ds: Dataset, folder: Path, take: Callable[[Dataset], Any]) -> None:
    before = {path: path.read_bytes() for path in folder.iterdir()}
    array = take(ds)
    expected = array.tolist()
    array += 1
    assert take(ds).tolist() == expected
    assert {path: path.read_bytes() for path in folder.iterdir()} == before


@pytest.mark.parametrize("length", [10, 1 << 20])
def test_writing_to_an_array_of_a_store_does_not_reach_the_file(tmp_path: Path, length: int) -> None:
    """As PyTorch does, which does not know of read-only arrays."""
    path = tmp_path / "0.safetensors"
    save_file({"a": np.zeros(length, np.uint8)}, path)
    before = path.read_bytes()
    array = open_store(tmp_path)["a"]
    with pytest.raises(ValueError, match="read-only"):
        array += 1
    if (child := os.fork()) == 0:
        ctypes.memset(array.ctypes.data, 1, length)
        os._exit(0 if array.all() else 1)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    assert path.read_bytes() == before
    assert not array.any()


def test_a_store_of_more_bytes_than_memory(tmp_path: Path) -> None:
    length = 1 << 43
    header = f'{{"a":{{"dtype":"U8","shape":[{length}],"data_offsets":[0,{length}]}}}}'.encode()
    with (tmp_path / "0.safetensors").open("wb") as file:
        file.write(len(header).to_bytes(8, "little") + header)
        try:
            file.truncate(8 + len(header) + length)
        except OSError:
            pytest.skip("the file system has no files of 8 TiB")
    assert open_store(tmp_path)["a"][-3:].tolist() == [0, 0, 0]


def test_shards_without_samples(tmp_path: Path) -> None:
    for name, count in zip("abcde", (0, 2, 0, 3, 0), strict=True):
        save_file({"x": np.full((count, 2), count)}, tmp_path / f"{name}.safetensors")
    ds = open_dataset(tmp_path)
    assert len(ds) == 5
    assert ds["x"][:, 0].tolist() == ds[:]["x"][:, 0].tolist() == [2, 2, 3, 3, 3]
    assert [int(sample["x"][0]) for sample in ds] == [int(ds[number]["x"][0]) for number in range(5)] == [2, 2, 3, 3, 3]
    assert [batch["x"].tolist() for batch in ds.batches(4)] == [[[2, 2], [2, 2], [3, 3], [3, 3]], [[3, 3]]]
    for name in "bd":
        (tmp_path / f"{name}.safetensors").unlink()
    none = open_dataset(tmp_path)
    assert (len(none), list(none), list(none.batches(4))) == (0, [], [])
    for empty in (none[:]["x"], none["x"], none.take([])["x"]):
        assert (empty.shape, empty.dtype) == ((0, 2), np.int64)
    with pytest.raises(IndexError, match="there are no samples, and 0 is asked for"):
        none[0]


def test_samples_without_elements(tmp_path: Path) -> None:
    for name in "ab":
        save_file({"x": np.empty((3, 0), np.float32), "n": np.arange(3)}, tmp_path / f"{name}.safetensors")
    ds = open_dataset(tmp_path)
    assert [column.shape for column in ds.columns if column.name == "x"] == [(0,)]
    assert (ds[4]["x"].shape, ds[4]["x"].dtype) == ((0,), np.float32)
    shapes = [ds[:2]["x"].shape, ds[1:5]["x"].shape, ds["x"].shape, next(iter(ds.batches(4)))["x"].shape]
    assert shapes == [(2, 0), (4, 0), (6, 0), (4, 0)]


def test_a_shard_with_fewer_samples_than_its_manifest_says(tmp_path: Path) -> None:
    dataset = Handmade(tmp_path, "batch")
    for numbers in ([1.0, 2.0, 3.0], [4.0, 5.0, 6.0]):
        dataset.shard(v=numbers)
    dataset.shards[1]["samples_count"] = 4
    dataset.commit()
    ds = open_dataset(tmp_path)
    assert ds[:3]["v"].tolist() == [1.0, 2.0, 3.0]
    said = rf"{dataset.shards[1]['file']}: tensor `v` is of shape \[3\], expected 4 samples"
    for number in (3, 6):
        with pytest.raises(sts.DamagedShardError, match=said):
            ds[number]
