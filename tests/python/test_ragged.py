"""Columns whose rows differ in length, text, bytes, dates and times: written by the official library, read back."""

import datetime
import pickle
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import pyarrow as pa  # type: ignore[import-untyped]
import pytest
from safetensors.numpy import load_file, save_file

import safetensors_spark as sts
from handmade import Handmade, encoded, kinds_of
from safetensors_spark._files.numpy_dtypes import NUMPY, numpy_dtype
from safetensors_spark.dataset import (
    Column,
    Dataset,
    Packed,
    Padded,
    Ragged,
    inspect,
    mix,
    open_dataset,
    write_dataset,
)

COLUMNS = (
    Column("tokens", "I32", (), "ragged"),
    Column("boxes", "F32", (2, 2), "ragged"),
    Column("caption", "U8", (), "text"),
    Column("image", "U8", (), "binary"),
    Column("day", "I32", (), "date"),
    Column("at", "I64", (), "timestamp"),
    Column("local", "I64", (), "timestamp_ntz"),
    Column("is_new", "BOOL", ()),
    Column("x", "F32", (3,)),
)
WORDS = ["", "plain", "zweiäöü", "日本語", "🤷🏽‍♀️ x", "\0", "a" * 300]

Rows = dict[str, list[Any]]


def made(begin: int, count: int) -> Rows:
    """Rows from a number on."""
    numbers = range(begin, begin + count)
    lengths = [number * 7 % 11 for number in numbers]
    return {
        "tokens": [np.arange(n, dtype=np.int32) + k for k, n in zip(numbers, lengths, strict=True)],
        "boxes": [np.full((n % 3, 2, 2), k, np.float32) for k, n in zip(numbers, lengths, strict=True)],
        "caption": [WORDS[k % len(WORDS)] for k in numbers],
        "image": [bytes([k % 256]) * n for k, n in zip(numbers, lengths, strict=True)],
        "day": [k - 5 for k in numbers],
        "at": [k * 10**15 - 3 for k in numbers],
        "local": [-k for k in numbers],
        "is_new": [k % 3 == 0 for k in numbers],
        "x": [np.full(3, k, np.float32) for k in numbers],
    }


COUNTS = [3, 1, 8, 5]
ROWS = made(0, sum(COUNTS))


def expected(name: str, value: Any) -> Any:
    """What the loader gives of a value that was written."""
    kind = {column.name: column.kind for column in COLUMNS}[name]
    if kind == "date":
        return np.datetime64(value, "D")
    return np.datetime64(value, "us") if kind.startswith("timestamp") else value


def same(found: Any, name: str, value: Any) -> bool:
    wanted = expected(name, value)
    if isinstance(wanted, str | bytes):
        return type(found) is type(wanted) and found == wanted
    if isinstance(wanted, np.ndarray):
        return found.dtype == wanted.dtype and np.array_equal(found, wanted)
    return bool(found == wanted) and np.asarray(found).dtype == np.asarray(wanted).dtype


def check(batch: Mapping[str, Any], rows: Sequence[int]) -> None:
    """That a batch has these rows."""
    for name, column in batch.items():
        assert len(column) == len(rows), name
        for found, row in zip(column, rows, strict=True):
            assert same(found, name, ROWS[name][row]), (name, row)


@pytest.fixture(params=["dataset", "folder", "padded"])
def ds(request: pytest.FixtureRequest, tmp_path: Path) -> Dataset:
    dataset, begin = Handmade(tmp_path / "rows", "batch"), 0
    for count in COUNTS:
        dataset.rows(COLUMNS, made(begin, count), 3 if request.param == "padded" else 0)
        begin += count
    if request.param != "folder":
        dataset.commit(COLUMNS)
        return open_dataset(dataset.folder)
    for number, shard in enumerate(dataset.shards):
        (dataset.folder / shard["file"]).rename(dataset.folder / f"{number}.safetensors")
    return open_dataset(dataset.folder)


def test_the_columns(ds: Dataset) -> None:
    assert set(ds.columns) == set(COLUMNS)
    assert len(ds) == sum(COUNTS)
    assert "caption text" in repr(open_dataset(ds.samples.contents.folder.location, columns=["caption", "tokens"]))
    assert "tokens I32 [] (ragged)" in repr(open_dataset(ds.samples.contents.folder.location, columns=["tokens"]))


