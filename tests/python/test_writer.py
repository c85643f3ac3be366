"""What `DatasetWriter` makes of rows, judged by the official library and by the readers."""

import datetime
import json
import string
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import pandas as pd  # type: ignore[import-untyped]
import pyarrow as pa  # type: ignore[import-untyped]
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from safetensors import safe_open
from safetensors.numpy import load_file, save

from handmade import Handmade
from safetensors_spark import InvalidWriteError
from safetensors_spark.dataset import DatasetWriter, open_store, verify

MANIFEST = "dataset_manifest.json"


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "dataset"


def write(path: Path, *batches: Any, **options: Any) -> list[Path]:
    """Write batches, and return the shards."""
    with DatasetWriter(path, **options) as writer:
        for batch in batches:
            writer.write(batch)
    assert verify(path).faults == []
    return [path / shard["file"] for shard in manifest(path)["shards"]]


def manifest(path: Path) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((path / MANIFEST).read_text())
    return found


def schema(path: Path) -> list[tuple[Any, ...]]:
    fields = ("name", "dtype", "shape", "kind", "type")
    return [tuple(column.get(field) for field in fields) for column in manifest(path)["schema"]]


TYPES = [
    "bool", "uint8", "int8", "int16", "uint16", "float16", "int32", "uint32", "float32", "complex64", "float64",
    "int64", "uint64", ml_dtypes.bfloat16, ml_dtypes.float8_e4m3fn, ml_dtypes.float8_e5m2,
]  # fmt: skip


def test_a_shard_has_the_official_library_s_bytes(path: Path) -> None:
    random = np.random.default_rng(1)
    names = ["a", "B", "é", "😀", "\uffff", 'q"\\', "tab\t", "a.b"]
    arrays = {
        f"{name}{n}": random.integers(0, 2, (3, 2)).astype(kind) for n, kind in enumerate(TYPES) for name in names
    }
    [shard] = write(path, arrays, batch_size=3)
    known = {name: array for name, array in arrays.items() if array.dtype != ml_dtypes.float8_e5m2}
    other = path.parent / "other"
    [shard] = write(other, known, batch_size=3)
    assert shard.read_bytes() == save(known, metadata={"format": "pt"})


def test_rows_are_divided_into_shards_of_the_batch_size(path: Path) -> None:
    batches = [{"x": np.arange(start, end, dtype=np.int32)} for start, end in ((0, 1), (1, 9), (9, 10))]
    shards = write(path, *batches, batch_size=4)
    assert [load_file(shard)["x"].tolist() for shard in shards] == [[0, 1, 2, 3], [4, 5, 6, 7], [8, 9]]


def test_arrays_may_change_once_they_are_written(path: Path) -> None:
    buffer, text = np.zeros(3), ["a", "b", "c"]
    with DatasetWriter(path, batch_size=4) as writer:
        for number in range(4):
            buffer[:] = number
            writer.write({"x": buffer, "t": text})
    shards = [path / shard["file"] for shard in manifest(path)["shards"]]
    assert np.concatenate([load_file(shard)["x"] for shard in shards]).tolist() == np.arange(4.0).repeat(3).tolist()


def test_arrays_of_other_memory_orders_are_stored_as_rows(path: Path) -> None:
    array = np.arange(24, dtype=">i4").reshape(2, 3, 4)
    rows = {"strided": array[:, ::2], "turned": array.transpose(0, 2, 1), "fortran": np.asfortranarray(array)}
    loaded = load_file(write(path, rows, batch_size=2)[0])
    for name, expected in rows.items():
        assert np.array_equal(loaded[name], expected)


@pytest.mark.parametrize(
    ("tail", "samples", "expected"),
    [("write", [2, 1], [[1, 2], [3]]), ("drop", [2], [[1, 2]]), ("pad", [2, 1], [[1, 2], [3, 0]])],
)
def test_the_tail_is_written_dropped_or_padded(path: Path, tail: Any, samples: list[int], expected: Any) -> None:
    shards = write(path, {"x": [1, 2, 3], "t": ["a", "bc", "d"]}, batch_size=2, tail_strategy=tail)
    assert [shard["samples_count"] for shard in manifest(path)["shards"]] == samples
    assert [load_file(shard)["x"].tolist() for shard in shards] == expected
    if tail == "pad":
        assert load_file(shards[1])["t.offsets"].tolist() == [0, 1, 1]


