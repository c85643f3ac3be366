"""Files of an index: entries are sorted, whole, each key is in one, and parts stay or are merged by their sizes."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa  # type: ignore[import-untyped]
import pyarrow.parquet as pq  # type: ignore[import-untyped]
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from safetensors_spark import DuplicateKeyError, IncompatibleVersionError, InvalidIndexError
from safetensors_spark._files.commit import index_runs
from safetensors_spark._files.commit.index_parts import OpenPart, kept_parts, write_part
from safetensors_spark._files.commit.index_runs import IndexRuns, index_schema, merged, unique
from safetensors_spark._files.commit.local_target import LocalTarget
from safetensors_spark._files.index import IndexEntry, TensorIndex
from safetensors_spark._files.manifest import IndexPart
from safetensors_spark._files.storage import LocalFolder

NAME = "_tensor_index.parquet"
KEYS = st.lists(st.lists(st.lists(st.text("aé😀", max_size=3), max_size=5), max_size=3), max_size=4)


def entry(key: str, file: str = "f") -> dict[str, Any]:
    return {"tensor_key": key, "file_name": file, "shape": [2, 3], "dtype": "U8", "data_start": 8, "data_end": 14}


def table(keys: list[str], file: str = "f") -> Any:
    return pa.Table.from_pylist([entry(key, file) for key in keys], index_schema())


def keys_of(tables: Iterator[Any]) -> list[str]:
    return [key for one in tables for key in one.column("tensor_key").to_pylist()]


@given(KEYS)
@settings(deadline=None, max_examples=40)
def test_sorted_sources_are_merged_in_the_order_of_their_bytes(keys: list[list[list[str]]]) -> None:
    every = [[key for piece in source for key in piece] for source in keys]
    sources = []
    for source, pieces in zip(every, keys, strict=True):
        left = iter(sorted(source, key=str.encode))
        sources.append(iter([table([next(left) for _ in piece]) for piece in pieces]))
    assert keys_of(merged(sources)) == sorted((key for source in every for key in source), key=str.encode)


def test_equal_keys_come_by_their_files() -> None:
    one = iter([table(["a", "b"], "2"), table(["b", "c"], "3")])
    other = iter([table(["b", "b"], "1"), table(["b"], "4")])
    rows = [row for some in merged([one, other]) for row in some.to_pylist()]
    assert [(row["tensor_key"], row["file_name"]) for row in rows] == [
        *(("a", "2"), ("b", "1"), ("b", "1"), ("b", "2"), ("b", "3"), ("b", "4"), ("c", "3"))
    ]


@pytest.mark.parametrize("in_memory", [1, 3, 4, 100])
def test_runs_are_kept_in_files(monkeypatch: pytest.MonkeyPatch, in_memory: int) -> None:
    monkeypatch.setattr(index_runs, "_IN_MEMORY", in_memory)
    monkeypatch.setattr(index_runs, "_AT_ONCE", 2)
    runs = IndexRuns()
    for keys in (["c", "a", "e"], [], ["d"], ["b", "f", "g"]):
        runs.add(table(keys))
    sources = runs.sources()
    assert len(sources) == {1: 4, 3: 3, 4: 2, 100: 1}[in_memory]
    assert (runs.entries, runs.key_bytes > 7) == (7, True)
    found = list(merged(sources))
    assert keys_of(iter(found)) == list("abcdefg")
    assert found[0].to_pylist()[0] == entry("a")
    del found, sources
    runs.close()
    assert not Path(runs._folder.name).exists()


@pytest.mark.parametrize("tables", [[["a", "b", "b"]], [["a"], ["b"], ["b", "c"]], [["a", "a"], ["b"]]])
def test_a_key_twice_is_an_error_that_names_both_files(tables: list[list[str]]) -> None:
    numbered = (table(keys, str(number)) for number, keys in enumerate(tables))
    with pytest.raises(DuplicateKeyError, match=r"The key `[ab]` is in two shards, (0 and 0|1 and 2), but"):
        list(unique(numbered))


def test_keys_that_are_once_stay() -> None:
    assert keys_of(unique(iter([table(["a"]), table(["b", "c"]), table(["d"])]))) == list("abcd")


@pytest.mark.parametrize(
    ("entries", "added", "kept"),
    [
        ([], 5, 0),
        ([100_000], 1, 1),
        ([1 << 14], 1 << 12, 1),
        ([1 << 14], (1 << 12) + 1, 0),
        ([(1 << 14) - 1], 1, 0),
        ([200_000, 20_000], 4_000, 2),
        ([200_000, 20_000], 6_000, 1),
        ([80_000, 20_000], 6_000, 0),
        ([1_000_000, 100, 100], 1, 1),
    ],
)
def test_parts_that_are_much_larger_stay(entries: list[int], added: int, kept: int) -> None:
    assert kept_parts(entries, added) == kept


def written(folder: Path, tables: list[Any], entries: int, key_bytes: int = 10) -> OpenPart:
    with (folder / NAME).open("wb") as file:
        write_part(file, "c", tables, entries, key_bytes)
    return OpenPart(LocalTarget(LocalFolder(folder)), IndexPart(NAME, "c"))


@pytest.mark.parametrize(
    ("count", "key_bytes", "groups"),
    [(5_000, 50_000, [1_978, 1_978, 1_044]), (5_000, 5_000_000, [81] * 61 + [59]), (1, 1, [1])],
)
def test_a_part_has_its_entries_in_groups_of_a_size_that_look_ups_read_fast(
    tmp_path: Path, count: int, key_bytes: int, groups: list[int]
) -> None:
    keys = [f"{number:010}" for number in range(count)]
    part = written(tmp_path, [table(keys[at : at + 1_000]) for at in range(0, count, 1_000)], count, key_bytes)
    assert (part.entries, part.is_current) == (count, True)
    assert keys_of(part.batches()) == keys
    # From the first entry again.
    assert next(iter(part.batches())).to_pylist()[0] == entry(keys[0])
    part.close()
    file = pq.ParquetFile(tmp_path / NAME)
    assert [file.metadata.row_group(number).num_rows for number in range(file.num_row_groups)] == groups
    index = TensorIndex(LocalFolder(tmp_path), NAME)
    assert (len(index), index.commit_id) == (count, "c")
    assert list(index) == [IndexEntry(key, "f", (2, 3), "U8", 8, 14) for key in keys]
    index.close()


@pytest.mark.parametrize("pad", ["", "x" * 5_000], ids=["short", "without statistics"])
def test_a_key_that_a_part_has_is_found_wherever_it_is(tmp_path: Path, pad: str) -> None:
    keys = [f"{pad}{number:010}" for number in range(0, 400, 2)]
    part = written(tmp_path, [table(keys, "old")], len(keys), 5_000_000)
    files = ["new"] * 3
    part.check_absent([f"{pad}/", f"{pad}{1:010}", f"{pad}x"], files)
    for key in (keys[0], keys[1], keys[78], keys[79], keys[-1]):
        with pytest.raises(DuplicateKeyError, match=f"The key `{key}` is in two shards, old and new, but"):
            part.check_absent(sorted([f"{pad}{1:010}", key, f"{pad}x"]), files)
    part.close()


def test_an_index_of_another_commit_is_not_current(tmp_path: Path) -> None:
    written(tmp_path, [table(["a"])], 1).close()
    part = OpenPart(LocalTarget(LocalFolder(tmp_path)), IndexPart(NAME, "d"))
    assert not part.is_current
    part.close()


def opened(folder: Path, content: Any, metadata: dict[str, str] | None = None) -> TensorIndex:
    pq.write_table(content.replace_schema_metadata(metadata), folder / NAME)
    return TensorIndex(LocalFolder(folder), NAME)


def test_what_is_no_index(tmp_path: Path) -> None:
    (tmp_path / NAME).write_bytes(b"no Parquet")
    with pytest.raises(InvalidIndexError, match=f"{tmp_path}/{NAME} cannot be read"):
        TensorIndex(LocalFolder(tmp_path), NAME)
    with pytest.raises(InvalidIndexError, match="it has no column dtype, data_end"):
        opened(tmp_path, table(["a"]).drop_columns(["dtype", "data_end"]))
    with pytest.raises(InvalidIndexError, match="its format version is `new`, expected MAJOR"):
        opened(tmp_path, table(["a"]), {"safetensors.format_version": "new"})
    with pytest.raises(IncompatibleVersionError, match="has format version 2"):
        opened(tmp_path, table(["a"]), {"safetensors.format_version": "2.0"})


def test_an_index_without_metadata_is_of_no_commit(tmp_path: Path) -> None:
    index = opened(tmp_path, table(["a"]))
    assert index.commit_id is None
    index.close()


@pytest.mark.parametrize("field", ["tensor_key", "shape", "data_end"])
def test_empty_cells_are_refused(tmp_path: Path, field: str) -> None:
    loose = pa.schema(
        [pa.field(one.name, pa.list_(pa.int32()) if one.name == "shape" else one.type) for one in index_schema()]
    )
    for value in (None, *([[None]] if field == "shape" else [])):
        index = opened(tmp_path, pa.Table.from_pylist([entry("a"), entry("b") | {field: value}], loose))
        with pytest.raises(InvalidIndexError, match="it has empty cells"):
            list(index)
        index.close()