def test_inspection(ds: Dataset) -> None:
    found = inspect(ds.samples.contents.folder.location)
    assert (found.samples, set(found.columns)) == (sum(COUNTS), set(COLUMNS))


def test_samples_are_what_was_written(ds: Dataset) -> None:
    for samples in (ds, [ds[row] for row in range(len(ds))], [ds[row - len(ds)] for row in range(len(ds))]):
        for row, sample in enumerate(samples):
            assert set(sample) == set(ROWS)
            for name, found in sample.items():
                assert same(found, name, ROWS[name][row]), (name, row)
    assert ds[4]["at"].item() == datetime.datetime(2096, 10, 2, 7, 6, 39, 999997)


@pytest.mark.parametrize(
    "index",
    [
        slice(4, 9),
        slice(2, 14, 3),
        slice(None, None, -1),
        slice(5, 5),
        slice(9, 4, -2),
        [7],
        [9, -1, 3, 3, 0],
        np.array([], int),
        np.arange(17) % 3 == 0,
        np.zeros(17, bool),
    ],
)
def test_slices_numbers_and_masks(ds: Dataset, index: Any) -> None:
    check(ds[index], np.arange(17)[index].tolist())


def test_columns_by_name(ds: Dataset) -> None:
    check({name: ds[name] for name in ROWS}, range(17))


@pytest.mark.parametrize("threads", [0, 2])
@pytest.mark.parametrize("batch_size", [1, 4, 17])
def test_batches(ds: Dataset, threads: int, batch_size: int) -> None:
    found = list(ds.batches(batch_size, threads=threads))
    check({name: [row for batch in found for row in batch[name]] for name in ROWS}, range(17))
    assert {type(batch["caption"]) for batch in found} == {type(batch["image"]) for batch in found} == {list}
    batches = ds.batches(batch_size, threads=threads, shuffle=True, seed=3, window_bytes=1 << 13)
    found = list(batches)
    order = [int(x[0]) for batch in found for x in batch["x"]]
    assert sorted(order) == list(range(17)) != order
    check({name: [row for batch in found for row in batch[name]] for name in ROWS}, order)
    assert len(list(batches)) == len(batches)
    state = batches.state_dict()
    again = ds.batches(3, shuffle=True, seed=3, window_bytes=1 << 13)
    again.load_state_dict(state)
    assert again.epoch == 2


def test_forms_of_batches(ds: Dataset) -> None:
    packed = next(iter(ds.batches(17, ragged="packed")))["tokens"]
    assert isinstance(packed, Packed)
    assert packed.values.tolist() == np.concatenate(ROWS["tokens"]).tolist()
    assert packed.cu_seqlens.dtype == np.int32
    assert packed.cu_seqlens.tolist() == np.cumsum([0, *map(len, ROWS["tokens"])]).tolist()
    assert packed.max_seqlen == 10
    batch = next(iter(ds.batches(17, ragged={"boxes": "padded"}, dtype=np.float64)))
    assert isinstance(batch["tokens"], Ragged)
    padded = batch["boxes"]
    assert isinstance(padded, Padded)
    assert (padded.values.shape, padded.values.dtype, padded.mask.shape) == ((17, 2, 2, 2), np.float64, (17, 2))
    assert padded.mask.sum(1).tolist() == [len(row) for row in ROWS["boxes"]]
    assert np.array_equal(padded.values[padded.mask], np.concatenate(ROWS["boxes"]))
    assert not padded.values[~padded.mask].any()
    with pytest.raises(ValueError, match="ragged is 'jagged', expected one of nested, packed, padded"):
        ds.batches(4, ragged="jagged")  # type: ignore[arg-type]
    with pytest.raises(
        sts.SafetensorsSparkError,
        match=r"`ragged` names the column `caption`; .* is read with \w+, \w+ ragged columns",
    ):
        ds.batches(4, ragged={"caption": "packed"})


