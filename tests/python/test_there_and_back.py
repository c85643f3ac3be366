"""Random schemas and rows, written from Python, are read as they were: by samples, batches and keys, and officially."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from safetensors.numpy import load_file

from safetensors_spark.dataset import Dataset, Ragged, open_dataset, open_store, verify, write_dataset

NUMBERS = ["bool", "int8", "uint8", "int16", "uint16", "float16", "int32", "uint32", "float32", "int64", "uint64", "f8"]
NAMES = ["x", "y z", "é", 'q"\\', "a.b", "offsets", "x.offset", "数", "_id", "metadata"]
DIMS = st.lists(st.integers(0, 3), max_size=2).map(tuple)


@dataclass
class Made:
    """A column: its rows as they are expected, and what is written of some of them."""

    kind: str
    rows: list[Any]
    given: Callable[[list[Any]], Any]


def numbers(seed: int, dtype: str, shape: tuple[int, ...]) -> Any:
    """Any bits, so also those that are no number."""
    raw = np.random.default_rng(seed).integers(0, 256, (*shape, np.dtype(dtype).itemsize), np.uint8)
    return (raw % 2).view(bool).reshape(shape) if dtype == "bool" else raw.view(dtype).reshape(shape)


@st.composite
def fixed(draw: Any, count: int) -> Made:
    dtype, shape = draw(st.sampled_from(NUMBERS)), draw(DIMS)
    rows = list(numbers(draw(st.integers(0, 99)), dtype, (count, *shape)))
    arrays, as_list = (lambda some: np.array(some, dtype).reshape(len(some), *shape)), draw(st.booleans())
    return Made("fixed", rows, list if as_list and shape else arrays)


@st.composite
def ragged(draw: Any, count: int) -> Made:
    dtype, shape = draw(st.sampled_from(NUMBERS)), draw(st.lists(st.integers(1, 3), max_size=1).map(tuple))
    lengths = draw(st.lists(st.integers(0, 4), min_size=count, max_size=count))
    values = numbers(draw(st.integers(0, 99)), dtype, (sum(lengths), *shape))
    rows = np.split(values, np.cumsum(lengths[:-1])) if count else []

    def joined(some: list[Any]) -> Ragged:
        return Ragged(np.concatenate(some), np.cumsum([0, *map(len, some)]))

    return Made("ragged", rows, draw(st.sampled_from([list, joined])))


@st.composite
def others(draw: Any, count: int) -> Made:
    """Text, bytes, dates and timestamps, as Python's values or NumPy's."""
    letters = st.text(st.characters(exclude_categories=["Cs"]), max_size=5)
    kind, values = draw(
        st.sampled_from(
            [
                ("text", letters),
                ("binary", st.binary(max_size=5)),
                ("date", st.dates()),
                ("timestamp", st.datetimes()),
            ]
        )
    )
    rows = draw(st.lists(values, min_size=count, max_size=count))
    if kind in ("text", "binary"):
        return Made(kind, rows, list)
    unit = "datetime64[D]" if kind == "date" else "datetime64[us]"
    arrays = (lambda some: np.array(some, unit)) if draw(st.booleans()) else list
    return Made(
        kind, [np.datetime64(row).astype(unit) for row in rows], lambda some: arrays([one.item() for one in some])
    )


@st.composite
def tables(draw: Any) -> dict[str, Made]:
    count = draw(st.integers(1, 12))
    names = draw(st.lists(st.sampled_from(NAMES), max_size=4, unique=True))
    table = {name: draw(st.one_of(fixed(count), ragged(count), others(count))) for name in names}
    return {"number": Made("fixed", list(np.arange(count)), np.array), **table}


def same(found: Any, expected: Any) -> bool:
    """Whether both are the same bits of the same type."""
    if isinstance(expected, str | bytes):
        return type(found) is type(expected) and found == expected
    found, expected = np.asarray(found), np.asarray(expected)
    return (found.dtype, found.shape) == (expected.dtype, expected.shape) and found.tobytes() == expected.tobytes()


def check_rows(batch: dict[str, Any], table: dict[str, Made], numbers: list[int]) -> None:
    assert batch.keys() == table.keys()
    for name, column in table.items():
        assert len(batch[name]) == len(numbers)
        assert all(same(batch[name][row], column.rows[number]) for row, number in enumerate(numbers))


def parts_of(data: Any, count: int, most: int) -> Iterator[range]:
    """So many rows in parts of random lengths."""
    ends = sorted(data.draw(st.sets(st.integers(1, count), max_size=most)) | {count})
    return (range(begin, end) for begin, end in zip([0, *ends], ends, strict=False))


def write(path: Path, data: Any, table: dict[str, Made], **options: Any) -> None:
    """Writes the rows by several appends, each of several batches."""
    for rows in parts_of(data, len(table["number"].rows), 3):
        batches = [
            {name: one.given([one.rows[rows[row]] for row in some]) for name, one in table.items()}
            for some in parts_of(data, len(rows), 3)
        ]
        write_dataset(batches, path, progress=False, **options)
    assert verify(path).faults == []


def check_officially(ds: Dataset, path: Path, table: dict[str, Made]) -> None:
    shards = [load_file(path / shard.file) for shard in ds.shards]
    for name, column in table.items():
        values = np.concatenate([shard[name] for shard in shards])
        if column.kind == "fixed":
            assert same(values, np.array(column.rows))
        elif column.kind in ("date", "timestamp"):
            assert values.tolist() == [int(row.astype(np.int64)) for row in column.rows]
        else:
            lengths = np.concatenate([np.diff(shard[f"{name}.offsets"]) for shard in shards])
            rows = [row.encode() if isinstance(row, str) else row for row in column.rows]
            assert lengths.tolist() == [len(row) for row in rows]
            assert values.tobytes() == b"".join(bytes(row) if isinstance(row, bytes) else row.tobytes() for row in rows)


@settings(max_examples=80, deadline=None)
@given(tables(), st.sampled_from([1, 2, 3, 5, "auto"]), st.booleans(), st.data())
def test_samples_are_those_that_were_written(
    tmp_path_factory: pytest.TempPathFactory, table: dict[str, Made], batch_size: Any, index: bool, data: Any
) -> None:
    path, count = tmp_path_factory.mktemp("any") / "dataset", len(table["number"].rows)
    names = [name for name, column in table.items() if column.kind == "ragged"]
    write(path, data, table, batch_size=batch_size, ragged=names, generate_index=index)
    ds = open_dataset(path)
    assert len(ds) == count
    check_officially(ds, path, table)
    check_rows({name: ds[name] for name in table}, table, list(range(count)))
    for number, sample in enumerate(ds):
        for one in (sample, ds[number], ds[number - count]):
            assert all(same(one[name], column.rows[number]) for name, column in table.items())
    for some in (data.draw(st.slices(count)), *(slice(begin, begin + 2) for begin in range(count))):
        check_rows(ds[some], table, list(range(count))[some])
    chosen = data.draw(st.lists(st.integers(-count, count - 1), max_size=6))
    check_rows(ds.take(chosen), table, [number % count for number in chosen])
    shuffle, size, threads = data.draw(st.booleans()), data.draw(st.integers(1, 7)), data.draw(st.integers(0, 1))
    taken = []
    for batch in ds.batches(size, shuffle=shuffle, threads=threads, window_bytes=data.draw(st.integers(1, 4000))):
        check_rows(batch, table, batch["number"].tolist())
        taken += batch["number"].tolist()
    assert sorted(taken) == list(range(count))
    assert shuffle or taken == list(range(count))


KEYS = st.one_of(
    st.lists(st.text(st.characters(exclude_categories=["Cs"]), max_size=5), min_size=1, max_size=9, unique=True),
    st.lists(st.integers(-(2**63), 2**63 - 1), min_size=1, max_size=9, unique=True),
)


@settings(max_examples=60, deadline=None)
@given(KEYS, st.lists(st.sampled_from(NAMES), min_size=1, max_size=3, unique=True), st.booleans(), st.data())
def test_tensors_by_key_are_those_that_were_written(
    tmp_path_factory: pytest.TempPathFactory, keys: list[Any], names: list[str], index: bool, data: Any
) -> None:
    path = tmp_path_factory.mktemp("any") / "store"
    count = len(keys)
    table = {name: data.draw(st.one_of(fixed(count), ragged(count))) for name in names}
    table = {name: Made(one.kind, one.rows, list if one.kind == "ragged" else one.given) for name, one in table.items()}
    write(path, data, {"number": Made("key", keys, list), **table}, name_col="number", generate_index=index)
    expected = {
        str(key) if len(names) == 1 else f"{key}__{name}": column.rows[row]
        for name, column in table.items()
        for row, key in enumerate(keys)
    }
    store = open_store(path)
    assert len(store) == len(expected)
    assert set(store) == set(expected)
    assert all(same(store[key], value) for key, value in expected.items())
    found = store.get_many(list(expected))
    assert all(same(one, value) for one, value in zip(found, expected.values(), strict=True))
    loaded = {name: one for shard in path.glob("*.safetensors") for name, one in load_file(shard).items()}
    assert loaded.keys() == expected.keys()
    assert all(same(loaded[key], value) for key, value in expected.items())
