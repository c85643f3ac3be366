"""Single rows that do not fit: they cost no others, and are told by name."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from functools import partial
from operator import floordiv
from pathlib import Path
from typing import Any

import pyarrow as pa  # type: ignore[import-untyped]
import pyarrow.parquet as pq  # type: ignore[import-untyped]
import pytest

from pipeline.conftest import MakeBackend
from safetensors_spark import PipelineError
from safetensors_spark.pipeline import Dataset, ShardInfo, col, create_backend


def _quarantined(folder: Path) -> list[Any]:
    paths = sorted((folder / "_quarantine").rglob("*.jsonl"))
    return [json.loads(line)["row"] for path in paths for line in path.read_text().splitlines()]


@pytest.mark.parametrize("pushed", [True, False])
@pytest.mark.parametrize("kind", ["filter", "select"])
def test_a_record_that_fails_in_a_reader_costs_no_other(
    kind: str, pushed: bool, tmp_path: Path, sync: MakeBackend
) -> None:
    bad: Any = {"id": 3, "score": "n/a"} if kind == "filter" else {"id": 3}
    lines: list[Any] = [bad if n == 3 else {"id": n, "score": n} for n in range(10)]
    lines[5] = [1, 2]
    (tmp_path / "in.jsonl").write_text("\n".join(map(json.dumps, lines)))
    rows = Dataset.from_files(tmp_path / "in.jsonl").load_jsonl()
    rows = rows if pushed else rows.map(lambda row: row)
    some = rows.filter(col("score") >= 0) if kind == "filter" else rows.select("id", "score")
    found = sync(on_error="quarantine").execute(some.write_jsonl(f"{tmp_path}/out/{{shard}}.jsonl"))
    kept = [json.loads(line)["id"] for path in found for line in Path(path).read_text().splitlines()]
    assert kept == [0, 1, 2, 4, 6, 7, 8, 9]
    assert _quarantined(tmp_path / "out") == [bad, [1, 2]]
    assert found.manifest["stages"][0]["quarantined"] == 2


@pytest.mark.parametrize("pushed", [True, False])
def test_rows_that_are_no_records_are_named(pushed: bool, tmp_path: Path, sync: MakeBackend) -> None:
    for line, kind in (("[1, 2]", "list"), ("3", "int")):
        (tmp_path / "in.jsonl").write_text(line)
        rows = Dataset.from_files(tmp_path / "in.jsonl").load_jsonl()
        rows = rows if pushed else rows.map(lambda row: row)
        for some in (rows.filter(col("s") > 0), rows.select("s")):
            with pytest.raises(PipelineError, match=f"needs? records with columns, but a row is a {kind}"):
                list(sync().execute(some))


def test_a_second_filter_does_not_see_what_the_first_one_drops(sync: MakeBackend) -> None:
    rows = Dataset.from_list([{"kind": "num", "v": 9}, {"v": "text"}, {"kind": "num", "v": 1}])
    some = rows.filter(col("kind") == "num").filter(col("v") > 5)
    assert list(sync().execute(some)) == [{"kind": "num", "v": 9}]
    assert list(sync().execute(rows.filter((col("kind") == "num") & (col("v") > 5)))) == [{"kind": "num", "v": 9}]


def test_rows_of_a_right_side_are_counted(tmp_path: Path, sync: MakeBackend) -> None:
    left = Dataset.from_list([1]).reshard(1)
    right = Dataset.from_list([0, 1]).map(lambda n: 1 // n).reshard(1)
    joined = left.sorted_merge_join(right, int, int, lambda one, _: one)
    for _ in range(2):
        found = sync(on_error="quarantine").execute(joined.write_jsonl(f"{tmp_path}/out/{{shard}}.jsonl"))
        list(found)
        assert found.manifest["quarantine"] is not None
        assert sum(stage.get("right_quarantined", 0) for stage in found.manifest["stages"]) == 1
    assert _quarantined(tmp_path / "out") == [0]


def test_rows_that_were_kept_apart_stay_when_the_file_is_skipped(tmp_path: Path, sync: MakeBackend) -> None:
    for number in (1, 2):
        rows = Dataset.from_list([[1, 0]]).flat_map(list).map(partial(floordiv, number))
        write = rows.write_jsonl(f"{tmp_path}/out/{{shard}}.jsonl", skip_existing=True)
        found = sync(on_error="quarantine").execute(write)
        list(found)
        assert found.manifest["stages"][-1]["quarantined"] == 1
        assert _quarantined(tmp_path / "out") == [0]


@pytest.mark.parametrize(
    ("rows", "schema", "told"),
    [
        ([{"price": 10}] * 10_000 + [{"price": 0.99}], None, r"`price` is int64, which .* 0.99 would become 0"),
        ([{"a": 1.7}], pa.schema({"a": pa.int64()}), r"`a` is int64, .* 1.7 would become 1"),
        ([{"a": [1, 0.5]}], pa.schema({"a": pa.list_(pa.int32())}), r"would become \[1, 0\]"),
        ([{"a": {"p": 0.5}}], pa.schema({"a": pa.struct({"p": pa.int32()})}), "would become"),
        ([{"a": {}}], None, "cannot be Parquet: .* Leave the column out"),
        ([{}], None, "records have no columns"),
        ([{"a": None}], pa.schema([pa.field("a", pa.int64(), nullable=False)]), "cannot be Parquet: .*nullable"),
        ([{1: "a"}], None, "column 1, of type int, but names of columns are text"),
    ],
)
def test_values_that_a_column_cannot_have_are_errors(
    rows: list[Any], schema: Any, told: str, tmp_path: Path, sync: MakeBackend
) -> None:
    write = Dataset.from_list([rows]).flat_map(list).write_parquet(f"{tmp_path}/{{shard}}.parquet", schema)
    with pytest.raises(PipelineError, match=told):
        list(sync().execute(write))


def test_dates_keep_the_time_of_day(tmp_path: Path, sync: MakeBackend) -> None:
    from datetime import date, datetime

    day, noon = {"at": date(2020, 1, 1)}, {"at": datetime(2020, 1, 1, 12)}
    for some in ([day, noon], [day] * 10_000 + [noon]):
        rows = Dataset.from_list([some]).flat_map(list)
        with pytest.raises(PipelineError, match="`at` is date32"):
            list(sync().execute(rows.write_parquet(f"{tmp_path}/{{shard}}.parquet")))
    whole = Dataset.from_list([[day, {"at": datetime(2020, 1, 2)}]]).flat_map(list)
    list(sync().execute(whole.write_parquet(f"{tmp_path}/{{shard}}.parquet")))
    assert pq.read_table(tmp_path / "0.parquet")["at"].to_pylist() == [date(2020, 1, 1), date(2020, 1, 2)]


def test_nulls_of_a_dictionary_are_found(tmp_path: Path, sync: MakeBackend) -> None:
    column = pa.array([None, "a", None]).dictionary_encode()
    pq.write_table(pa.table({"d": column, "n": [0, 1, 2]}), tmp_path / "in.parquet", row_group_size=1)
    rows = Dataset.from_files(tmp_path / "in.parquet").load_parquet()
    assert [row["n"] for row in sync().execute(rows.filter(col("d").is_null()))] == [0, 2]


def test_shards_without_rows_are_read_again(tmp_path: Path, sync: MakeBackend) -> None:
    rows = Dataset.from_list([0, 1]).map(lambda n: {"x": n}).filter(col("x") > 0)
    paths = list(sync().execute(rows.write_parquet(f"{tmp_path}/{{shard}}.parquet")))
    assert len(paths) == 2
    read = Dataset.from_files(tmp_path, "*.parquet").load_parquet()
    for some in (read, read.select("x"), read.filter(col("x") > 0)):
        assert list(sync().execute(some)) == [{"x": 1}]


def test_damaged_files_are_named(tmp_path: Path, sync: MakeBackend) -> None:
    for name in ("a.jsonl.zst", "a.vortex"):
        (tmp_path / name).write_bytes(b"nothing that is compressed" * 100)
        with pytest.raises(PipelineError, match=f"{name} cannot be read: (?!.*Backtrace)"):
            list(sync().execute(Dataset.from_files(tmp_path / name).load_file()))


def test_a_folder_is_no_name_of_a_file(tmp_path: Path, sync: MakeBackend) -> None:
    (tmp_path / "folder").mkdir()
    for pattern in (f"{tmp_path}/out/", f"{tmp_path}/folder"):
        with pytest.raises(PipelineError, match="is a folder, but each shard writes a file"):
            list(sync().execute(Dataset.from_list([1]).write_jsonl(pattern)))
    with pytest.raises(TypeError, match=r"`schema` is a dict, expected a pyarrow\.Schema"):
        list(sync().execute(Dataset.from_list([{"a": 1}]).write_parquet(f"{tmp_path}/a.parquet", {"a": "int64"})))


def test_a_shard_that_is_stopped_is_not_whole(tmp_path: Path) -> None:
    for number, count in enumerate((100, 1)):
        (tmp_path / f"{number}.jsonl").write_text("".join(f"{row}\n" for row in range(count)))

    def slow(row: Any) -> Any:
        time.sleep(0.01)
        return row

    def ends(rows: Iterator[Any], info: ShardInfo) -> Iterator[Any]:
        for row in rows:
            if info.shard_idx == 1 and not (tmp_path / "failed").exists():
                time.sleep(0.1)
                (tmp_path / "failed").touch()
                raise ValueError("stop")
            yield row

    rows = Dataset.from_files(tmp_path, "?.jsonl").load_jsonl().map(slow).map_shard(ends)
    write = rows.write_jsonl(f"{tmp_path}/out/{{shard}}.jsonl")
    with pytest.raises(ValueError, match="stop"):
        list(create_backend("threads", 2, progress=False, on_error="quarantine").execute(write))
    list(create_backend("threads", 2, progress=False, on_error="quarantine").execute(write))
    assert (tmp_path / "out" / "0.jsonl").read_text() == (tmp_path / "0.jsonl").read_text()
    assert _quarantined(tmp_path / "out") == []


class WithoutTextError(Exception):
    def __str__(self) -> str:
        raise RuntimeError("no text")


def test_an_error_whose_text_fails_is_kept_apart(tmp_path: Path, sync: MakeBackend) -> None:
    def fails(_: int) -> int:
        raise WithoutTextError

    rows = Dataset.from_list([7]).map(fails).write_jsonl(f"{tmp_path}/out/{{shard}}.jsonl")
    list(sync(on_error="quarantine").execute(rows))
    assert _quarantined(tmp_path / "out") == [7]