def test_casts_and_transforms(ds: Dataset) -> None:
    options: dict[str, Any] = {"dtype": {"tokens": np.int64, "day": np.int32, "x": np.float16}}
    batch = next(iter(ds.batches(4, transform=lambda batch: batch | {"n": len(batch["caption"])}, **options)))
    assert [batch[name].dtype for name in ("day", "x")] == [np.int32, np.float16]
    assert (batch["tokens"].values.dtype, batch["boxes"].values.dtype, batch["n"]) == (np.int64, np.float32, 4)
    assert batch["day"].tolist() == ROWS["day"][:4]


def test_a_slice_does_not_copy_the_values(tmp_path: Path) -> None:
    dataset = Handmade(tmp_path, "batch")
    columns = [Column("tokens", "I32", (), "ragged"), Column("caption", "U8", (), "text")]
    dataset.rows(columns, {"tokens": [np.arange(100_000, dtype=np.int32)] * 4, "caption": ["y" * 100_000] * 4})
    dataset.commit(columns)
    ds = open_dataset(tmp_path)
    whole, part = ds["tokens"], ds[1:3]
    assert np.shares_memory(whole.values, part["tokens"].values)
    assert np.shares_memory(ds["caption"].values, part["caption"].values)
    assert not part["tokens"].values.flags.writeable
    assert np.shares_memory(part["tokens"][1:].values, whole.values)
    assert part["tokens"].copy().values.flags.writeable
    # Samples, and rows that are taken, are the caller's.
    for own in (ds[1]["tokens"], ds[[1, 2]]["tokens"].values, next(iter(ds.batches(2)))["tokens"].values):
        own += 1
    assert ds[1]["tokens"][5] == 5


def test_rows_without_values(tmp_path: Path) -> None:
    """Shards in which no row has any value, one of them without rows; and no rows at all."""
    columns = [Column("t", "I32", (2,), "ragged"), Column("s", "U8", (), "text"), Column("d", "I32", (), "date")]
    dataset = Handmade(tmp_path / "some", "batch")
    none = np.empty((0, 2), np.int32)
    for count in (2, 0, 1):
        dataset.rows(columns, {"t": [none] * count, "s": [""] * count, "d": [0] * count})
    dataset.rows(columns, {"t": [none, np.ones((3, 2), np.int32)], "s": ["", "end"], "d": [1, 2]})
    dataset.commit(columns)
    ds = open_dataset(dataset.folder)
    for batch in (ds[:], ds.take(range(5)), next(iter(ds.batches(5))), {name: ds[name] for name in ("t", "s")}):
        assert [row.shape for row in batch["t"]] == [(0, 2)] * 4 + [(3, 2)]
        assert list(batch["s"]) == [""] * 4 + ["end"]
    assert [[row.shape for row in batch["t"]] for batch in ds.batches(2, ragged={"t": "nested"})] == [
        [(0, 2)] * 2,
        [(0, 2)] * 2,
        [(3, 2)],
    ]
    assert [batch["t"].values.shape for batch in ds.batches(2, ragged="padded")] == [(2, 0, 2), (2, 0, 2), (1, 3, 2)]
    empty = Handmade(tmp_path / "none", "batch")
    empty.commit(columns)
    for found in (open_dataset(empty.folder), open_dataset(dataset.folder)):
        batch = found[0:0]
        assert (len(batch["t"]), batch["t"].values.shape, batch["t"].values.dtype) == (0, (0, 2), np.int32)
        assert (batch["s"].tolist(), batch["d"].dtype) == ([], np.dtype("datetime64[D]"))
        assert found.take([])["s"].tolist() == []
    assert list(open_dataset(empty.folder).batches(4)) == []
    assert open_dataset(empty.folder)["s"].tolist() == []


@pytest.mark.parametrize("manifest", [True, False])
def test_a_shard_without_values_need_not_tell_their_shape(tmp_path: Path, manifest: bool) -> None:
    column = Column("t", "I32", (2,), "ragged")
    dataset = Handmade(tmp_path, "batch")
    for count in (0, 3):
        tensors = {"t": np.ones((count, 2 if count else 0), np.int32), "t.offsets": np.array([0, 0, count])}
        dataset.save(tensors, 2, kinds_of([column]))
    if manifest:
        dataset.commit([column])
    else:
        for number, shard in enumerate(dataset.shards):
            (tmp_path / shard["file"]).rename(tmp_path / f"{number}.safetensors")
    ds = open_dataset(tmp_path)
    assert ds.columns == (column,)
    for rows in (ds["t"], ds[:]["t"], next(iter(ds.batches(4)))["t"], [ds[row]["t"] for row in range(4)]):
        assert [row.shape for row in rows] == [(0, 2), (0, 2), (0, 2), (3, 2)]
    assert ds[0]["t"].shape == (0, 2)


