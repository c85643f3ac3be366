"""Commits of `DatasetWriter`: all of a write or nothing, whatever happens, and every write is counted."""

import json
import os
import pickle
import subprocess
import sys
import threading
import time
import zipfile
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from safetensors_spark import (
    DuplicateKeyError,
    IncompatibleVersionError,
    InvalidManifestError,
    InvalidWriteError,
    LostLockError,
)
from safetensors_spark._files.commit import commit, lock
from safetensors_spark._files.commit.local_target import LocalTarget
from safetensors_spark._files.commit.lock_record import LOCK, new_record, takeover_file
from safetensors_spark._files.commit.target import open_target
from safetensors_spark.dataset import DatasetWriter, WriteRecord, open_dataset, open_store, verify, write_dataset

JOB = Path(__file__).with_name("killed_job.py")
MANIFEST = "dataset_manifest.json"


def append(path: Path, *numbers: int, **options: Any) -> None:
    with DatasetWriter(path, **({"batch_size": 2} | options)) as writer:
        writer.write({"x": np.array(numbers)})


def rows(path: Path) -> list[int]:
    return [int(row["x"]) for row in open_dataset(path)]


def others(path: Path) -> list[str]:
    """The files that are no part of the dataset."""
    manifest = json.loads((path / MANIFEST).read_text())
    named = {one["file"] for one in manifest["shards"] + manifest["index_parts"]} | {MANIFEST}
    return sorted(one.name for one in path.iterdir() if one.name not in named)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "dataset"


@pytest.mark.parametrize(
    ("kind", "mode", "before"),
    [("batch", "append", "old"), ("key", "overwrite", "old"), ("batch", "append", "none")],
    ids=["append", "overwrite", "first write"],
)
def test_a_write_killed_at_any_step_is_there_or_not(tmp_path: Path, kind: str, mode: str, before: str) -> None:
    command = [sys.executable, str(JOB), str(tmp_path), kind, mode, before]
    output = subprocess.run(command, capture_output=True, text=True, check=True, timeout=600).stdout
    steps = [json.loads(line) for line in output.splitlines()]
    assert [step["killed"] for step in steps] == [True] * (len(steps) - 1) + [False]
    assert len(steps) > 20
    old = [0, 1, 2] if before == "old" else []
    new = [100, 101, 102] if mode == "overwrite" else [*old, 100, 101, 102]
    seen = [step["found"] or [] for step in steps]
    assert seen == sorted(seen, key=lambda found: found == new), "what was seen once stays"
    assert [found for found in seen if found not in (old, new)] == []
    assert seen[0] == old
    assert seen[-1] == new
    for step, found in zip(steps, seen, strict=True):
        assert step["then"] == [*found, 900, 901, 902]
        assert step["faults"] == step["notes"] == []
        # What only a week's age tells from files of a writer that lives.
        assert [name for name in step["others"] if not name.endswith((".alive", ".tmp")) and name != "_temporary"] == []


def test_an_exception_in_the_block_leaves_what_was_there(path: Path) -> None:
    append(path, 1, 2)

    def fail() -> None:
        with DatasetWriter(path, batch_size=2) as writer:
            writer.write({"x": np.arange(100)})
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        fail()
    assert rows(path) == [1, 2]
    assert others(path) == []


def test_batches_that_fail_leave_what_was_there(path: Path) -> None:
    write_dataset([{"x": np.arange(3)}], path, batch_size=2)

    def batches() -> Iterator[dict[str, Any]]:
        yield {"x": np.arange(9)}
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        write_dataset(batches(), path, batch_size=2)
    assert rows(path) == [0, 1, 2]
    assert others(path) == []


