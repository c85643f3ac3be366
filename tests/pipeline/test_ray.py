"""What Ray does with lost workers and nodes, and with errors of functions, on a cluster of two nodes."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest

pytest.importorskip("ray")

import ray

from pipeline.conftest import STORE_BYTES, MakeBackend
from safetensors_spark import LostShardError, PipelineError
from safetensors_spark.pipeline import Backend, Dataset, col, create_backend, get_shared

pytestmark = pytest.mark.usefixtures("ray_cluster")


def on_ray(**options: Any) -> Backend:
    return create_backend("ray", max_parallelism=2, progress=False, **options)


def until(holds: Callable[[], Any]) -> None:
    while not holds():
        time.sleep(0.05)


def of_kind(kind: str, rows: Any) -> dict[str, Any]:
    found = list(rows)
    return {"kind": kind, "ids": [row["id"] for row in found], "text": found[0]["text"]}


def test_files_are_equal_to_those_of_one_process(files: Path, tmp_path: Path, sync: MakeBackend) -> None:
    def pipeline(folder: str) -> Dataset[str]:
        rows = Dataset.from_files(files, "**/*.jsonl.gz").load_jsonl().filter(col("score") > 0.25)
        found = rows.group_by(lambda row: row["kind"], of_kind, sort_by=lambda row: -row["id"], num_output_shards=3)
        return found.write_jsonl(f"{tmp_path}/{folder}/{{shard}}-of-{{total}}.jsonl.gz")

    written = list(on_ray().execute(pipeline("ray")))
    expected = list(sync().execute(pipeline("sync")))
    assert len(written) == 3
    assert [Path(path).read_bytes() for path in written] == [Path(path).read_bytes() for path in expected]


def once(folder: Path, name: str) -> bool:
    """Whether nobody was here before."""
    try:
        (folder / name).touch(exist_ok=False)
    except FileExistsError:
        return False
    return True


@pytest.mark.parametrize("death", ["exit", "kill"])
def test_a_shard_whose_worker_died_is_made_by_another(death: str, tmp_path: Path) -> None:
    def dies_once(row: int) -> int:
        if row == 2 and once(tmp_path, "died"):
            os._exit(1) if death == "exit" else os.kill(os.getpid(), signal.SIGKILL)
        return row * 10

    assert list(on_ray().execute(Dataset.from_list(range(4)).map(dies_once))) == [0, 10, 20, 30]
    assert (tmp_path / "died").exists()


def test_a_shard_that_kills_each_worker_is_named(tmp_path: Path) -> None:
    def dies(row: str) -> str:
        if row == "bad":
            (tmp_path / uuid4().hex).touch()
            os._exit(1)
        return row

    named = r"shard 1 of 3 .* could not be computed in 3 attempts.*WorkerCrashed"
    with pytest.raises(LostShardError, match=named) as error:
        on_ray().execute(Dataset.from_list(["good", "bad", "good"]).map(dies))
    assert "begins with 'bad'" in error.value.__notes__[0]
    assert len(list(tmp_path.iterdir())) == 3


def test_a_lost_connection_is_tried_again(tmp_path: Path) -> None:
    def loses_once(row: int) -> int:
        if once(tmp_path, str(row)):
            raise ConnectionResetError("the server is gone")
        return row

    assert list(on_ray().execute(Dataset.from_list([1, 2]).map(loses_once))) == [1, 2]


def test_a_connection_that_is_always_lost_is_named() -> None:
    def loses(row: int) -> int:
        raise ConnectionRefusedError("nobody is there")

    with pytest.raises(LostShardError, match=r"3 attempts.*ConnectionRefusedError: nobody is there"):
        on_ray().execute(Dataset.from_list([1]).map(loses))


class BadRecordError(Exception):
    def __init__(self, record: int, what: str) -> None:
        super().__init__(record, what)


def test_an_error_of_a_function_is_its_own_class_and_not_tried_again(tmp_path: Path) -> None:
    def fails(row: int) -> int:
        if row == 3:
            (tmp_path / uuid4().hex).touch()
            raise BadRecordError(row, "no text")
        return row

    with pytest.raises(BadRecordError, match="no text") as error:
        on_ray().execute(Dataset.from_list([[1], [2, 3]]).flat_map(list).map(fails))
    assert type(error.value) is BadRecordError
    assert any("shard 1 of 2" in note and "fails" in note for note in error.value.__notes__)
    assert "in fails" in str(error.value.__cause__)
    assert len(list(tmp_path.iterdir())) == 1


def test_an_error_ends_what_else_runs(tmp_path: Path) -> None:
    def waits_or_fails(row: str) -> str:
        if row == "fails":
            until((tmp_path / "waits").exists)
            raise BadRecordError(1, "no text")
        (tmp_path / row).write_text(str(os.getpid()))
        while True:
            time.sleep(1)

    with pytest.raises(BadRecordError):
        on_ray().execute(Dataset.from_list(["waits", "fails"]).map(waits_or_fails))
    process = int((tmp_path / "waits").read_text())
    until(lambda: not Path(f"/proc/{process}").exists())


def test_shards_of_a_node_that_is_gone_are_made_on_others(tmp_path: Path, ray_cluster: Any) -> None:
    node = ray_cluster.add_node(num_cpus=2, object_store_memory=STORE_BYTES)
    (tmp_path / "ran").mkdir()

    def waits(row: int) -> int:
        with (tmp_path / "ran" / str(row)).open("a") as file:
            file.write(f"{ray.get_runtime_context().get_node_id()} {os.getpid()}\n")
        until((tmp_path / "go").exists)
        return row

    def attempts() -> list[list[list[str]]]:
        """Of each shard the nodes and processes that began it."""
        return [[line.split() for line in path.read_text().splitlines()] for path in (tmp_path / "ran").iterdir()]

    def on_node() -> list[str]:
        return [process for shard in attempts() for place, process in shard if place == node.node_id]

    def remove() -> None:
        until(on_node)
        processes = on_node()
        ray_cluster.remove_node(node, allow_graceful=False)
        # Until then they could end what they do.
        until(lambda: not any(Path(f"/proc/{process}").exists() for process in processes))
        (tmp_path / "go").touch()

    thread = threading.Thread(target=remove)
    thread.start()
    backend = create_backend("ray", max_parallelism=6, progress=False)
    assert list(backend.execute(Dataset.from_list(range(6)).map(waits))) == list(range(6))
    thread.join()
    moved = [shard for shard in attempts() if any(place == node.node_id for place, _ in shard)]
    assert moved
    assert all(shard[-1][0] != node.node_id for shard in moved)


_DRIVER = """
import signal, sys, time
from pathlib import Path
# A shell ignores the signal in what it runs in the background, such as these tests.
signal.signal(signal.SIGINT, signal.default_int_handler)
from safetensors_spark.pipeline import Dataset, create_backend
folder = Path({folder!r})
def slow(row):
    if row["n"] == 3 and not (folder / "go").exists():
        (folder / "waits").touch()
        while True:
            time.sleep(1)
    return row