def test_every_shard_opens_with_the_official_library(tmp_path: Path) -> None:
    dataset = Handmade(tmp_path, "batch")
    path = dataset.rows(COLUMNS, made(0, 4))
    assert load_file(path)["caption.offsets"].tolist() == [0, 0, 5, 15, 24]


def damaged(folder: Path, tensors: Mapping[str, Any], columns: Sequence[Column], rows: int = 2) -> Dataset:
    """A dataset whose second shard has some other tensors."""
    folder.mkdir(exist_ok=True)
    dataset = Handmade(folder, "batch")
    for change in ({}, tensors):
        good: Rows = {"s": ["ä", "bc"], "t": [np.zeros(2, np.int32), np.zeros(3, np.int32)]}
        whole = {name: array for column in columns for name, array in encoded(column, good[column.name]).items()}
        dataset.save(
            {name: np.asarray(array) for name, array in (whole | dict(change)).items() if array is not None},
            rows,
            kinds_of(columns),
        )
    dataset.commit(columns)
    return open_dataset(folder)


TEXT, TOKENS = Column("s", "U8", (), "text"), Column("t", "I32", (), "ragged")
DAMAGE: list[tuple[dict[str, Any], str]] = [
    ({"t.offsets": [0, 3, 2]}, "tensor `t.offsets` decreases from 3 to 2 in row 1"),
    ({"t.offsets": [1, 3, 5]}, "tensor `t.offsets` begins with 1, expected 0"),
    ({"t.offsets": [-1, 3, 5]}, "tensor `t.offsets` begins with -1, expected 0"),
    ({"t.offsets": [0, 2, 4]}, "tensor `t.offsets` ends with 4, expected 5, which is the number of values"),
    ({"t.offsets": [0, 2, 6]}, "tensor `t.offsets` ends with 6, expected 5"),
    ({"t.offsets": [0, 5]}, "tensor `t.offsets` is of shape [2], expected 2 samples"),
    ({"t.offsets": [0, 2, 3, 5]}, "tensor `t.offsets` has values in rows from 2 on, which only fill up the shard"),
    ({"t.offsets": np.array([0, 2, 5], np.int32)}, "tensor `t.offsets` is of I32 [3], expected I64 [rows + 1]"),
    ({"t.offsets": np.zeros((3, 1), np.int64)}, "tensor `t.offsets` is of I64 [3, 1], expected I64 [rows + 1]"),
    ({"t.offsets": np.zeros(0, np.int64)}, "tensor `t.offsets` is of I64 [0], expected I64 [rows + 1]"),
    ({"t.offsets": None}, "has no tensor `t.offsets`, which a ragged column has"),
    ({"t": None}, "has no tensor `t`, which other shards have"),
    ({"t": np.array(3, np.int32)}, "tensor `t` of a ragged column is of I32 [], expected I32 [rows]"),
    ({"s": np.zeros(4, np.int8)}, "tensor `s` of a text column is of I8 [4], expected U8 [rows]"),
]


@pytest.mark.parametrize(("tensors", "said"), DAMAGE)
def test_damaged_offsets(tmp_path: Path, tensors: dict[str, Any], said: str) -> None:
    ds = damaged(tmp_path, tensors, [TEXT, TOKENS])
    assert ds[1]["s"] == "bc"
    pattern = rf"{ds.shards[1].file}.* {re.escape(said)}"
    takes: list[Any] = [lambda: ds[2], lambda: ds[:], lambda: ds["t"], lambda: ds["s"], lambda: list(ds.batches(4))]
    for take in takes:
        with pytest.raises(sts.DamagedShardError, match=pattern):
            take()


