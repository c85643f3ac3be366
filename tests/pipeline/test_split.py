"""Files that `reshard` divides where they are read."""

from __future__ import annotations

import io
import json
from itertools import pairwise
from pathlib import Path
from typing import Any, ClassVar

import fsspec
import pyarrow as pa  # type: ignore[import-untyped]
import pyarrow.parquet as pq  # type: ignore[import-untyped]
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from pipeline.conftest import MakeBackend
from safetensors_spark import PipelineError
from safetensors_spark.pipeline import Dataset, col
from safetensors_spark.pipeline._formats import lines as of_lines
from safetensors_spark.pipeline._formats.lines import count_lines, lines_of


@given(
    st.lists(st.sampled_from([b"a", b"bc", b"\n", b"\r\n", "é".encode()]), max_size=12).map(b"".join),
    st.lists(st.integers(0, 30), max_size=4),
    st.integers(1, 9),
)
@example(b"\n\n", [1], 1)
@example(b"a\n", [0, 2], 1)
def test_each_line_begins_in_one_range(content: bytes, cuts: list[int], at_once: int) -> None:
    ends = sorted({0, *(min(cut, len(content)) for cut in cuts), len(content) + 1})
    expected = content.split(b"\n")[: -1 if content.endswith(b"\n") or not content else None]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(of_lines, "_READ_BYTES", at_once)
        found = [
            [line for lines in lines_of(io.BytesIO(content), start, end) for line in lines]
            for start, end in pairwise(ends)
        ]
        assert [line for part in found for line in part] == expected
        assert [line for lines in lines_of(io.BytesIO(content)) for line in lines] == expected
        for number, start in enumerate(ends[:-1]):
            assert count_lines(io.BytesIO(content), start) == (sum(map(len, found[:number])) if start else 0)


def _write_lines(folder: Path) -> list[dict[str, Any]]:
    rows = [{"id": number, "text": "é\u2028" * (number % 50)} for number in range(1000)]
    for number, some in enumerate((rows[:300], [], rows[300:301], rows[301:])):
        text = "\r\n".join(json.dumps(row, ensure_ascii=False) for row in some)
        (folder / f"{number}.jsonl").write_text(text, newline="")
    return rows


def _write_parquet(folder: Path) -> list[dict[str, Any]]:
    rows = [{"id": number, "text": "é" * (number % 50)} for number in range(1000)]
    table = pa.Table.from_pylist(rows)
    pq.write_table(table[:300], folder / "0.parquet", row_group_size=17)
    pq.write_table(table[:0], folder / "1.parquet")
    pq.write_table(table[300:], folder / "2.parquet", row_group_size=40)
    return rows


def test_filters_and_columns_behind_a_division_are_pushed(tmp_path: Path, sync: MakeBackend) -> None:
    rows = [{"n": n, "text": str(n)} for n in range(1000)]
    pq.write_table(pa.Table.from_pylist(rows), tmp_path / "a.parquet", row_group_size=100)
    some = Dataset.from_files(tmp_path, "*.parquet").load_parquet().reshard(4).filter(col("n") < 150).select("text")
    assert "load parquet columns text where n < 150" in str(sync().plan(some))
    assert list(sync().execute(some)) == [{"text": str(n)} for n in range(150)]


@pytest.mark.parametrize("write", [_write_lines, _write_parquet])
@pytest.mark.parametrize("count", [1, 3, 8])
def test_divided_files_have_the_same_rows_in_order(
    write: Any, count: int, tmp_path: Path, backend: MakeBackend
) -> None:
    (tmp_path / "in").mkdir()
    rows = write(tmp_path / "in")
    loaded = Dataset.from_files(tmp_path / "in", "*").load_file()
    dataset = loaded.filter(col("id") >= 10).reshard(count).write_jsonl(f"{tmp_path}/out/{{shard}}.jsonl")
    plan = str(backend().plan(dataset))
    assert "in parts" in plan
    assert "stage 2" not in plan
    paths = list(backend().execute(dataset))
    found = [[json.loads(line)["id"] for line in Path(path).read_bytes().splitlines()] for path in paths]
    assert [one for part in found for one in part] == [row["id"] for row in rows[10:]]
    assert len(paths) == count
    assert max(map(len, found)) <= 2 * len(rows) / count