def test_ragged_rows_text_and_bytes_have_offsets(path: Path) -> None:
    rows = {"ids": [[1, 2], [], [3]], "text": ["é", "", "z"], "raw": [b"\xff", b"", b"ab"], "n": [1, 2, 3]}
    [first, second] = write(path, rows, batch_size=2, ragged=["ids"])
    loaded = load_file(first)
    assert {name: array.tolist() for name, array in loaded.items()} == {
        "ids": [1, 2], "ids.offsets": [0, 2, 2], "n": [1, 2],
        "raw": [255], "raw.offsets": [0, 1, 1], "text": [0xC3, 0xA9], "text.offsets": [0, 2, 2],
    }  # fmt: skip
    with safe_open(second, "numpy") as file:
        assert file.metadata() == {"format": "pt", "column_kinds": '{"ids":"ragged","raw":"binary","text":"text"}'}
    assert schema(path) == [
        ("ids", "I64", [], "ragged", "array<bigint>"),
        ("text", "U8", [], "text", "string"),
        ("raw", "U8", [], "binary", "binary"),
        ("n", "I64", [], None, "bigint"),
    ]


def test_ragged_rows_may_have_further_dimensions(path: Path) -> None:
    rows = [np.zeros((2, 3), np.float32), np.zeros((0, 3), np.float32), np.ones((1, 3), np.float32)]
    loaded = load_file(write(path, {"x": rows}, batch_size=3, ragged="x")[0])
    assert (loaded["x"].shape, loaded["x.offsets"].tolist()) == ((3, 3), [0, 2, 2, 3])
    assert schema(path) == [("x", "F32", [3], "ragged", "array<array<float>>")]


def test_dates_and_times_are_days_and_microseconds(path: Path) -> None:
    utc = datetime.timezone.utc
    rows = {
        "d": [datetime.date(1970, 1, 2), datetime.date(1969, 12, 31)],
        "t": [datetime.datetime(1970, 1, 1, 0, 0, 1, 5, utc), datetime.datetime(1969, 12, 31, tzinfo=utc)],
        "n": np.array(["1970-01-01T00:00:00.000007", "1970-01-02"], "datetime64[ns]"),
    }
    loaded = load_file(write(path, rows, batch_size=2)[0])
    assert {name: array.tolist() for name, array in loaded.items()} == {
        "d": [1, -1], "t": [1_000_005, -86_400_000_000], "n": [7, 86_400_000_000],
    }  # fmt: skip
    assert [column[1:4] for column in schema(path)] == [
        ("I32", [], "date"), ("I64", [], "timestamp"), ("I64", [], "timestamp_ntz"),
    ]  # fmt: skip


def arrow_table() -> pa.Table:
    zoned = pa.timestamp("ms", "Europe/Berlin")
    return pa.table(
        {
            "n": pa.array([1, 2, 3], pa.int16()),
            "ok": pa.array([True, False, True]),
            "v": pa.array([[1.0, 2.0]] * 3, pa.list_(pa.float32())),
            "m": pa.array([[[1, 2], [3, 4]]] * 3, pa.list_(pa.list_(pa.int8(), 2))),
            "ids": pa.array([[1], [], [2, 3]], pa.large_list(pa.int64())),
            "s": pa.array(["é", "", "abc"], pa.string()),
            "c": pa.array(["a", "b", "a"]).dictionary_encode(),
            "b": pa.array([b"\0", b"", b"xy"], pa.binary()),
            "d": pa.array([1, 2, 3], pa.date32()),
            "t": pa.array([1, 2, 3], zoned),
        }
    )


def assert_is_arrow_table(path: Path, repeat: int = 1) -> None:
    [shard] = [path / one["file"] for one in manifest(path)["shards"]]
    found = {name: array.tolist() for name, array in load_file(shard).items()}
    assert found["n"] == [1, 2, 3]
    assert found["ok"] == [True, False, True]
    assert found["v"] == [[1.0, 2.0]] * 3
    assert found["m"] == [[[1, 2], [3, 4]]] * 3
    assert (found["ids"], found["ids.offsets"]) == ([1, 2, 3], [0, 1, 1, 3])
    assert (bytes(found["s"]).decode(), found["s.offsets"]) == ("éabc", [0, 2, 2, 5])
    assert (bytes(found["c"]), bytes(found["b"])) == (b"aba", b"\0xy")
    assert (found["d"], found["t"]) == ([1, 2, 3], [1000, 2000, 3000])
    assert [column[3] for column in schema(path)] == [
        None, None, None, None, "ragged", "text", "text", "binary", "date", "timestamp",
    ]  # fmt: skip