@pytest.mark.parametrize(
    ("tensors", "row", "said"),
    [
        # Both rows have a half of the character.
        ({"s.offsets": [0, 1, 4]}, "[01]", "is not UTF-8"),
        ({"s": np.array([97, 98, 255, 97], np.uint8)}, 1, "is not UTF-8: invalid start byte at its byte 0"),
        # Half of a surrogate pair, and a character in more bytes than it takes.
        ({"s": np.array([97, 0xED, 0xA0, 0x80], np.uint8), "s.offsets": [0, 1, 4]}, 1, "is not UTF-8"),
        ({"s": np.array([0xC0, 0x80, 97, 98], np.uint8)}, 0, "is not UTF-8: invalid start byte"),
    ],
)
def test_text_that_is_not_utf8(tmp_path: Path, tensors: dict[str, Any], row: Any, said: str) -> None:
    """Found when it is decoded."""
    ds = damaged(tmp_path, tensors, [TEXT, TOKENS])
    file = ds.shards[1].file
    lazy = [ds[2:]["s"], ds[:]["s"], ds[::-1]["s"], ds["s"], ds[[3, 2]]["s"][::-1], ds[1:]["s"][1:]]
    takes: list[Any] = [text.tolist for text in lazy]
    takes += [lambda text=text: list(text) for text in lazy] + [text.to_arrow for text in lazy]
    takes += [
        lambda: [ds[2], ds[3]],
        lambda: list(ds.batches(3, shuffle=True)),
        pickle.loads(pickle.dumps(lazy[0])).tolist,
    ]
    for take in takes:
        with pytest.raises(sts.DamagedShardError, match=rf"{file}: column `s`, row {row} of the shard, {said}"):
            take()
    assert ds[:2]["s"].tolist() == ["ä", "bc"]


def test_files_that_do_not_agree_in_kinds(tmp_path: Path) -> None:
    for number, kind in enumerate(("text", "binary")):
        column = Column("s", "U8", (), kind)  # type: ignore[arg-type]
        tensors = {"s": np.zeros(2, np.uint8), "s.offsets": np.array([0, 1, 2])}
        save_file(tensors, tmp_path / f"{number}.safetensors", kinds_of([column]))
    ds = open_dataset(tmp_path)
    with pytest.raises(
        sts.InvalidTensorError, match=r"1.safetensors: column `s` is binary, and text in the first file"
    ):
        ds[2]


@pytest.mark.parametrize(
    ("kinds", "said"),
    [
        ("{", "`column_kinds` of its metadata is not JSON"),
        ('["text"]', r"`column_kinds` of its metadata is `\[\"text\"\]`, expected a JSON object"),
        ('{"s":"poem"}', "column `s` is of kind `poem`, expected one of fixed, ragged, text"),
        ('{"s":["text"]}', "column `s` is of kind"),
        ('{"r":"text"}', "0.safetensors has no tensor `r`, of which its metadata names the kind"),
        ('{"s":"text"}', r"has no tensor `s.offsets`, which a text column has"),
        ('{"s":"date"}', r"tensor `s` of a date column is of U8 \[2\], expected I32 \[rows\]"),
    ],
)
def test_kinds_that_a_file_cannot_have(tmp_path: Path, kinds: str, said: str) -> None:
    save_file({"s": np.zeros(2, np.uint8)}, tmp_path / "0.safetensors", {"column_kinds": kinds})
    with pytest.raises(sts.DamagedShardError, match=said):
        open_dataset(tmp_path)


KINDS = ["fixed", "ragged", "text", "binary", "date", "timestamp", "timestamp_ntz"]
DTYPES = {"date": "I32", "timestamp": "I64", "timestamp_ntz": "I64", "text": "U8", "binary": "U8"}


def random_value(column: Column, random: np.random.Generator) -> Any:
    length = int(random.choice([0, 1, 3, 20, 200]))
    if column.kind == "text":
        points = random.choice([1 << 7, 1 << 11, 0xD800, 0x110000], length) - 1 - random.integers(0, 100, length)
        return "".join(map(chr, points))
    if column.kind == "binary":
        return random.bytes(length)
    shape = (*([length] if column.kind == "ragged" else []), *(column.shape or ()))
    bits = random.integers(-30_000 if column.kind in ("date", "timestamp", "timestamp_ntz") else 0, 2**15, shape)
    return np.asarray(bits).astype(numpy_dtype(column.dtype or ""))