def test_files_that_cannot_be_divided_alike_are_exchanged(files: Path, tmp_path: Path, sync: MakeBackend) -> None:
    pq.write_table(pa.table({"id": range(100)}), tmp_path / "one.parquet")
    for dataset in (
        Dataset.from_files(files, "**/*.gz").load_jsonl(),
        Dataset.from_files(tmp_path, "one.parquet").load_parquet(),
        Dataset.from_files(tmp_path, "one.parquet").load_parquet().map(dict),
        Dataset.from_list(range(9)),
    ):
        assert "stage 2: 3 shards: reshard 3" in str(sync().plan(dataset.reshard(3)))
    assert list(sync().execute(Dataset.from_files(tmp_path, "one.parquet").load_parquet().reshard(3).count())) == [100]


def test_lines_of_parts_are_told_by_their_number_in_the_file(tmp_path: Path, sync: MakeBackend) -> None:
    lines = ['{"id": 1}'] * 500
    lines[400] = "{"
    (tmp_path / "a.jsonl").write_text("\n".join(lines))
    rows = Dataset.from_files(tmp_path, "*.jsonl").load_jsonl().reshard(4)
    with pytest.raises(PipelineError, match=r"a.jsonl, line 401 is not JSON"):
        sync().execute(rows)


def test_parts_of_a_file_that_has_changed_are_made_again(tmp_path: Path, sync: MakeBackend) -> None:
    path = tmp_path / "a.jsonl"
    dataset = Dataset.from_files(path).load_jsonl().reshard(2).write_jsonl(f"{tmp_path}/out/{{shard}}.jsonl")
    for text in ('{"a":1}\n{"a":2}\n', '{"a":3}\n{"a":4}\n'):
        path.unlink(missing_ok=True)
        path.write_text(text)
        assert "".join(Path(one).read_text() for one in sync().execute(dataset)) == text


@pytest.mark.parametrize("suffix", ["jsonl", "parquet"])
def test_parts_of_two_files_are_never_mixed(suffix: str, tmp_path: Path, sync: MakeBackend) -> None:
    path = tmp_path / f"a.{suffix}"

    def write(start: int) -> None:
        rows = [{"id": number} for number in range(start, start + 100)]
        if suffix == "parquet":
            pq.write_table(pa.Table.from_pylist(rows), path, row_group_size=10)
        else:
            path.write_text("".join(json.dumps(row) + "\n" for row in rows))

    def replaced(row: dict[str, Any]) -> dict[str, Any]:
        if row["id"] == 130:
            write(500)
        return row

    write(100)
    dataset = Dataset.from_files(path).load_file().reshard(5).map(replaced)
    with pytest.raises(PipelineError, match=rf"a\.{suffix} has changed since the plan divided it"):
        sync(on_error="quarantine").execute(dataset)
    assert [row["id"] for row in sync().execute(dataset)] == list(range(500, 600))


class _Ranged(fsspec.AbstractFileSystem):  # type: ignore[misc]
    """As clients of stores are: files that are asked for ranges."""

    protocol = "ranged"
    contents: ClassVar[dict[str, bytes]] = {}

    def info(self, path: str, **_: Any) -> dict[str, Any]:
        name = self._strip_protocol(path)
        return {"name": name, "size": len(self.contents[name]), "type": "file", "ETag": str(hash(self.contents[name]))}

    def _open(self, path: str, mode: str = "rb", **_: Any) -> Any:
        return _File(self, path, block_size=700)


class _File(fsspec.spec.AbstractBufferedFile):  # type: ignore[misc]
    def _fetch_range(self, start: int, end: int) -> bytes:
        return _Ranged.contents[self.path][start:end]


@pytest.mark.parametrize("count", [None, 3])
def test_lines_of_a_store_are_read(count: int | None, sync: MakeBackend) -> None:
    fsspec.register_implementation("ranged", _Ranged, clobber=True)
    rows = [{"id": number} for number in range(1000)]
    _Ranged.contents = {"a.jsonl": "".join(json.dumps(row) + "\n" for row in rows).encode()}
    found = Dataset.from_list(["ranged://a.jsonl"]).load_jsonl().reshard(count)
    assert list(sync().execute(found)) == rows