def test_arrow_tables_and_their_slices(path: Path) -> None:
    write(path / "table", arrow_table(), batch_size=3, ragged=["ids"])
    assert_is_arrow_table(path / "table")
    around = pa.concat_tables([arrow_table(), arrow_table(), arrow_table()]).combine_chunks()
    write(path / "slice", around.slice(3, 3), batch_size=3, ragged=["ids"])
    assert_is_arrow_table(path / "slice")
    write(path / "batch", arrow_table().slice(1).to_batches()[0], batch_size=3, ragged=["ids"])
    assert manifest(path / "batch")["total_samples"] == 2


def test_pandas(path: Path) -> None:
    frame = pd.DataFrame(
        {
            "x": np.arange(3, dtype=np.float32),
            "v": [np.zeros(2), np.ones(2), np.zeros(2)],
            "s": ["a", "b", "c"],
            "n": pd.array([1, 2, 3], dtype="Int32"),
            "t": pd.to_datetime([0, 1, 2], unit="s", utc=True),
            "z": pd.to_datetime([0, 1, 2], unit="s"),
        },
        index=[7, 8, 9],
    )
    write(path, frame, batch_size=3)
    assert [column[:4] for column in schema(path)] == [
        ("x", "F32", [], None), ("v", "F64", [2], None), ("s", "U8", [], "text"), ("n", "I32", [], None),
        ("t", "I64", [], "timestamp"), ("z", "I64", [], "timestamp_ntz"),
    ]  # fmt: skip
    frame.loc[8, "s"] = None
    with pytest.raises(InvalidWriteError, match="Column `s`, row 1: null"):
        write(path, frame, batch_size=3)


REFUSED: dict[str, tuple[dict[str, Any], str]] = {
    "a null": ({"x": [1, None]}, "Column `x`, row 1: null, and tensors have no nulls"),
    "a null of Arrow": (pa.table({"x": [[1], None]}), "Column `x`, row 1: null"),
    "a null in a list": (pa.table({"x": [[1], [None]]}), "Column `x`, row 1: null"),
    "no time": ({"x": np.array(["NaT"], "datetime64[us]")}, "Column `x`, row 0: null"),
    "nanoseconds": ({"x": np.array([1], "datetime64[ns]")}, "row 0: 1970.* is finer than the microseconds"),
    "lengths that differ": (
        {"x": [[1], [1, 2]]},
        r"`x`, row 1: int64 \[2\], but other rows have int64 \[1\].*`ragged`",
    ),
    "dtypes that differ": ({"x": [np.zeros(2), np.zeros(2, np.int8)]}, r"row 1: int8 \[2\], but other rows"),
    "lists that differ": (pa.table({"x": [[1], [1, 2]]}), "`x`: lists of 1 and of 2 values.*`ragged`"),
    "objects": ({"x": [object()]}, "Column `x`, row 0: <object object at .* is not a tensor"),
    "a decimal": (pa.table({"x": pa.array([1], pa.decimal128(5))}), "`x` is decimal.* which is not a tensor"),
    "a single value": ({"x": np.array(1.0)}, "`x` is a single value"),
    "text that is not text": ({"x": ["a", 1]}, "`x`, row 1: 1 is not text"),
    "half of a character": ({"x": ["\ud800"]}, "`x`, row 0: .* is not text that UTF-8 can store"),
    "rows of different number": ({"x": [1], "y": [1, 2]}, "different numbers of rows: `x` 1, `y` 2"),
    "names that differ in case": ({"x": [1], "X": [1]}, "`x` and `X` differ only in case"),
    "the name of the format": ({"__metadata__": [1]}, "the format keeps that name"),
    "the name of offsets": (
        {"x": ["a"], "x.offsets": [1]},
        "`x.offsets` has the name of the tensor in which the offsets",
    ),
}