@pytest.mark.parametrize("seed", range(20))
def test_random_rows_of_random_columns(tmp_path: Path, seed: int) -> None:
    """Whatever is written is what every way to read gives, in any order."""
    random = np.random.default_rng(seed)
    columns = [Column("id", "I64", ())]
    for number, kind in enumerate(random.choice(KINDS, int(random.integers(1, 6)))):
        dtype = DTYPES.get(kind) or str(random.choice([*NUMPY, "BF16", "F8_E4M3"]))
        shape = () if kind in DTYPES else tuple(random.integers(0, 4, int(random.integers(0, 3))).tolist())
        columns.append(Column(f"{number}{kind}", dtype, shape, kind))
    dataset = Handmade(tmp_path, "batch")
    rows: Rows = {column.name: [] for column in columns}
    for count in random.integers(0, 9, 6).tolist():
        some = {column.name: [random_value(column, random) for _ in range(count)] for column in columns}
        some["id"] = list(range(len(rows["id"]), len(rows["id"]) + count))
        dataset.rows(columns, some, int(random.integers(0, 2)) * count)
        rows = {name: values + some[name] for name, values in rows.items()}
    dataset.commit(columns)
    ds, count = open_dataset(tmp_path), len(rows["id"])
    chosen = random.integers(-count, count, 30).tolist()
    batches = list(ds.batches(int(random.integers(1, 12)), shuffle=True, seed=seed, window_bytes=4000))
    shuffled = {name: [value for batch in batches for value in batch[name]] for name in rows}
    assert sorted(shuffled["id"]) == list(range(count))
    whole = {name: ds[name] for name in rows}
    by_one = {name: [ds[row][name] for row in range(count)] for name in rows}
    found = [(whole, range(count)), (by_one, range(count)), (ds.take(chosen), chosen), (shuffled, shuffled["id"])]
    for column in columns:
        for batch, order in found:
            assert len(batch[column.name]) == len(order)
            for value, row in zip(batch[column.name], order, strict=True):
                wanted = rows[column.name][row]
                if column.kind in ("date", "timestamp", "timestamp_ntz"):
                    value = np.asarray(value).astype(np.int64)
                if column.kind in ("text", "binary"):
                    assert value == wanted
                else:
                    assert np.shape(value) == np.shape(wanted)
                    assert np.asarray(value).tobytes() == np.asarray(wanted).astype(np.asarray(value).dtype).tobytes()


ROWS_OF = Ragged(np.arange(6.0).reshape(6, 1), np.array([0, 2, 2, 6]))


def test_ragged_rows() -> None:
    assert len(ROWS_OF) == 3
    assert ROWS_OF.lengths.tolist() == [2, 0, 4]
    assert ROWS_OF[-1].tolist() == [[2], [3], [4], [5]]
    assert ROWS_OF.tolist() == [row.tolist() for row in ROWS_OF] == [[[0], [1]], [], [[2], [3], [4], [5]]]
    assert ROWS_OF[[2, 0]].tolist() == ROWS_OF[[False, False, True]].tolist() + ROWS_OF[:1].tolist()
    assert ROWS_OF[::-1].tolist() == ROWS_OF.tolist()[::-1]
    assert (len(ROWS_OF[3:]), len(ROWS_OF[2:1]), len(ROWS_OF[[]])) == (0, 0, 0)
    assert np.asarray(ROWS_OF, object)[2].shape == (4, 1)
    assert repr(ROWS_OF) == "<Ragged: 3 rows of float64 [1]: [[0.0], [1.0]], [], [[2.0], [3.0], [4.0], [5.0]]>"
    assert pickle.loads(pickle.dumps(ROWS_OF)).tolist() == ROWS_OF.tolist()
    with pytest.raises(IndexError):
        ROWS_OF[3]
    with pytest.raises(AttributeError):
        ROWS_OF.values = np.zeros(3)  # type: ignore[misc]
    padded = ROWS_OF.to_padded()
    assert padded.mask.tolist() == [[True, True, False, False], [False] * 4, [True] * 4]
    assert padded.values[0, :, 0].tolist() == [0, 1, 0, 0]
    packed = ROWS_OF.to_packed()
    assert np.shares_memory(packed.values, ROWS_OF.values)
    assert (packed.cu_seqlens.tolist(), packed.cu_seqlens.dtype, packed.max_seqlen) == ([0, 2, 2, 6], np.int32, 4)
    huge = Ragged(np.broadcast_to(np.zeros(1, np.uint8), (2**31,)), np.array([0, 2**31]))
    with pytest.raises(sts.InvalidTensorError, match="2,147,483,648 values do not fit offsets of 32 bits"):
        huge.to_packed()


