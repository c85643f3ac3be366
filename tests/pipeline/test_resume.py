"""What a run finds of earlier runs of the same pipeline: it continues, and makes again what is no longer there."""

from __future__ import annotations

import gc
import json
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import fsspec
import numpy as np
import pytest

from pipeline.conftest import MakeBackend
from safetensors_spark._files.commit import lock
from safetensors_spark._files.commit.lock_record import new_record
from safetensors_spark.dataset import open_dataset, write_dataset
from safetensors_spark.pipeline import Dataset, col, create_backend

_EVENTS = ("os.rename", "os.remove", "os.mkdir", "os.rmdir", "shutil.rmtree", "open")


def _rows() -> Dataset[dict[str, int]]:
    return Dataset.from_list([range(5), range(5, 9), []]).flat_map(list).map(lambda row: {"id": row, "kind": row % 3})


def _grouped() -> Dataset[Any]:
    return _rows().group_by(lambda row: row["kind"], lambda kind, rows: [kind, sum(row["id"] for row in rows)], None, 2)


def _dataset(folder: Path) -> list[int]:
    return list(open_dataset(folder / "data")["id"].tolist())


def _lines(folder: Path) -> list[Any]:
    return [json.loads(line) for path in sorted(folder.glob("out/*.jsonl")) for line in path.open()]


def _write(folder: Path) -> Dataset[Any]:
    return _rows().write_safetensors(folder / "data", batch_size=3)


def _append(folder: Path) -> Dataset[Any]:
    return _rows().write_safetensors(folder / "data", batch_size=3, mode="append")


def _replace(folder: Path) -> Dataset[Any]:
    return _rows().write_safetensors(folder / "data", batch_size=3, mode="overwrite")


def _group(folder: Path) -> Dataset[Any]:
    return _grouped().write_jsonl(f"{folder}/out/{{shard}}.jsonl")


def _count(folder: Path) -> Dataset[Any]:
    return _rows().write_jsonl(f"{folder}/out/{{shard}}.jsonl").load_jsonl().count()


def _in_child(work: Callable[[], object]) -> int:
    """What a child process ends with that does the work."""
    if (child := os.fork()) == 0:
        signal.alarm(60)
        try:
            work()
            os._exit(0)
        except BaseException:
            sys.excepthook(*sys.exc_info())
        finally:
            os._exit(1)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


def _run(dataset: Dataset[Any]) -> list[Any]:
    return list(create_backend("sync", progress=False).execute(dataset))


def _killed_at(place: int, dataset: Dataset[Any]) -> int:
    """The status of a process that ends, without any goodbye, before a change of the file system."""

    def work() -> None:
        left = place

        def hook(event: str, arguments: Any) -> None:
            nonlocal left
            if event in _EVENTS and (event != "open" or arguments[2] & (os.O_WRONLY | os.O_RDWR)):
                left -= 1
                if left < 0:
                    os._exit(9)

        # Others wait so long for the lock of a commit that has died: five minutes, but here.
        vars(lock)["new_record"] = partial(new_record, 200)
        sys.addaudithook(hook)
        _run(dataset)

    return _in_child(work)


_EXPECTED: dict[Callable[[Path], Dataset[Any]], tuple[Callable[[Path], Any], Any]] = {
    _write: (_dataset, list(range(9))),
    _append: (_dataset, [100, *range(9)]),
    _replace: (_dataset, list(range(9))),
    _group: (_lines, [[0, 9], [1, 12], [2, 15]]),
    _count: (_lines, [{"id": row, "kind": row % 3} for row in range(9)]),
}


@pytest.mark.parametrize("make", _EXPECTED, ids=lambda make: make.__name__[1:])
def test_a_run_that_is_killed_anywhere_is_finished_by_the_next(make: Any, tmp_path: Path) -> None:
    read, expected = _EXPECTED[make]
    for place in range(1000):
        folder = tmp_path / str(place)
        if make in (_append, _replace):
            rows = Dataset.from_list([{"id": 100, "kind": 0}])
            _run(rows.write_safetensors(folder / "data", batch_size=3))
        status = _killed_at(place, make(folder))
        assert status in (0, 9)
        found = _run(make(folder))
        assert sorted(read(folder)) == sorted(expected) if make is _group else read(folder) == expected
        assert found == [9] if make is _count else found
        # And a third one has nothing to do.
        before = {path: path.stat().st_mtime_ns for path in folder.glob("[do]*/*")}
        assert _run(make(folder)) == found
        assert {path: path.stat().st_mtime_ns for path in folder.glob("[do]*/*")} == before
        assert not list(folder.rglob("*.draft"))
        if status == 0:
            break
    assert place > 20