@pytest.mark.parametrize(("batch", "message"), REFUSED.values(), ids=REFUSED.keys())
def test_rows_that_are_no_tensors_are_refused(path: Path, batch: Any, message: str) -> None:
    with pytest.raises(InvalidWriteError, match=message):
        write(path, batch, batch_size=2)
    assert not list(path.rglob("*"))


def test_batches_that_differ_are_refused(path: Path) -> None:
    for other, message in (
        ({"x": np.zeros((1, 3))}, r"`x`: F64 \[3\], but rows before have F64 \[2\]"),
        ({"x": np.zeros((1, 2), np.int8)}, r"`x`: I8 \[2\], but rows before have F64 \[2\]"),
        ({"y": np.zeros((1, 2))}, "the columns y, but the one before had x"),
        ([1, 2], "A batch is a list, expected"),
    ):
        with pytest.raises(InvalidWriteError, match=message):
            write(path, {"x": np.zeros((1, 2))}, other, batch_size=1)


def test_nothing_is_appended_to_rows_of_different_shapes(path: Path) -> None:
    made = Handmade(path, "batch")
    for width in (3, 2):
        made.shard(v=np.zeros((5, width), np.float32))
    made.commit()
    before = (path / MANIFEST).read_bytes()
    for width in (3, 2, 7):
        with pytest.raises(InvalidWriteError, match=f"names no shape .* `v` .*`safetensors-spark verify {path}`"):
            write(path, {"v": np.zeros((1, width), np.float32)}, batch_size=1)
    assert (path / MANIFEST).read_bytes() == before


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({}, "`batch_size`, .* or `name_col`"),
        ({"batch_size": 1, "name_col": "k"}, "exclude each other"),
        ({"batch_size": 0}, "`batch_size` is 0, expected a whole number"),
        ({"batch_size": "auto", "tail_strategy": "pad"}, "needs a number of rows"),
        ({"batch_size": 1, "mode": "replace"}, "`mode` is 'replace', expected one of append, overwrite, error"),
        ({"batch_size": 1, "tail_strategy": "cut"}, "`tail_strategy` is 'cut'"),
        ({"name_col": "k", "target_shard_size_mb": 2}, "`target_shard_size_mb` is 2"),
        ({"name_col": "k", "ragged": ["x"]}, "`ragged` is for batches"),
        ({"batch_size": 1, "metadata": {"a": 1}}, "`metadata` is"),
        ({"batch_size": 1, "dtype": "F23"}, "`dtype` is 'F23', expected one of"),
        ({"batch_size": 1, "dtype": {"x": "float"}}, "`dtype` is .*, expected one of"),
        ({"batch_size": 1, "shapes": {"x": [-1]}}, "`shapes` is .* expected a dictionary of shapes"),
        ({"batch_size": 1, "rounding": "up"}, "`rounding` is 'up', expected one of truncate, nearest_even"),
    ],
)
def test_options_that_do_not_fit_are_refused(path: Path, options: Any, message: str) -> None:
    with pytest.raises(InvalidWriteError, match=message):
        DatasetWriter(path, **options)


def test_no_rows_are_a_dataset_without_shards(path: Path) -> None:
    assert write(path, {"x": []}, batch_size=2) == []
    assert (manifest(path)["total_samples"], manifest(path)["schema"]) == (0, [])


def test_columns_without_rows_keep_their_types(path: Path) -> None:
    arrays = {"x": np.zeros((0, 3), np.float16), "n": np.zeros(0, np.int32)}
    write(path / "arrays", arrays, batch_size=2)
    assert schema(path / "arrays") == [("x", "F16", [3], None, "array<float>"), ("n", "I32", [], None, "int")]
    table = arrow_table().slice(0, 0)
    write(path / "arrow", table, batch_size=2, ragged=["ids"], dtype={"n": "U8"})
    found = {column[0]: column[1:] for column in schema(path / "arrow")}
    assert (found["v"], found["m"]) == (
        ("F32", None, None, "array<float>"), ("I8", None, None, "array<array<tinyint>>"),
    )  # fmt: skip
    assert (found["ids"], found["s"]) == (("I64", [], "ragged", "array<bigint>"), ("U8", [], "text", "string"))
    assert found["n"] == ("U8", [], None, "smallint")
    write(path / "arrow", arrow_table(), batch_size=3, ragged=["ids"])
    assert_is_arrow_table(path / "arrow")
    with pytest.raises(InvalidWriteError, match="`s` is text, which only batches store"):
        write(path / "keyed", table.select(["n", "s"]), name_col="n")


