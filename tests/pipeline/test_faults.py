"""Workers that die, functions that fail, runs that are killed: nothing is lost, doubled or half there."""

from __future__ import annotations

import asyncio
import json
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from pipeline.conftest import ALL, MakeBackend
from safetensors_spark import LostShardError, PipelineError
from safetensors_spark.pipeline import Dataset, ProcessBackend, counters, create_backend


class OwnError(Exception):
    """An exception whose constructor is not that of its base."""

    def __init__(self, code: int, where: str) -> None:
        super().__init__(f"{code} {where}")
        self.code = code


def test_an_exception_is_raised_at_once_as_it_is(files: Path, tmp_path: Path, backend: MakeBackend) -> None:
    tries = tmp_path / "tries"

    def fails(row: dict[str, Any]) -> dict[str, Any]:
        if row["id"] == 510:
            with tries.open("a") as file:
                file.write("x")
            raise KeyError("word")
        return row

    rows = Dataset.from_files(files, "**/*.gz").load_jsonl().map(fails)
    with pytest.raises(KeyError) as raised:
        backend().execute(rows.write_jsonl(f"{tmp_path}/out/{{shard}}.jsonl"))
    assert raised.value.args == ("word",)
    (note,) = raised.value.__notes__
    assert note.startswith("In shard 1 of 4, record 11, of stage 1: load jsonl | map ")
    assert tries.read_text() == "x"
    assert not (tmp_path / "out" / "1.jsonl").exists()
    assert not list((tmp_path / "out").glob(".*"))


@pytest.mark.parametrize("kind", [asyncio.CancelledError, GeneratorExit])
def test_what_is_raised_and_is_no_exception_is_raised_as_it_is(
    kind: type[BaseException], tmp_path: Path, backend: MakeBackend
) -> None:
    def fails(_: int) -> int:
        with (tmp_path / "tries").open("a") as file:
            file.write("x")
        raise kind("own")

    with pytest.raises(kind) as raised:
        backend().execute(Dataset.from_list([1]).map(fails))
    assert raised.value.__notes__[0].startswith("In shard 0 of 1, row 1, of stage 1: map ")
    assert (tmp_path / "tries").read_text() == "x"


def test_exceptions_that_cannot_be_sent_are_told(backend: MakeBackend) -> None:
    def fails(_: int) -> int:
        raise OwnError(3, "there")

    with pytest.raises((OwnError, PipelineError), match="3 there"):
        backend().execute(Dataset.from_list([1]).map(fails))


def test_a_lost_connection_is_tried_three_times(tmp_path: Path, backend: MakeBackend) -> None:
    tries = tmp_path / "tries"

    def fails_often(row: int, times: int) -> int:
        if row == 1:
            with tries.open("a") as file:
                file.write("x")
            if len(tries.read_text()) <= times:
                raise ConnectionResetError("reset")
        return row

    rows = Dataset.from_list(range(4))
    assert list(backend().execute(rows.map(lambda row: fails_often(row, 2)))) == [0, 1, 2, 3]
    tries.unlink()
    with pytest.raises(LostShardError, match=r"shard 1 of 4 of stage 1 .* in 3 attempts. .*ResetError: reset"):
        backend().execute(rows.map(lambda row: fails_often(row, 9)))
    assert tries.read_text() == "xxx"


def test_a_worker_that_dies_costs_its_shard_one_attempt(tmp_path: Path) -> None:
    def dies(row: int) -> int:
        if row == 2:
            with (tmp_path / "deaths").open("a") as file:
                file.write("x")
            if len((tmp_path / "deaths").read_text()) < 3:
                os.kill(os.getpid(), signal.SIGKILL)
        counters.increment("rows")
        return row

    backend = ProcessBackend(2, progress=False)
    found = backend.execute(Dataset.from_list(range(6)).map(dies))
    assert found.counters == {"rows": 6}
    assert list(found) == list(range(6))

    def always_dies(row: int) -> int:
        os._exit(7)

    with pytest.raises(LostShardError, match=r"shard 0 of 1 .* in 3 attempts.* died \(exit code 7\)"):
        backend.execute(Dataset.from_list([1]).map(always_dies))