def test_a_dataset_that_was_replaced_is_written_again(tmp_path: Path) -> None:
    made = _replace(tmp_path)
    _run(made)
    _run(Dataset.from_list([{"id": 7}]).write_safetensors(tmp_path / "data", mode="overwrite"))
    assert _dataset(tmp_path) == [7]
    _run(made)
    assert _dataset(tmp_path) == list(range(9))
    shutil.rmtree(tmp_path / "data")
    _run(made)
    assert _dataset(tmp_path) == list(range(9))


def test_a_changed_pipeline_does_not_add_to_what_it_has_written(tmp_path: Path) -> None:
    _run(_write(tmp_path))
    with pytest.raises(Exception, match="is a dataset already, and was to be created"):
        _run(_rows().filter(col("id") > 3).write_safetensors(tmp_path / "data", batch_size=3))
    assert _dataset(tmp_path) == list(range(9))


def test_what_follows_the_commit_of_a_dataset_does_not_write_it_again(tmp_path: Path) -> None:
    written = _append(tmp_path).map(lambda path: {"path": str(path)}).write_jsonl(f"{tmp_path}/out/{{shard}}.jsonl")
    for _ in range(2):
        (path,) = _run(written)
        assert json.loads(Path(path).read_text()) == {"path": f"{tmp_path}/data"}
        assert _dataset(tmp_path) == list(range(9))


def test_a_file_that_was_deleted_is_made_again_though_more_was_written_behind_it(
    tmp_path: Path, backend: MakeBackend
) -> None:
    first = _rows().write_jsonl(f"{tmp_path}/out/{{shard}}.jsonl")
    grouped = first.load_jsonl().group_by(lambda row: row["kind"], lambda kind, rows: [kind, len(list(rows))])
    dataset = grouped.write_jsonl(f"{tmp_path}/groups/{{shard}}.jsonl")
    paths = list(backend().execute(dataset))
    before = [Path(path).stat().st_mtime_ns for path in paths]
    (tmp_path / "out" / "1.jsonl").unlink()
    assert list(backend().execute(dataset)) == paths
    assert _lines(tmp_path) == _EXPECTED[_count][1]
    assert [Path(path).stat().st_mtime_ns for path in paths] == before


def test_results_of_two_runs_are_read_side_by_side(tmp_path: Path, backend: MakeBackend) -> None:
    once, again = backend().execute(_rows()), backend().execute(_rows())
    pairs = list(zip(once, again, strict=True))
    assert [left["id"] for left, _ in pairs] == [right["id"] for _, right in pairs] == list(range(9))


def test_results_that_nobody_reads_leave_nothing(tmp_path: Path) -> None:
    backend = create_backend("sync", progress=False, work_dir=str(tmp_path))
    results: Iterator[Any] | None = backend.execute(_rows())
    assert list(tmp_path.rglob("results-*/*"))
    del results
    gc.collect()
    assert not list(tmp_path.rglob("results-*"))


def test_rows_of_a_pipeline_that_writes_nothing_are_kept_apart(tmp_path: Path, backend: MakeBackend) -> None:
    dataset = Dataset.from_list([1, 0, 2]).map(lambda row: 1 / row)
    results = backend(on_error="quarantine", work_dir=str(tmp_path)).execute(dataset)
    assert list(results) == [1, 0.5]
    (line,) = (json.loads(path.read_text()) for path in Path(results.manifest["quarantine"]).iterdir())
    assert line["row"] == 0


def test_a_shard_without_rows_has_no_part_in_a_reduction(backend: MakeBackend) -> None:
    dataset = Dataset.from_list([[3, 1], [], [2]]).flat_map(list)
    assert list(backend().execute(dataset.reduce(max))) == [3]
    assert list(backend().execute(dataset.reduce(next, sum))) == [5]
    assert list(backend().execute(dataset.filter(lambda row: row > 9).count())) == [0]