def test_empty_lists_take_the_dtype_of_other_rows(path: Path) -> None:
    write(path, {"ids": [[], np.zeros(0, np.int8)]}, {"ids": [[], []]}, batch_size=4, ragged="ids")
    [_, shard] = write(path, {"ids": [[], []]}, batch_size=4)
    assert load_file(shard)["ids"].dtype == np.int8
    asked = write(path / "asked", {"ids": [[]]}, {"ids": [[1]]}, batch_size=4, ragged="ids", dtype={"ids": "I32"})
    assert load_file(asked[0])["ids"].tolist() == [1]
    assert schema(path / "asked")[0][1:] == ("I32", [], "ragged", "array<int>")
    for ragged in ("ids", ()):
        with pytest.raises(InvalidWriteError, match=r"`ids`: all rows so far are empty lists.*dtype=\{'ids': 'I64'\}"):
            write(path / "unknown", {"ids": [[], []]}, batch_size=4, ragged=ragged)
    [keyed] = write(path / "keyed", {"k": [1, 2], "x": [[], [2.5]]}, name_col="k", dtype="F32")
    assert {name: array.tolist() for name, array in load_file(keyed).items()} == {"1": [], "2": [2.5]}


def test_an_append_is_ragged_where_the_dataset_is(path: Path) -> None:
    write(path, {"ids": [[1], [2, 3]]}, batch_size=2, ragged="ids")
    shards = write(path, {"ids": [[4, 5], []]}, batch_size=2)
    assert load_file(shards[1])["ids.offsets"].tolist() == [0, 2, 2]
    with pytest.raises(InvalidWriteError, match="`ids` is ragged, by `ragged` or in the dataset"):
        write(path, {"ids": [1, 2]}, batch_size=2)


def test_keys_name_tensors(path: Path) -> None:
    [shard] = write(path, {"k": ["b", "a"], "x": np.eye(2, dtype=np.float32)}, name_col="k")
    assert {name: array.tolist() for name, array in load_file(shard).items()} == {"a": [0, 1], "b": [1, 0]}
    two = path.parent / "two"
    rows = {"k": [7, 8], "x": [np.zeros(2), np.zeros((1, 3))], "y": np.arange(2), "z": np.ones(2, np.int64)}
    [shard] = write(two, rows, name_col="k", kv_separator="/", generate_index=True)
    loaded = {name: array.tolist() for name, array in load_file(shard).items()}
    assert loaded == {
        "7/x": [0.0, 0.0], "8/x": [[0.0, 0.0, 0.0]], "7/y": 0, "8/y": 1, "7/z": 1, "8/z": 1,
    }  # fmt: skip
    assert schema(two) == [
        ("x", "F64", None, None, "array<double>"), ("y", "I64", [], None, "bigint"), ("z", "I64", [], None, "bigint"),
    ]  # fmt: skip


def test_shards_close_at_their_size(path: Path) -> None:
    rows = np.random.default_rng(2).random((30, 1_000_000), dtype=np.float32)
    batches = [{"k": [f"{n:03d}" for n in range(at, at + 10)], "x": rows[at : at + 10]} for at in (0, 10, 20)]
    shards = write(path, *batches, name_col="k", target_shard_size_mb=50, generate_index=True)
    assert [shard["samples_count"] for shard in manifest(path)["shards"]] == [12, 12, 6]
    store = open_store(path)
    assert all(np.array_equal(store[f"{n:03d}"], rows[n]) for n in range(30))
    assert max(shard.stat().st_size for shard in shards) < 50_000_000


def test_shards_of_batches_fill_a_size(path: Path) -> None:
    ids = [np.zeros(1_000_000 * (1 + n % 3), np.int32) for n in range(15)]
    batches = [{"ids": ids[at : at + 4], "n": np.arange(at, min(at + 4, 15))} for at in range(0, 15, 4)]
    shards = write(path, *batches, batch_size="auto", target_shard_size_mb=50, ragged=["ids"])
    assert [load_file(shard)["n"].tolist() for shard in shards] == [list(range(6)), list(range(6, 12)), [12, 13, 14]]