def test_many_rows_in_another_order() -> None:
    lengths = np.arange(40_000) % 5
    rows = Ragged(np.arange(lengths.sum()), np.concatenate([[0], np.cumsum(lengths)]))
    order = np.random.default_rng(1).permutation(40_000)
    found = rows[order]
    assert found.lengths.tolist() == lengths[order].tolist()
    assert all(np.array_equal(found[number], rows[order[number]]) for number in range(0, 40_000, 7))
    assert np.array_equal(rows[::-1][::-1].values, rows.values)


@pytest.mark.parametrize(
    ("offsets", "said"),
    [
        ([0, 7], "ends with 7, expected 6"),
        ([1, 6], "begins with 1"),
        ([0, 4, 3, 6], "decreases from 4 to 3 in row 1"),
        (np.zeros(0, np.int64), r"offsets are of int64 \[0\], expected int64 \[rows \+ 1\]"),
        (np.array([0, 6], np.int32), r"offsets are of int32 \[2\]"),
    ],
)
def test_offsets_that_are_refused(offsets: Any, said: str) -> None:
    with pytest.raises(sts.InvalidTensorError, match=said):
        Ragged(np.arange(6), np.asarray(offsets))


def test_arrow_has_the_same_values() -> None:
    lists = ROWS_OF.to_arrow()
    assert lists.to_pylist() == ROWS_OF.tolist()
    flat = Ragged(np.arange(6, dtype=np.int32), np.array([0, 2, 2, 6]))[1:]
    assert flat.to_arrow().type == pa.large_list(pa.int32())
    assert flat.to_arrow().values.buffers()[1].address == flat.values.ctypes.data
    words = Ragged(np.frombuffer("aäb".encode(), np.uint8), np.array([0, 1, 1, 4]), "text")
    assert words.to_arrow().to_pylist() == words.tolist() == ["a", "", "äb"]
    assert (words.to_arrow().type, words.to_arrow().buffers()[2].address) == (
        pa.large_string(),
        words.values.ctypes.data,
    )
    binary = Ragged(words.values, words.offsets, "binary")
    assert (binary.to_arrow().type, binary.to_arrow().to_pylist()) == (pa.large_binary(), binary.tolist())
    for values in (np.zeros((0, 2), np.int8), np.zeros((0, 0), np.int8), np.zeros((0,), np.float16)):
        assert Ragged(values, np.zeros(3, np.int64)).to_arrow().to_pylist() == [[], []]
    with pytest.raises(sts.InvalidTensorError, match="Arrow has no type for values of bfloat16"):
        Ragged(np.zeros(6, ml_dtypes.bfloat16), np.array([0, 6])).to_arrow()
    with pytest.raises(sts.InvalidTensorError, match="row 1 is not UTF-8: invalid start byte at its byte 1"):
        Ragged(np.frombuffer(b"ab\xff", np.uint8), np.array([0, 1, 3]), "text").to_arrow()


def test_batches_of_long_bytes_have_each_row(tmp_path: Path) -> None:
    rows = [bytes([number % 251]) * (0 if number % 5 == 0 else 5000 + number) for number in range(60)]
    write_dataset([{"x": np.arange(60), "file": rows}], tmp_path / "files", batch_size=7)
    dataset = open_dataset(tmp_path / "files")
    for batch_size in (1, 4, 60):
        found = [
            pair
            for batch in dataset.batches(batch_size, shuffle=True)
            for pair in zip(batch["x"], batch["file"], strict=True)
        ]
        assert [bytes(file) for _, file in sorted(found, key=lambda pair: int(pair[0]))] == rows
        assert all(type(file) is bytes for _, file in found)
    mixed = mix([(dataset, 1), (dataset, 1)]).batches(8)
    assert sorted(file for batch in mixed for file in batch["file"]) == sorted(rows * 2)
