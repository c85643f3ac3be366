"""Runs that meet: at the same time, or one after the other, on the same files."""

from __future__ import annotations

import os
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from pipeline.conftest import MakeBackend
from safetensors_spark import PipelineBusyError, PipelineError
from safetensors_spark.dataset import open_dataset
from safetensors_spark.pipeline import Dataset, col, counters, create_backend


def _run(dataset: Dataset[Any], **options: Any) -> list[Any]:
    return list(create_backend("sync", progress=False, **options).execute(dataset))


def _ids(path: Path) -> list[int]:
    return list(open_dataset(path)["id"].tolist())


def _append(path: str | Path, start: int) -> Dataset[Any]:
    rows = Dataset.from_list([start, start + 1]).map(lambda number: {"id": number})
    return rows.write_safetensors(path, mode="append")


# Another way to name the folder, or to run the same pipeline.
_AGAIN: dict[str, Callable[[Path], tuple[str, dict[str, Any]]]] = {
    "slash": lambda folder: (f"{folder}/data/", {}),
    "relative": lambda folder: (os.path.relpath(folder / "data"), {}),
    "parent": lambda folder: (f"{folder}/data/../data", {}),
    "link": lambda folder: (f"{folder}/link/data", {}),
    "work_dir": lambda folder: (f"{folder}/data", {"work_dir": str(folder / "work")}),
    "quarantine": lambda folder: (f"{folder}/data", {"on_error": "quarantine"}),
}


@pytest.mark.parametrize("again", _AGAIN.values(), ids=_AGAIN)
def test_rows_are_appended_once(tmp_path: Path, again: Callable[[Path], tuple[str, dict[str, Any]]]) -> None:
    (tmp_path / "link").symlink_to(tmp_path)
    _run(_append(tmp_path / "data", 0))
    path, options = again(tmp_path)
    for start in (10, 0, 10):
        assert _run(_append(path, start), **options) == [str(Path(path).absolute())]
    assert _ids(tmp_path / "data") == [0, 1, 10, 11]
    assert not (tmp_path / "data" / "_temporary").exists()


def test_the_same_shard_is_appended_with_others(tmp_path: Path) -> None:
    for numbers in ([1, 2], [1, 3]):
        rows = Dataset.from_list(numbers).map(lambda number: {"id": number})
        _run(rows.write_safetensors(tmp_path / "data", mode="append"))
    assert _ids(tmp_path / "data") == [1, 2, 1, 3]


