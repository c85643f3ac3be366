"""Rows that Spark's own shuffle brings together, on a cluster of two executors."""

from __future__ import annotations

import json
import os
import signal
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("pyspark")

from pipeline.conftest import MakeBackend
from pipeline.test_spark import BadRecordError, executor, on_spark, once
from safetensors_spark import LostShardError
from safetensors_spark.pipeline import Dataset, counters, create_backend

pytestmark = pytest.mark.usefixtures("spark_cluster")


def _rows() -> Dataset[dict[str, Any]]:
    shards = [range(0, 500), range(500, 501), range(0), range(501, 3000)]
    return Dataset.from_list(shards).flat_map(list).map(lambda row: {"id": row, "kind": row * 7 % 97, "text": "x" * 50})


def _total(kind: int, rows: Iterator[dict[str, Any]]) -> Iterator[dict[str, Any]]:
    counters.increment("kinds")
    ids = [row["id"] for row in rows]
    yield {"kind": kind, "first": ids[0], "ids": ids, "of": kind % 5}


def _chain(folder: Path) -> Dataset[str]:
    """Two shuffles, one behind the other, with runs that do not fit the memory, and a join."""
    kinds = _rows().group_by(lambda row: row["kind"], _total, sort_by=lambda row: -row["id"], num_output_shards=5)
    fifths = kinds.group_by(lambda row: row["of"], lambda of, rows: {"of": of, "kinds": [r["kind"] for r in rows]})
    firsts = _rows().map(lambda row: {"of": row["id"] % 5, "id": row["id"]}).deduplicate(lambda row: row["of"], 5)
    joined = fifths.sorted_merge_join(firsts, lambda row: row["of"], lambda row: row["of"])
    return joined.write_jsonl(f"{folder}/{{shard}}.jsonl")


def test_files_are_those_of_a_shuffle_by_files(tmp_path: Path, sync: MakeBackend) -> None:
    expected = list(sync().execute(_chain(tmp_path / "sync")))
    for memory in (None, "4MiB"):
        found = on_spark(memory=memory).execute(_chain(tmp_path / "spark"))
        assert [Path(path).read_bytes() for path in found] == [Path(path).read_bytes() for path in expected]
        assert found.counters == {"kinds": 97}
        assert [stage["rows"] for stage in found.manifest["stages"]] == [3000, 97, 5, 5]
        for path in expected:
            (tmp_path / "spark" / Path(path).name).unlink()


def test_nothing_of_a_shuffle_is_in_files(tmp_path: Path) -> None:
    place = str(tmp_path)

    def look(kind: int, rows: Iterator[Any]) -> list[Any]:
        return sorted(one.stat().st_size for one in Path(place).glob("_pipeline/*/*-1/*"))

    (sizes,) = on_spark().execute(
        _rows().group_by(lambda row: 0, look, num_output_shards=1).write_jsonl(f"{place}/{{shard}}.jsonl")
    )
    assert max(json.loads(Path(sizes).read_text())) < 1000


@pytest.mark.parametrize("side", ["divides", "brings together"])
def test_an_error_of_a_function_is_raised_as_it_is_and_not_tried_again(side: str, tmp_path: Path) -> None:
    def fails(row: Any, *_: Any) -> Any:
        (tmp_path / str(time.monotonic_ns())).touch()
        raise BadRecordError(1, "no text")

    rows = Dataset.from_list([1])
    grouped = rows.map(fails).deduplicate(int) if side == "divides" else rows.group_by(int, fails)
    with pytest.raises(BadRecordError, match="no text") as error:
        on_spark().execute(grouped)
    assert any(f"of stage {1 if side == 'divides' else 2}" in note for note in error.value.__notes__)
    assert len(list(tmp_path.iterdir())) == 1


@pytest.mark.parametrize("side", ["divides", "brings together"])
@pytest.mark.parametrize("lost", ["worker", "executor"])
def test_what_was_lost_is_made_again(side: str, lost: str, tmp_path: Path) -> None:
    def dies_once() -> None:
        if once(tmp_path, "died"):
            os.kill(executor() if lost == "executor" else os.getpid(), signal.SIGKILL)
            time.sleep(60)

    def mapped(row: int) -> int:
        if side == "divides" and row == 700:
            dies_once()
        return row

    def count(key: int, rows: Iterator[int]) -> list[int]:
        if side != "divides" and key == 3:
            dies_once()
        return [key, sum(rows)]

    shards = Dataset.from_list([range(500), range(500, 1000), range(1000, 1500)]).flat_map(list)
    found = list(on_spark().execute(shards.map(mapped).group_by(lambda row: row % 10, count)))
    assert sorted(found) == [[key, sum(range(key, 1500, 10))] for key in range(10)]
    assert (tmp_path / "died").exists()


def test_a_connection_that_is_always_lost_is_named() -> None:
    def loses(key: int, rows: Iterator[int]) -> Any:
        if key == 4:
            raise ConnectionRefusedError("nobody is there")
        return key

    with pytest.raises(
        LostShardError, match=r"shard \d of 10 of stage 2 .* 3 attempts.*ConnectionRefusedError: nobody is there"
    ):
        on_spark().execute(Dataset.from_list(range(10)).group_by(int, loses))


def test_a_run_goes_on_with_the_shards_that_are_left(tmp_path: Path, sync: MakeBackend) -> None:
    ready, calls = tmp_path / "ready", tmp_path / "calls"
    calls.mkdir()

    def count(key: int, rows: Iterator[int]) -> list[int]:
        # Others have ended when this one fails: their files are there.
        if key == 4 and not ready.exists():
            while len(list((tmp_path / "out").glob("*.jsonl"))) < 3:
                time.sleep(0.05)
            raise ValueError("not yet")
        (calls / f"{key}-{time.monotonic_ns()}").touch()
        return [key, sum(rows)]

    def pipeline(folder: str) -> Dataset[str]:
        grouped = Dataset.from_list(range(40)).group_by(lambda row: row % 8, count, num_output_shards=4)
        return grouped.write_jsonl(f"{tmp_path}/{folder}/{{shard}}.jsonl")

    with pytest.raises(ValueError, match="not yet"):
        on_spark().execute(pipeline("out"))
    before = {path.name: path.read_bytes() for path in (tmp_path / "out").glob("*.jsonl")}
    made = {path.name.partition("-")[0] for path in calls.iterdir()}
    assert len(before) == 3
    ready.touch()
    again = [Path(path).read_bytes() for path in on_spark().execute(pipeline("out"))]
    done = [path.name.partition("-")[0] for path in calls.iterdir()]
    assert len(made) > 3
    assert all(done.count(key) == 1 for key in made if key in _keys(before))
    assert again == [Path(path).read_bytes() for path in sync().execute(pipeline("sync"))]
    assert create_backend("processes", 2, progress=False).execute(pipeline("out")).manifest["rows"] == 8


def _keys(files: dict[str, bytes]) -> set[str]:
    return {str(json.loads(line)[0]) for content in files.values() for line in content.splitlines()}