def test_a_bar_counts_the_batches(path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    manifest = write_dataset([{"x": np.arange(3)}] * 5, path, batch_size=2, progress=True)
    assert manifest.samples == 15
    assert "5/5" in capsys.readouterr().err


def test_overwrite_deletes_what_it_replaces(path: Path) -> None:
    append(path, 1, 2, 3, generate_index=True)
    append(path, 4, mode="overwrite")
    assert rows(path) == [4]
    assert sorted(one.suffix for one in path.iterdir()) == [".json", ".safetensors"]


def test_error_mode_takes_no_dataset(path: Path) -> None:
    append(path, 1, mode="error")
    with pytest.raises(InvalidWriteError, match="is a dataset already"):
        append(path, 2, mode="error")
    assert rows(path) == [1]


def test_writers_at_once_are_all_counted(path: Path) -> None:
    numbers = list(range(24))
    with ThreadPoolExecutor(8) as threads:
        list(threads.map(lambda number: append(path, number, number, generate_index=True), numbers))
    assert sorted(rows(path)) == sorted(2 * numbers)
    assert verify(path).faults == []
    assert verify(path).index_entries == 24
    assert others(path) == []


def test_another_write_may_begin_the_dataset_between_two_looks(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    names = LocalTarget.names

    def listed(target: LocalTarget, folder: str = "") -> list[str]:
        # After this write has seen no manifest, and before it looks whether the directory is empty.
        monkeypatch.setattr(LocalTarget, "names", names)
        append(path, 1)
        return names(target, folder)

    monkeypatch.setattr(LocalTarget, "names", listed)
    append(path, 2)
    assert rows(path) == [1, 2]


WORKER = """
import sys, numpy
from safetensors_spark.dataset import DatasetWriter
writer = DatasetWriter(sys.argv[1], batch_size=4, partition=int(sys.argv[2]))
writer.write({"x": numpy.arange(10) + 10 * int(sys.argv[2])})
print(writer.finish().to_json())
"""


def test_processes_write_and_one_commits(path: Path) -> None:
    workers = [
        subprocess.Popen([sys.executable, "-c", WORKER, path, str(n)], stdout=subprocess.PIPE, text=True)
        for n in range(2)
    ]
    texts = [worker.communicate(timeout=60)[0] for worker in workers]
    assert not (path / MANIFEST).exists()
    records = [pickle.loads(pickle.dumps(WriteRecord.from_json(text))) for text in texts]
    manifest = DatasetWriter(path, batch_size=4).commit(records)
    assert rows(path) == list(range(20))
    assert [shard.file[:10] for shard in manifest.shards] == ["part-00000"] * 3 + ["part-00001"] * 3
    assert others(path) == []


def test_records_are_committed_once(path: Path) -> None:
    writer = DatasetWriter(path, batch_size=2)
    writer.write({"x": np.arange(2)})
    record = writer.finish()
    with pytest.raises(InvalidWriteError, match="twice"):
        writer.commit([record, record])
    writer.commit([record])
    with pytest.raises(InvalidWriteError, match="committed before"):
        writer.commit([record])
    assert rows(path) == [0, 1]
    with pytest.raises(InvalidWriteError, match="not a record of a writer"):
        WriteRecord.from_json('{"folder": "../.."}')
    with pytest.raises(InvalidWriteError, match="not a folder of a writer"):
        WriteRecord("../..", "batch", (), ())
    for name in ("../x.safetensors", "..", "/x", ""):
        with pytest.raises(InvalidWriteError, match="is not the name of a shard"):
            WriteRecord.from_json(record.to_json().replace(record.shards[0].file, name))


def test_a_shard_that_is_not_where_the_committer_looks_stops_the_commit(path: Path, tmp_path: Path) -> None:
    append(path, 1)
    elsewhere = DatasetWriter(tmp_path / "elsewhere", batch_size=2)
    elsewhere.write({"x": np.arange(2)})
    with pytest.raises(InvalidWriteError, match="the same place for every writer"):
        DatasetWriter(path, batch_size=2).commit([elsewhere.finish()])
    assert rows(path) == [1]
    assert others(path) == []


def test_writers_whose_rows_differ_are_not_committed(path: Path) -> None:
    records = []
    for width in (2, 3):
        writer = DatasetWriter(path, batch_size=2)
        writer.write({"x": np.zeros((2, width))})
        records.append(writer.finish())
    with pytest.raises(InvalidWriteError, match=r"Column `x`: F64 \[3\] in part-.*, but F64 \[2\] in part-.*`ragged`"):
        DatasetWriter(path, batch_size=2).commit(records)
    assert not (path / MANIFEST).exists()


@pytest.mark.parametrize(
    ("options", "batch", "message"),
    [
        ({"batch_size": 2}, {"x": np.zeros((1, 2), np.int64)}, r"`x` as I64 \[\], and .* with I64 \[2\]"),
        ({"batch_size": 2}, {"x": np.zeros(1)}, r"`x` as I64 \[\], and .* with F64 \[\]"),
        ({"batch_size": 2}, {"x": ["a"]}, r"`x` as I64 \[\], and .* with text U8 \[\?\]"),
        ({"batch_size": 2}, {"y": np.zeros(1)}, "columns x, and .* with y"),
        ({"name_col": "k"}, {"k": ["a"], "x": np.zeros(1)}, "mode batch, and .* with key_value"),
    ],
)
def test_an_append_of_other_rows_is_refused(path: Path, options: Any, batch: Any, message: str) -> None:
    append(path, 1)
    with pytest.raises(InvalidWriteError, match=message), DatasetWriter(path, **options) as writer:
        writer.write(batch)
    assert rows(path) == [1]
    assert others(path) == []


def write_keys(path: Path, keys: list[str], **options: Any) -> None:
    with DatasetWriter(path, name_col="k", **options) as writer:
        writer.write({"k": keys, "x": np.arange(len(keys))})


def test_an_append_keeps_the_place_of_the_keys_that_spark_wrote(path: Path) -> None:
    write_keys(path, ["a", "b"])
    written = json.loads((path / MANIFEST).read_text())
    assert "key_place" not in written
    (path / MANIFEST).write_text(json.dumps(written | {"key_place": 1}))
    write_keys(path, ["c"])
    assert json.loads((path / MANIFEST).read_text())["key_place"] == 1
    write_keys(path, ["d"], mode="overwrite")
    assert "key_place" not in json.loads((path / MANIFEST).read_text())


def test_a_key_twice_in_the_index_is_an_error_before_anything_is_visible(path: Path) -> None:
    write_keys(path, ["a", "b"], generate_index=True)
    before = sorted(path.iterdir()), (path / MANIFEST).read_bytes()
    with pytest.raises(DuplicateKeyError, match=r"`b` is in two shards, part-.* and part-.*Nothing was changed"):
        write_keys(path, ["c", "b"])
    assert (sorted(path.iterdir()), (path / MANIFEST).read_bytes()) == before
    write_keys(path, ["c"])
    assert list(open_store(path)) == ["a", "b", "c"]


def test_a_key_twice_is_found_in_a_part_that_stays(path: Path) -> None:
    write_keys(path, [f"{n:06d}" for n in range(100_000)], generate_index=True)
    write_keys(path, ["new"])
    assert len(json.loads((path / MANIFEST).read_text())["index_parts"]) == 2
    with pytest.raises(DuplicateKeyError, match="`054321`"):
        write_keys(path, ["new2", "054321"])
    assert verify(path).faults == []
    store = open_store(path)
    assert len(store) == 100_001
    assert [int(store[key]) for key in ("000000", "054321", "099999", "new")] == [0, 54_321, 99_999, 0]


def test_a_lock_of_a_dead_writer_is_taken(path: Path, caplog: pytest.LogCaptureFixture) -> None:
    append(path, 1)
    (path / LOCK).write_bytes(new_record(stale_after_ms=100).text())
    append(path, 2)
    assert rows(path) == [1, 2]
    assert "its holder is dead (application safetensors-spark, process" in caplog.text


def test_a_lock_whose_holder_gives_signs_of_life_is_respected(path: Path) -> None:
    append(path, 1)
    record = new_record(stale_after_ms=300)
    with lock.locked(open_target(path), record):
        waiting = threading.Thread(target=append, args=(path, 2))
        waiting.start()
        time.sleep(1.5)
        assert rows(path) == [1]
    waiting.join(30)
    assert rows(path) == [1, 2]
    assert others(path) == []


def test_a_commit_that_lost_the_lock_changes_nothing(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    append(path, 1)

    def steal(step: Callable[..., None]) -> Callable[..., None]:
        def stolen(self: Any, *arguments: Any) -> None:
            step(self, *arguments)
            (path / LOCK).write_bytes(new_record(stale_after_ms=100).text())

        return stolen

    with monkeypatch.context() as patch:
        patch.setattr(commit.DatasetCommit, "_move_shards", steal(commit.DatasetCommit._move_shards))
        with pytest.raises(LostLockError, match="Nothing was changed; write again"):
            append(path, 2)
    append(path, 3)
    assert rows(path) == [1, 3]


def test_a_commit_that_wakes_up_after_its_lock_was_taken_cannot_replace_the_manifest(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    append(path, 1)
    verify_lock = lock.CommitLock.verify
    late = threading.local()

    def sleep_before_the_rename(self: lock.CommitLock) -> None:
        verify_lock(self)
        if getattr(late, "is_late", False) and list((path / "_pending").glob("*.manifest")):
            late.is_late = False
            # Another writer takes the lock, and commits.
            (path / LOCK).unlink()
            append(path, 3)

    monkeypatch.setattr(lock.CommitLock, "verify", sleep_before_the_rename)
    late.is_late = True
    with pytest.raises(OSError, match="manifest"):
        append(path, 2)
    assert rows(path) == [1, 3]
    assert verify(path).faults == []


def test_a_takeover_file_is_named_as_java_names_it() -> None:
    # `UUID.nameUUIDFromBytes("abc".getBytes)`
    assert takeover_file(b"abc") == "_commit-90015098-3cd2-3fb0-9696-3f7d28e17f72.takeover"


def test_files_of_writers_that_died_a_week_ago_are_deleted(path: Path) -> None:
    append(path, 1)
    young, old = (DatasetWriter(path, batch_size=1) for _ in range(2))
    for writer in (young, old):
        writer.write({"x": np.arange(1)})
    kept, dead = young.finish(), old.finish()
    week_ago = time.time() - 8 * 24 * 3600
    for file in (path / dead.folder).iterdir():
        os.utime(file, (week_ago, week_ago))
    append(path, 2)
    assert not (path / dead.folder).exists()
    young.commit([kept])
    assert rows(path) == [1, 2, 0]
    assert others(path) == []


def test_a_writer_whose_clock_is_a_month_ahead_deletes_nothing_of_one_that_lives(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    append(path, 1)
    other = DatasetWriter(path, batch_size=1)
    other.write({"x": np.arange(1)})
    record = other.finish()
    now = time.time
    with monkeypatch.context() as wrong:
        wrong.setattr(time, "time", lambda: now() + 30 * 24 * 3600)
        append(path, 2)
    other.commit([record])
    assert rows(path) == [1, 2, 0]


def test_a_directory_of_other_files_is_not_written_to(path: Path, tmp_path: Path) -> None:
    path.mkdir()
    (path / "notes.txt").write_text("mine")
    with pytest.raises(InvalidWriteError, match=r"not a dataset of safetensors.*notes\.txt"):
        append(path, 1)
    with pytest.raises(InvalidWriteError, match="is a file, and a dataset is a directory"):
        append(path / "notes.txt", 1)
    assert [one.name for one in path.iterdir()] == ["notes.txt"]


def test_a_dataset_of_a_newer_version_is_not_written_to(path: Path) -> None:
    append(path, 1)
    text = (path / MANIFEST).read_text()
    for version in ("1.9", "3.0"):
        (path / MANIFEST).write_text(text.replace('"1.3"', f'"{version}"'))
        for mode in ("append", "overwrite"):
            with pytest.raises(IncompatibleVersionError, match=f"format version {version}"):
                append(path, 2, mode=mode)


def test_a_damaged_manifest_is_replaced_but_not_appended_to(path: Path) -> None:
    append(path, 1)
    (path / MANIFEST).write_text("{")
    with pytest.raises(InvalidManifestError):
        append(path, 2)
    append(path, 3, mode="overwrite")
    assert rows(path) == [3]


@pytest.mark.parametrize("scheme", ["memory://", "file://", "dir::file://", "simplecache::memory://"])
def test_a_store_behind_fsspec_is_written_and_read(path: Path, scheme: str) -> None:
    url = f"{scheme}{path}-{time.time_ns()}"
    for numbers in ([1, 2, 3], [4]):
        with DatasetWriter(url, batch_size=2, generate_index=True) as writer:
            writer.write({"x": np.array(numbers)})
    assert [int(row["x"]) for row in open_dataset(url)] == [1, 2, 3, 4]
    assert verify(url).faults == []
    with DatasetWriter(url, mode="overwrite", batch_size=2) as writer:
        writer.write({"x": np.array([5])})
    target = open_target(url)
    assert sorted(name.rpartition(".")[2] for name in target.names() if name[0] != "_") == ["json", "safetensors"]


def test_an_archive_is_not_written_to(path: Path) -> None:
    with zipfile.ZipFile(f"{path}.zip", "w") as archive:
        archive.writestr("x", "")
    with pytest.raises(PermissionError, match=r"zip://points is in an archive.*Write to a folder"):
        DatasetWriter(f"zip://points::file://{path}.zip", batch_size=2)