def test_rows_that_fail_are_kept_apart(files: Path, tmp_path: Path, backend: MakeBackend) -> None:
    (files / "z.jsonl").write_text('{"id": 2000}\n{"id": \n{"id": 2002}\n')

    def fails(row: dict[str, Any]) -> dict[str, Any]:
        if row["id"] % 300 == 7:
            raise ValueError(f"no {row['id']}")
        return row

    rows = Dataset.from_files(files, "**/*.jsonl*").load_jsonl().map(fails).select("id")
    out = f"{tmp_path}/out/{{shard}}.jsonl"
    found = backend(on_error="quarantine").execute(rows.write_jsonl(out))
    kept = [json.loads(line)["id"] for path in found for line in Path(path).read_text().splitlines()]
    assert kept == [row["id"] for row in ALL if row["id"] % 300 != 7] + [2000, 2002]
    lines = [
        json.loads(line)
        for path in sorted((tmp_path / "out" / "_quarantine").rglob("*.jsonl"))
        for line in path.read_text().splitlines()
    ]
    assert [line["row"] if isinstance(line["row"], str) else line["row"]["id"] for line in lines] == [
        7,
        607,
        307,
        907,
        '{"id": ',
    ]
    assert lines[0]["error"] == "ValueError: no 7"
    assert "z.jsonl, line 2 is not JSON" in lines[-1]["error"]
    assert found.manifest["stages"][0]["quarantined"] == 5


def test_rows_of_each_pipeline_are_kept_apart(tmp_path: Path, sync: MakeBackend) -> None:
    def odd(row: int) -> int:
        if row % 2:
            return row
        raise ValueError("even")

    def kept() -> list[int]:
        return [json.loads(path.read_text())["row"] for path in sorted((tmp_path / "_quarantine").rglob("*.jsonl"))]

    left, right = (Dataset.from_list([number]).map(odd).reshard(1) for number in (1, 4))
    joined = left.sorted_merge_join(right, int, int, lambda one, _: one, "left")
    for name, dataset in (
        ("a", Dataset.from_list([2]).map(odd)),
        ("b", Dataset.from_list([3]).map(odd)),
        ("c", joined),
    ):
        list(sync(on_error="quarantine").execute(dataset.write_jsonl(f"{tmp_path}/{name}{{shard}}.jsonl")))
    assert sorted(kept()) == [2, 4]


def test_rows_without_a_key_are_kept_apart(tmp_path: Path, backend: MakeBackend) -> None:
    items: list[dict[str, Any]] = [{"key": 1, "at": 2}, {"at": 1}, {"key": {}, "at": 1}, {"key": 1, "at": 1}]

    def listed(key: int, rows: Iterator[dict[str, Any]]) -> list[Any]:
        return [key, *rows]

    grouped = Dataset.from_list(items).group_by(lambda row: row["key"], listed, sort_by=lambda row: row["at"])
    found = backend(on_error="quarantine").execute(grouped.write_jsonl(f"{tmp_path}/out/{{shard}}.jsonl"))
    kept = [json.loads(line) for path in found for line in Path(path).read_text().splitlines()]
    assert kept == [[1, {"key": 1, "at": 1}, {"key": 1, "at": 2}]]
    told = [json.loads(path.read_text()) for path in sorted((tmp_path / "out" / "_quarantine").rglob("*.jsonl"))]
    assert [(line["row"], line["error"].partition(":")[0]) for line in told] == [
        ({"at": 1}, "KeyError"),
        ({"key": {}, "at": 1}, "PipelineError"),
    ]


def test_what_was_made_is_not_made_again(files: Path, tmp_path: Path, backend: MakeBackend) -> None:
    out = f"{tmp_path}/out/{{shard}}-of-{{total}}.jsonl"
    made = tmp_path / "made"

    def seen(row: dict[str, Any]) -> dict[str, Any]:
        with made.open("a") as file:
            file.write(f"{row['id'] // 250}\n")
        return row

    def run(dataset: Dataset[Any]) -> set[str]:
        made.write_text("")
        assert len(list(backend().execute(dataset))) == 4
        return set(made.read_text().split())

    dataset = Dataset.from_files(files, "**/*.gz").load_jsonl().map(seen).write_jsonl(out)
    assert run(dataset) == {"0", "1", "2", "3"}
    assert run(dataset) == set()
    # An input that was written again.
    first = files / "0.jsonl.gz"
    content = first.read_bytes()
    first.unlink()
    first.write_bytes(content)
    assert run(dataset) == {"0"}
    # An output that no longer exists, and one that is another.
    (tmp_path / "out" / "1-of-4.jsonl").unlink()
    (tmp_path / "out" / "2-of-4.jsonl").write_text("")
    assert run(dataset) == {"1", "2"}
    # Other code.
    assert run(Dataset.from_files(files, "**/*.gz").load_jsonl().map(seen).map(dict).write_jsonl(out)) == {*"0123"}
    made.write_text("")
    list(backend(resume=False).execute(dataset))
    assert set(made.read_text().split()) == {*"0123"}