def test_files_that_rows_name_are_input(tmp_path: Path, sync: MakeBackend) -> None:
    source = tmp_path / "in.jsonl"
    for rows in (
        Dataset.from_list(["in"]).map(lambda name: f"{tmp_path}/{name}.jsonl").load_jsonl(),
        Dataset.from_list([str(source)]).reshard(1).load_jsonl(),
    ):
        for number in (1, 22):
            source.write_text(f"{number}\n")
            list(sync().execute(rows.write_jsonl(f"{tmp_path}/out.jsonl")))
            assert (tmp_path / "out.jsonl").read_text() == f"{number}\n"


def test_another_file_costs_its_own_shard(tmp_path: Path, sync: MakeBackend) -> None:
    def noted(row: Any) -> Any:
        with (tmp_path / "made").open("a") as file:
            file.write(f"{row} ")
        return row

    for number in range(4):
        (tmp_path / f"{number}.jsonl").write_text(f"{number}\n")
        if number > 1:
            rows = Dataset.from_files(tmp_path, "?.jsonl").load_jsonl().map(noted)
            list(sync().execute(rows.write_jsonl(f"{tmp_path}/out/{{shard}}.jsonl")))
    assert (tmp_path / "made").read_text() == "0 1 2 3 "


OF_SCRIPT = """
import enum, sys
from dataclasses import dataclass
from pathlib import Path
from safetensors_spark.pipeline import Dataset, create_backend

class Kind(enum.Enum):
    A = "a"
    B = "b"

@dataclass(frozen=True)
class Point:
    kind: Kind

folder, backend, fails = sys.argv[1:]

def reduced(key, rows):
    if fails == "fails" and not Path(folder, "failed").exists():
        Path(folder, "failed").touch()
        raise RuntimeError("stop")
    found = list(rows)
    return [sum(row.kind is Kind.A for row in found), sum(isinstance(row, Point) for row in found)]

rows = Dataset.from_list([Kind.A, Kind.B, Kind.A]).map(Point).group_by(lambda row: 0, reduced, num_output_shards=1)
backend = create_backend(backend, 2, progress=False, work_dir=f"{folder}/work")
list(backend.execute(rows.write_jsonl(f"{folder}/out.jsonl")))
"""


@pytest.mark.parametrize(
    ("first", "second"), [("processes", "processes"), ("sync", "processes"), ("processes", "sync")]
)
def test_classes_of_the_script_are_the_same_ones_after_a_break(first: str, second: str, tmp_path: Path) -> None:
    script = tmp_path / "script.py"
    script.write_text(OF_SCRIPT)
    for backend in (first, second):
        command = [sys.executable, str(script), str(tmp_path), backend, "fails"]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "out.jsonl").read_text() == "[2,3]\n"


@pytest.mark.parametrize("place", ["folder", "store"])
@pytest.mark.parametrize("kind", ["dataset", "files"])
def test_another_dataset_is_other_input(kind: str, place: str, tmp_path: Path, sync: MakeBackend) -> None:
    source = f"{tmp_path}/data" if place == "folder" else f"memory://{tmp_path.name}-{kind}/data"
    rows = Dataset.from_list([source]).load_safetensors(rows="samples" if kind == "dataset" else "files")
    write = rows.map(lambda row: row["x"].tolist()).write_jsonl(f"{tmp_path}/out.jsonl")
    for number in (1, 2):
        if kind == "dataset":
            write_dataset({"x": np.full((1, 1), number)}, source, batch_size=1, mode="overwrite")
        else:
            with fsspec.open(f"{source}/model.safetensors", "wb") as file:
                file.write(_of_one_tensor([number] * number))
        list(sync(work_dir=f"{tmp_path}/work").execute(write))
        expected = [number] * (1 if kind == "dataset" else number)
        assert json.loads((tmp_path / "out.jsonl").read_text()) == expected


def _of_one_tensor(values: list[int]) -> bytes:
    tensor = {"dtype": "I64", "shape": [len(values)], "data_offsets": [0, 8 * len(values)]}
    header = json.dumps({"x": tensor}).encode()
    return len(header).to_bytes(8, "little") + header + np.array(values, np.int64).tobytes()