def test_a_key_twice_in_a_shard(path: Path) -> None:
    batches = [{"k": ["a", "b"], "x": [1, 2]}, {"k": ["a"], "x": [3]}]
    with pytest.raises(InvalidWriteError, match=r"the key `a` occurs twice in one shard.*`lastWin`"):
        write(path, *batches, name_col="k")
    [shard] = write(path, *batches, name_col="k", duplicates_strategy="lastWin")
    assert {name: int(array) for name, array in load_file(shard).items()} == {"a": 3, "b": 2}
    assert manifest(path)["total_samples"] == 2


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        ({"k": ["a", None], "x": [1, 2]}, "Column `k`, row 1: null, and every tensor needs a key"),
        ({"k": ["__metadata__"], "x": [1]}, "a name that the format keeps for itself"),
        ({"k": [1.5], "x": [1]}, "1.5 is not a key"),
        ({"k": ["a"], "x": ["text"]}, "`x` is text, which only batches store"),
        ({"k": ["a"], "x": [1, 2]}, "`x` has 2 rows, but there are 1 keys"),
        ({"x": [1]}, "`name_col` names `k`, but the columns are: x"),
        ({"k": ["a__x", "a"], "x__x": [1, 2], "x": [3, 4]}, "`a__x__x` stands for two tensors"),
    ],
)
def test_keys_that_name_no_tensor_are_refused(path: Path, rows: Any, message: str) -> None:
    with pytest.raises(InvalidWriteError, match=message):
        write(path, rows, name_col="k")
    assert not list(path.rglob("*"))


def columns_of(rows: int) -> st.SearchStrategy[dict[str, Any]]:
    numbers = st.sampled_from(["int8", "uint16", "float32", "int64", "bool"])
    dims = st.lists(st.integers(0, 3), max_size=2)
    fixed = st.tuples(numbers, dims).map(lambda one: np.ones((rows, *one[1]), one[0]).cumsum(0).astype(one[0]))
    text = st.lists(st.text(st.characters(exclude_categories=["Cs"]), max_size=5), min_size=rows, max_size=rows)
    raw = st.lists(st.binary(max_size=5), min_size=rows, max_size=rows)
    lengths = st.lists(st.integers(0, 4), min_size=rows, max_size=rows)
    ragged = st.tuples(numbers, lengths).map(lambda one: [np.arange(n).astype(one[0]) for n in one[1]])
    of_name = {"fixed": fixed, "text": text, "raw": raw, "ragged": ragged}
    names = st.sets(st.sampled_from(sorted(of_name)), min_size=1)
    unique = st.text(string.ascii_lowercase + 'é"\\', min_size=1, max_size=3)
    return names.flatmap(
        lambda kinds: st.fixed_dictionaries({kind: of_name[kind] for kind in kinds}).flatmap(
            lambda columns: unique.map(lambda end: {f"{kind} {end}": values for kind, values in columns.items()})
        )
    )


@given(st.integers(1, 9).flatmap(columns_of), st.integers(1, 5), st.integers(1, 4))
@settings(max_examples=60, deadline=None)
def test_any_rows_are_read_as_they_were_written(
    tmp_path_factory: pytest.TempPathFactory, columns: dict[str, Any], batch_size: int, step: int
) -> None:
    path = tmp_path_factory.mktemp("any") / "dataset"
    rows = len(next(iter(columns.values())))
    batches = [{name: values[at : at + step] for name, values in columns.items()} for at in range(0, rows, step)]
    shards = write(
        path, *batches, batch_size=batch_size, ragged=[name for name in columns if name.startswith("ragged")]
    )
    loaded = [load_file(shard) for shard in shards]
    for name, values in columns.items():
        if name.startswith("fixed"):
            assert np.array_equal(np.concatenate([one[name] for one in loaded]), values)
            continue
        found = [
            one[name][start:end]
            for one in loaded
            for start, end in zip(one[f"{name}.offsets"][:-1], one[f"{name}.offsets"][1:], strict=True)
        ]
        expected = [value.encode() if isinstance(value, str) else value for value in values]
        assert [
            bytes(one) if isinstance(was, bytes) else one.tolist() for one, was in zip(found, expected, strict=True)
        ] == [was if isinstance(was, bytes) else was.tolist() for was in expected]
        assert name.startswith(("text", "raw")) or {one.dtype for one in found} == {values[0].dtype}