def test_files_that_are_there_are_skipped_if_asked_for(tmp_path: Path, backend: MakeBackend) -> None:
    (tmp_path / "1.jsonl").write_text("old")
    rows = Dataset.from_list([{"a": 0}, {"a": 1}, {"a": 2}])
    list(backend().execute(rows.write_jsonl(f"{tmp_path}/{{shard}}.jsonl", skip_existing=True)))
    assert [(tmp_path / f"{shard}.jsonl").read_text() for shard in range(3)] == ['{"a":0}\n', "old", '{"a":2}\n']


def test_a_function_that_exits_is_named(tmp_path: Path, backend: MakeBackend) -> None:
    tries = tmp_path / "tries"

    def exits(row: int) -> int:
        with tries.open("a") as file:
            file.write("x")
        sys.exit(7)

    with pytest.raises(PipelineError, match=r"has called `sys.exit\(7\)`") as raised:
        backend(work_dir=str(tmp_path / "work")).execute(Dataset.from_list([1]).map(exits))
    (note,) = raised.value.__notes__
    assert note.startswith("In shard 0 of 1, of stage 1: map ")
    assert tries.read_text() == "x"


_FULL = """
import resource, signal, sys

signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
if sys.argv[2] == "full":
    resource.setrlimit(resource.RLIMIT_FSIZE, (20_000, 20_000))

from safetensors_spark.pipeline import Dataset, create_backend

made = [{"key": row % 7, "text": f"{row}" * 20} for row in range(2000)]
rows = Dataset.from_list(range(3)).flat_map(lambda shard: made)
grouped = rows.group_by(lambda row: row["key"], lambda key, found: [key, len(list(found))], num_output_shards=1)
datasets = {
    "out/": rows.write_jsonl("out/{shard}.jsonl"),
    "stage-1/": grouped.write_jsonl("out/{shard}.jsonl"),
    "data/": rows.write_safetensors("data", batch_size=500),
}
list(create_backend("processes", 2, progress=False).execute(datasets[sys.argv[1]]))
"""