def main():
    rows = Dataset.from_list([{{"n": n}} for n in range(6)]).map(slow)
    list(create_backend("ray", 2, progress=False, address={address!r}).execute(
        rows.write_jsonl(f"{{folder}}/out/{{{{shard}}}}.jsonl")))
main()
"""


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGINT])
def test_a_driver_that_was_ended_goes_on_when_it_is_started_again(
    number: signal.Signals, tmp_path: Path, ray_cluster: Any
) -> None:
    script = tmp_path / "driver.py"
    script.write_text(_DRIVER.format(folder=str(tmp_path), address=ray_cluster.address))
    driver = subprocess.Popen([sys.executable, str(script)])
    until(lambda: (tmp_path / "waits").exists() or driver.poll() is not None)
    driver.send_signal(number)
    assert driver.wait() != 0
    made = {path: path.stat().st_mtime_ns for path in (tmp_path / "out").glob("*.jsonl")}
    (tmp_path / "go").touch()
    subprocess.run([sys.executable, str(script)], check=True)
    written = sorted((tmp_path / "out").glob("*.jsonl"))
    assert [json.loads(path.read_text()) for path in written] == [{"n": n} for n in range(6)]
    # One more may have been written, but not noted, when the driver ended: that one is made again.
    kept = [path for path, time in made.items() if path.stat().st_mtime_ns == time]
    assert len(kept) >= 2


def test_resources_of_tasks_and_shared_objects() -> None:
    def about(row: int) -> tuple[float, str]:
        return ray.get_runtime_context().get_assigned_resources()["CPU"], get_shared("name")

    backend = on_ray(num_cpus=0.5).having(shared={"name": "of all"})
    assert list(backend.execute(Dataset.from_list([1]).map(about))) == [(0.5, "of all")]


def test_an_option_that_ray_has_not_is_refused() -> None:
    with pytest.raises(ValueError, match="num_cpu"):
        on_ray(num_cpu=1).execute(Dataset.from_list([1]).map(str))


def test_a_folder_that_a_node_does_not_see_is_an_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The node has another disk than the driver: here, the folder is gone when it looks."""
    from safetensors_spark.pipeline._backends import cluster

    real = cluster.packed

    def packed(work: Any) -> bytes:
        content = real(work)
        Path(work.folder).rmdir()
        return content

    monkeypatch.setattr(cluster, "packed", packed)
    with pytest.raises(PipelineError, match="Give `work_dir` a folder that all nodes share"):
        on_ray(work_dir=str(tmp_path)).execute(Dataset.from_list([1]).map(str))