def test_rows_that_failed_once_fail_again(tmp_path: Path) -> None:
    rows = Dataset.from_list([1, 0]).map(lambda number: {"id": 1 // number})
    dataset = rows.write_safetensors(tmp_path / "data", mode="append")
    for _ in range(2):
        _run(dataset, on_error="quarantine")
    with pytest.raises(ZeroDivisionError):
        _run(dataset)
    assert _ids(tmp_path / "data") == [1]


def test_a_dataset_without_its_files_does_not_count(tmp_path: Path) -> None:
    for mode in ("error", "overwrite"):
        dataset = Dataset.from_list([{"id": 3}]).write_safetensors(tmp_path / mode, mode=mode)
        _run(dataset)
        (file,) = (tmp_path / mode).glob("*.safetensors")
        file.unlink()
        if mode == "error":
            with pytest.raises(PipelineError, match=f"its file {file.name} no longer exists. Restore it"):
                _run(dataset)
        else:
            _run(dataset)
            assert _ids(tmp_path / mode) == [3]


def test_a_dataset_is_replaced_again_where_nothing_is_resumed(tmp_path: Path) -> None:
    rows = Dataset.from_list([1]).map(lambda _: {"id": time.monotonic_ns()})
    dataset = rows.write_safetensors(tmp_path / "data", mode="overwrite")
    found = []
    for resume in (True, True, False):
        _run(dataset, resume=resume)
        found.append(_ids(tmp_path / "data"))
    assert found[0] == found[1] != found[2]


def test_two_runs_do_not_write_the_same_files(tmp_path: Path) -> None:
    out = tmp_path / "out"
    out.mkdir()
    (tmp_path / "link").symlink_to(out)
    one = Dataset.from_list([{"a": 1}])
    others: list[tuple[Dataset[Any], dict[str, Any]]] = [
        (one.write_jsonl(f"{out}/{{shard}}.jsonl"), {}),
        (one.write_jsonl(f"{out}/{{shard}}.jsonl"), {"work_dir": str(tmp_path / "work")}),
        (one.write_jsonl(f"{tmp_path}/link/{{shard}}.jsonl"), {}),
        (one.write_jsonl(f"{out}/../out/{{shard}}.jsonl"), {}),
        (one.write_jsonl(f"{out}/{{shard}}.jsonl").write_jsonl(f"{out}/paths-{{shard}}.jsonl"), {}),
        (one.sorted_merge_join(one.write_jsonl(f"{out}/{{shard}}.jsonl").map(lambda path: {"a": path}), *_JOIN), {}),
        (one.write_safetensors(f"{tmp_path}/link/data", mode="append"), {}),
    ]

    def inner(_: int) -> dict[str, int]:
        for dataset, options in others:
            with pytest.raises(PipelineBusyError, match="which writes the same files"):
                _run(dataset, **options)
        return {"a": 0}

    rows = Dataset.from_list([0]).map(inner).write_jsonl(f"{out}/{{shard}}.jsonl").load_jsonl()
    _run(rows.write_safetensors(out / "data"))
    assert (out / "0.jsonl").read_text() == '{"a":0}\n'


_JOIN: tuple[Any, Any, Any] = (lambda row: str(row["a"]), lambda row: str(row["a"]), lambda left, right: left)


def test_a_file_that_is_being_written_is_left_to_its_writer(tmp_path: Path) -> None:
    # These two write one of their files both, which no lock tells.
    def path(first: int) -> Callable[[int, int], str]:
        return lambda shard, _: f"{tmp_path}/{first + shard}.jsonl"

    def inner(row: int) -> dict[str, int]:
        if row == 1:
            _run(Dataset.from_list([{"a": 7}, {"a": 8}]).write_jsonl(path(1)))
        return {"a": row}

    _run(Dataset.from_list([0, 1]).map(inner).write_jsonl(path(0)))
    assert [Path(tmp_path / f"{number}.jsonl").read_text() for number in range(3)] == [
        f'{{"a":{value}}}\n' for value in (0, 1, 8)
    ]
    assert not list(tmp_path.rglob("*.draft"))


def test_threads_run_one_pipeline_that_writes_nothing(tmp_path: Path) -> None:
    barrier, found = threading.Barrier(3, timeout=30), []

    def waits(row: int) -> int:
        barrier.wait()
        return row + 1

    dataset = Dataset.from_list([1]).map(waits)
    threads = [threading.Thread(target=lambda: found.append(_run(dataset))) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found == [[2], [2], [2]]


def test_nothing_is_left_of_a_pipeline_that_writes_nothing(tmp_path: Path, backend: MakeBackend) -> None:
    assert list(backend().execute(Dataset.from_list([1]).map(str).group_by(str, lambda key, _: key))) == ["1"]
    cache = Path(os.environ["XDG_CACHE_HOME"], "safetensors-spark", "pipelines")
    (folder,) = cache.iterdir()
    assert [path.name for path in folder.rglob("*") if path.is_file()] == ["run.lock"]
    long_ago = time.time() - 8 * 24 * 3600
    os.utime(folder / "run.lock", (long_ago, long_ago))
    assert _run(Dataset.from_list([2])) == [2]
    assert folder not in cache.iterdir()


def test_another_run_deletes_no_results_that_nobody_has_read(tmp_path: Path) -> None:
    out = f"{tmp_path}/out/{{shard}}.jsonl"
    backend = create_backend("sync", progress=False)
    paths = backend.execute(Dataset.from_list([{"a": 1}, {"a": 2}]).write_jsonl(out))
    rows = backend.execute(Dataset.from_list([{"a": 1}]).write_jsonl(out).load_jsonl())
    _run(Dataset.from_list([{"a": 3}, {"a": 4}, {"a": 5}]).write_jsonl(out))
    assert list(paths) == [f"{tmp_path}/out/{shard}.jsonl" for shard in range(2)]
    assert list(rows) == [{"a": 1}]


def test_a_pipeline_within_a_pipeline_counts_for_itself(tmp_path: Path) -> None:
    def inner(rows: Any, _: Any) -> Any:
        counters.increment("outer")
        found = create_backend("sync", progress=False).execute(Dataset.from_list([1, 2]).map(counted))
        assert found.counters == {"inner": 2}
        counters.increment("outer")
        return rows

    def counted(row: int) -> int:
        counters.increment("inner")
        return row

    results = create_backend("sync", progress=False).execute(Dataset.from_list([1]).map_shard(inner))
    assert list(results) == [1]
    assert results.counters == {"outer": 2}


def test_a_dead_worker_is_noticed_while_its_child_lives(tmp_path: Path) -> None:
    pids = tmp_path / "pids"

    def forks(row: int) -> int:
        if not pids.exists():
            child = os.fork()
            if child == 0:
                time.sleep(300)
                (tmp_path / "ended").touch()
                os._exit(0)
            pids.write_text(str(child))
            os._exit(3)
        return row

    try:
        assert list(create_backend("processes", 1, progress=False).execute(Dataset.from_list([5]).map(forks))) == [5]
    finally:
        os.kill(int(pids.read_text()), 9)
    assert not (tmp_path / "ended").exists()


def test_workers_have_no_standard_input() -> None:
    backend = create_backend("processes", 1, progress=False)
    assert list(backend.execute(Dataset.from_list([1]).map(lambda _: sys.stdin.read() + os.read(0, 1).decode()))) == [
        ""
    ]


def test_a_filter_of_a_write_that_is_there_is_a_pipeline_of_its_own(tmp_path: Path) -> None:
    rows = Dataset.from_list([{"id": 1}, {"id": 2}])
    for dataset in (rows, rows.filter(col("id") > 1), rows):
        _run(dataset.write_safetensors(tmp_path / "data", mode="append"))
    assert _ids(tmp_path / "data") == [1, 2, 2]


def test_rows_of_shards_that_are_gone_are_not_kept_apart(tmp_path: Path) -> None:
    for numbers in ([1, 0, 0], [1, 0]):
        rows = Dataset.from_list(numbers).map(lambda number: {"id": 1 // number})
        results = create_backend("sync", progress=False, on_error="quarantine").execute(
            rows.write_jsonl(f"{tmp_path}/{{shard}}.jsonl")
        )
        kept = sorted(Path(results.manifest["quarantine"]).iterdir())
        assert [path.name for path in kept] == [f"stage-1-shard-{shard:05d}.jsonl" for shard in range(1, len(numbers))]
    assert (tmp_path / "2.jsonl").exists()