@pytest.mark.parametrize("place", ["out/", "stage-1/", "data/"])
def test_a_full_disk_is_told_with_the_file_and_leaves_nothing_half(place: str, tmp_path: Path) -> None:
    # Files of more than some bytes cannot be written, as on a disk that is full.
    command = [sys.executable, "-c", _FULL, place]
    done = subprocess.run([*command, "full"], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert re.search(
        rf"OSError: .* {tmp_path}/\S*{place}\S* cannot be written: File too large\. .*Make room", done.stderr
    )
    assert not [path for path in tmp_path.glob("[od]*/*") if path.is_file()]
    subprocess.run([*command, "roomy"], cwd=tmp_path, capture_output=True, check=True)
    found = [json.loads(line) for path in sorted(tmp_path.glob("out/*.jsonl")) for line in path.open()]
    if place == "out/":
        assert [row["text"] for row in found] == [f"{row}" * 20 for _ in range(3) for row in range(2000)]
    elif place == "stage-1/":
        assert found == [[key, 3 * len(range(key, 2000, 7))] for key in range(7)]
    else:
        from safetensors_spark.dataset import open_dataset

        assert len(open_dataset(tmp_path / "data")) == 6000
    assert not [path for path in tmp_path.rglob("*") if path.name.endswith(".draft")]


@pytest.mark.parametrize("damage", ["cut", "changed"])
def test_a_chunk_that_was_damaged_gives_no_wrong_rows(damage: str, files: Path, tmp_path: Path) -> None:
    ready = tmp_path / "ready"

    def counted(key: str, rows: Iterator[Any]) -> list[Any]:
        if not ready.exists():
            raise ValueError("not yet")
        return [key, sum(1 for _ in rows)]

    rows = Dataset.from_files(files, "**/*.gz").load_jsonl()
    grouped = rows.group_by(lambda row: row["kind"], counted, num_output_shards=1)
    dataset = grouped.write_jsonl(f"{tmp_path}/out/{{shard}}.jsonl")
    backend = create_backend("sync", progress=False)
    with pytest.raises(ValueError, match="not yet"):
        backend.execute(dataset)
    chunk = min((tmp_path / "out" / "_pipeline").glob("*/stage-1/*"))
    content = bytearray(chunk.read_bytes())
    content[100] ^= 1
    chunk.write_bytes(content[: len(content) // 2] if damage == "cut" else content)
    ready.touch()
    if damage == "changed":
        with pytest.raises(PipelineError, match=rf"{chunk} is not what a stage has written: .* Delete it"):
            backend.execute(dataset)
        chunk.unlink()
    (path,) = backend.execute(dataset)
    assert [json.loads(line) for line in Path(path).read_text().splitlines()] == [
        [f"k{kind}", 200] for kind in range(5)
    ]


SCRIPT = """
import sys, time
from pathlib import Path
from safetensors_spark.pipeline import Dataset, create_backend

folder, kind, slow = sys.argv[1], sys.argv[2], sys.argv[3] == "slow"

def work(row):
    if slow:
        time.sleep(0.002)
    return row

rows = Dataset.from_files(folder + "/in", "**/*.gz").load_jsonl().map(work)
grouped = rows.group_by(lambda row: row["kind"], lambda kind, found: (row for row in found), None, 3)
backend = create_backend(kind, 2, progress=False, memory="4MiB")
print("begun", flush=True)
list(backend.execute(grouped.map(work).write_jsonl(folder + "/out/{shard}.jsonl.gz")))
list(backend.execute(rows.select("id").write_safetensors(folder + "/data", batch_size=64, mode="error")))
"""


def outputs(folder: Path) -> dict[str, Any]:
    from safetensors_spark.dataset import open_dataset

    found: dict[str, Any] = {path.name: path.read_bytes() for path in (folder / "out").glob("*.gz")}
    return found | {"data": open_dataset(folder / "data")["id"].tolist()}


@pytest.mark.parametrize("kind", ["sync", "processes"])
def test_a_run_that_was_killed_goes_on(kind: str, files: Path, tmp_path: Path) -> None:
    script = tmp_path / "script.py"
    script.write_text(SCRIPT)

    def start(speed: str) -> subprocess.Popen[str]:
        command = [sys.executable, str(script), str(tmp_path), kind, speed]
        return subprocess.Popen(command, stdout=subprocess.PIPE, text=True)

    # No `if __name__ == "__main__"`: workers do not run the script.
    for pause in (0.05, 0.6, 1.2, 2.0):
        process = start("slow")
        assert process.stdout is not None
        process.stdout.readline()
        time.sleep(pause)
        process.kill()
        process.wait()
        assert all(not path.name.startswith(".") or path.suffix == ".draft" for path in (tmp_path / "out").glob("*"))
        if (tmp_path / "data" / "dataset_manifest.json").exists():
            break
    if not (tmp_path / "data" / "dataset_manifest.json").exists():
        assert start("slow").wait() == 0
    broken = outputs(tmp_path)
    other = tmp_path / "other"
    other.mkdir()
    (other / "in").symlink_to(files)
    subprocess.run([sys.executable, str(script), str(other), "sync", "fast"], check=True, capture_output=True)
    assert broken == outputs(other)
    assert not list((tmp_path / "out").glob(".*"))


def test_ctrl_c_ends_workers(tmp_path: Path) -> None:
    script = tmp_path / "script.py"
    script.write_text(
        """
import os, signal, sys, time
from safetensors_spark.pipeline import Dataset, create_backend

# A shell ignores the signal in what it runs in the background, such as these tests.
signal.signal(signal.SIGINT, signal.default_int_handler)

def wait(row):
    open(sys.argv[1] + f"/{os.getpid()}", "w").close()
    time.sleep(600)

list(create_backend("processes", 2, progress=False).execute(Dataset.from_list([1, 2]).map(wait)))
""".replace("sys.argv[1]", repr(str(tmp_path / "pids")))
    )
    (tmp_path / "pids").mkdir()
    process = subprocess.Popen([sys.executable, str(script)], stderr=subprocess.PIPE, start_new_session=True, text=True)
    deadline = time.monotonic() + 120
    while len(list((tmp_path / "pids").iterdir())) < 2:
        assert time.monotonic() < deadline
        time.sleep(0.05)
    # As a terminal does, to all processes of its group.
    os.killpg(process.pid, signal.SIGINT)
    _, error = process.communicate(timeout=60)
    assert "KeyboardInterrupt" in error
    for pid in (tmp_path / "pids").iterdir():
        with pytest.raises(ProcessLookupError):
            os.kill(int(pid.name), 0)


def test_workers_end_with_a_killed_caller(tmp_path: Path) -> None:
    script = tmp_path / "script.py"
    script.write_text(
        f"""
import os, time
from safetensors_spark.pipeline import Dataset, create_backend

def wait(row):
    open({str(tmp_path / "pid")!r}, "w").write(str(os.getpid()))
    time.sleep(600)

create_backend("processes", 1, progress=False).execute(Dataset.from_list([1]).map(wait))
"""
    )
    process = subprocess.Popen([sys.executable, str(script)])
    deadline = time.monotonic() + 120
    while not (tmp_path / "pid").exists() or not (tmp_path / "pid").read_text():
        assert time.monotonic() < deadline
        time.sleep(0.05)
    process.kill()
    process.wait()
    worker = int((tmp_path / "pid").read_text())
    while (
        Path(f"/proc/{worker}").exists()
        and "Z" not in Path(f"/proc/{worker}/status").read_text().split("State:")[1][:3]
    ):
        assert time.monotonic() < deadline
        time.sleep(0.05)
