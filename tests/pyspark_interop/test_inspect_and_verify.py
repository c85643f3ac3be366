"""`safetensors-spark inspect` and `verify`, on what Spark and the official library wrote, whole and damaged."""

import contextlib
import json
import os
import pty
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import fsspec
import numpy as np
import pyarrow as pa  # type: ignore[import-untyped]
import pyarrow.parquet as pq  # type: ignore[import-untyped]
import pytest
from pyspark.sql import SparkSession
from safetensors.numpy import save_file

from safetensors_spark._commands.cli import main
from spark_io import MANIFEST, Dataset, frame, write

INDEX = "_tensor_index.parquet"


@pytest.fixture(scope="module")
def batches(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Dataset:
    """Five samples in two shards."""
    rows = [([float(i), 1.0], i) for i in range(5)]
    return write(
        frame(spark, "v array<float>, n int", *rows), tmp_path_factory.mktemp("written") / "batches", batch_size=3
    )


@pytest.fixture(scope="module")
def store(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Dataset:
    """Four tensors by key, with an index."""
    rows = [(f"k{i}", [float(i)] * (i + 1)) for i in range(4)]
    place = tmp_path_factory.mktemp("written") / "store"
    return write(frame(spark, "id string, v array<float>", *rows), place, name_col="id", generate_index="true")


@pytest.fixture
def copy(tmp_path: Path) -> Callable[[Dataset], Dataset]:
    """A dataset that a test may damage."""
    return lambda dataset: Dataset(Path(shutil.copytree(dataset.path, tmp_path / dataset.path.name)))


@pytest.fixture
def said(capsys: pytest.CaptureFixture[str]) -> Callable[..., tuple[int, str]]:
    """Runs the command: its exit code, and what it printed."""

    def said(*arguments: str | Path) -> tuple[int, str]:
        code = main([str(argument) for argument in arguments])
        printed = capsys.readouterr()
        return code, printed.out + printed.err

    return said


@pytest.fixture
def checkpoint(tmp_path: Path) -> Path:
    folder = tmp_path / "model"
    folder.mkdir()
    weights = {"a": "one.safetensors", "b": "two.safetensors", "c": "two.safetensors"}
    save_file({"a": np.zeros((2, 3), np.float32)}, folder / "one.safetensors")
    save_file({"b": np.zeros(4, np.float16), "c": np.zeros(1, np.int64)}, folder / "two.safetensors")
    (folder / "model.safetensors.index.json").write_text(json.dumps({"weight_map": weights}))
    return folder


Said = Callable[..., tuple[int, str]]
Copy = Callable[[Dataset], Dataset]


def test_inspecting_batches(said: Said, batches: Dataset) -> None:
    code, text = said("inspect", batches.path)
    assert code == 0
    for line in (
        "mode",
        "batch_size  3",
        "v       F32    [2]",
        "n       I32    []",
        batches.shards[1].name,
        "Files: 2",
    ):
        assert line in text
    code, text = said("inspect", batches.path, "--json")
    found = json.loads(text)
    assert (found["kind"], found["samples"], found["commit_id"]) == ("dataset", 5, batches.manifest["commit_id"])
    assert [(file["file"], file["samples"]) for file in found["files"]] == [
        (shard["file"], shard["samples_count"]) for shard in batches.manifest["shards"]
    ]
    assert found["columns"] == batches.manifest["schema"]
    assert found["bytes"] == batches.manifest["total_bytes"]


def test_inspecting_a_store_with_a_limit(said: Said, store: Dataset) -> None:
    code, text = said("inspect", store.path, "--limit", "2")
    assert code == 0
    assert "Tensors: 2 of 4" in text
    assert "k1      F32    [2]" in text
    assert "k2" not in text
    assert "F32          4        10     40" in text


def test_inspecting_a_checkpoint_and_its_files(said: Said, checkpoint: Path) -> None:
    found = json.loads(said("inspect", checkpoint, "--json")[1])
    assert found["kind"] == "checkpoint"
    assert found["tensors"][0] == {"name": "a", "file": "one.safetensors", "dtype": "F32", "shape": [2, 3], "bytes": 24}
    assert {total["dtype"]: total["elements"] for total in found["dtypes"]} == {"F32": 6, "F16": 4, "I64": 1}
    one = json.loads(said("inspect", checkpoint / "two.safetensors", "--json")[1])
    assert (one["kind"], [tensor["name"] for tensor in one["tensors"]]) == ("file", ["c", "b"])
    (checkpoint / "model.safetensors.index.json").unlink()
    assert json.loads(said("inspect", checkpoint, "--json")[1])["kind"] == "folder"


def test_what_is_whole(said: Said, batches: Dataset, store: Dataset, checkpoint: Path) -> None:
    length = batches.manifest["total_bytes"]
    assert said("verify", batches.path) == (0, f"No faults found: 2 files, 4 tensors, {length} bytes.\n")
    code, text = said("verify", store.path, "--workers", "1")
    assert (code, "4 tensors" in text, "4 entries of the index." in text) == (0, True, True)
    assert said("verify", checkpoint)[0] == 0
    assert said("verify", checkpoint / "one.safetensors")[0] == 0


def test_over_fsspec(said: Said, store: Dataset, batches: Dataset) -> None:
    memory = fsspec.filesystem("memory")
    memory.put(str(store.path), "/bucket/store", recursive=True)
    memory.put(str(batches.path), "/bucket/batches", recursive=True)
    assert said("verify", "memory://bucket/store")[0] == 0
    assert "memory://" in said("inspect", "memory://bucket/batches")[1]
    shard = f"/bucket/batches/{batches.shards[0].name}"
    assert said("inspect", f"memory://{shard}")[0] == 0
    memory.pipe(shard, memory.cat(shard)[:-1] + b"x")
    code, text = said("verify", "memory://bucket/batches")
    assert (code, "CRC-32C" in text) == (1, True)
    code, text = said("verify", "memory://bucket/nothing")
    assert (code, "nothing" in text) == (2, True)


def _flip(path: Path, at: int) -> None:
    content = bytearray(path.read_bytes())
    content[at] ^= 1
    path.write_bytes(content)


def _changed(dataset: Dataset, change: Callable[[dict[str, Any]], None]) -> None:
    change(dataset.manifest)
    (dataset.path / MANIFEST).write_text(json.dumps(dataset.manifest))


DAMAGES: dict[str, tuple[Callable[[Dataset], Any], str]] = {
    "a byte of data": (lambda d: _flip(d.shards[1], -1), "its CRC-32C is"),
    "a byte of the header": (lambda d: _flip(d.shards[1], 8), "(InvalidHeaderDeserialization)"),
    "cut off": (lambda d: d.shards[1].write_bytes(d.shards[1].read_bytes()[:-4]), "and the manifest says"),
    "gone": (lambda d: d.shards[1].unlink(), "it does not exist"),
    "swapped": (
        lambda d: _changed(d, lambda m: m["shards"][1].update(header_bytes=m["shards"][1]["header_bytes"] + 8)),
        "its byte buffer begins at byte",
    ),
    "another dtype": (lambda d: _changed(d, lambda m: m["schema"][0].update(dtype="I32")), "tensor `v` has dtype F32"),
    "another shape": (lambda d: _changed(d, lambda m: m["schema"][0].update(shape=[3])), "samples of shape [2]"),
    "more samples": (lambda d: _changed(d, lambda m: m["shards"][1].update(samples_count=3)), "3 samples"),
    "a column more": (
        lambda d: _changed(d, lambda m: m["schema"].append({"name": "w", "dtype": None, "shape": None})),
        "it has no tensor `w`",
    ),
    "a column less": (lambda d: _changed(d, lambda m: m["schema"].pop()), "a tensor `n`, which is not a column"),
}


@pytest.mark.parametrize("damage", DAMAGES)
def test_damaged_batches(said: Said, batches: Dataset, copy: Copy, damage: str) -> None:
    damaged = copy(batches)
    make, expected = DAMAGES[damage]
    make(damaged)
    code, text = said("verify", damaged.path)
    assert code == 1
    assert expected in text
    assert damaged.shards[1].name in text


def _index(dataset: Dataset, change: Callable[[pa.Table], pa.Table]) -> None:
    table = pq.read_table(dataset.path / INDEX)
    pq.write_table(change(table).replace_schema_metadata(table.schema.metadata), dataset.path / INDEX)


INDEX_DAMAGES: dict[str, tuple[Callable[[Dataset], Any], str]] = {
    "an entry elsewhere": (
        lambda d: _index(d, lambda t: t.set_column(4, "data_start", pa.array([0, 1, 2, 3], pa.int64()))),
        "its entry for `k0` is not what the header of",
    ),
    "an entry less": (lambda d: _index(d, lambda t: t.slice(0, 3)), "it has 3 entries, and the shards have 4 tensors"),
    "out of order": (lambda d: _index(d, lambda t: t.take([1, 0, 2, 3])), "`k0` does not come after"),
    "a column less": (lambda d: _index(d, lambda t: t.drop_columns(["dtype"])), "it has no column dtype"),
    "no Parquet": (lambda d: (d.path / INDEX).write_bytes(b"PAR1 and no more"), "cannot be read"),
}


@pytest.mark.parametrize("damage", INDEX_DAMAGES)
def test_a_damaged_index(said: Said, store: Dataset, copy: Copy, damage: str) -> None:
    damaged = copy(store)
    make, expected = INDEX_DAMAGES[damage]
    make(damaged)
    code, text = said("verify", damaged.path)
    assert (code, expected in text) == (1, True), text


def test_what_is_no_fault_is_noted(said: Said, store: Dataset, copy: Copy) -> None:
    noted = copy(store)
    _changed(noted, lambda m: m["index_parts"][0].update(commit_id="another"))
    shutil.copy(noted.shards[0], noted.path / "mine.safetensors")
    code, text = said("verify", noted.path)
    assert code == 0
    assert f"Note: {INDEX} is of another commit: readers ignore the index." in text
    assert "Note: 1 safetensors files beside the dataset are not part of it, mine.safetensors for one." in text


def test_a_checkpoint_that_does_not_fit_its_index(said: Said, checkpoint: Path) -> None:
    save_file({"b": np.zeros(4, np.float16), "d": np.zeros(1, np.int64)}, checkpoint / "two.safetensors")
    code, text = said("verify", checkpoint)
    assert code == 1
    assert "no tensor `c`" in text
    assert "a tensor `d`" in text
    (checkpoint / "one.safetensors").unlink()
    assert "it does not exist" in said("verify", checkpoint)[1]
    assert said("inspect", checkpoint)[0] == 2
    (checkpoint / "model.safetensors.index.json").write_text('{"weight_map": {"a": "../x.safetensors"}}')
    code, text = said("verify", checkpoint)
    assert (code, "not the name of a file beside it" in text) == (2, True)


def test_on_a_terminal_tables_are_drawn_and_a_bar_runs(batches: Dataset) -> None:
    for command, drawn in (("inspect", "╭"), ("verify", "100%|━━")):
        ours, theirs = pty.openpty()
        with subprocess.Popen(
            [sys.executable, "-m", "safetensors_spark", command, str(batches.path)],
            stdin=theirs,
            stdout=theirs,
            stderr=theirs,
            env={**os.environ, "TERM": "xterm-256color", "COLUMNS": "120"},
        ) as process:
            os.close(theirs)
            text = _all_of(ours)
        assert process.returncode == 0
        assert any(mark in text for mark in drawn.split("|")), text


def _all_of(terminal: int) -> str:
    content = b""
    with contextlib.suppress(OSError):  # how a terminal ends
        while part := os.read(terminal, 4096):
            content += part
    os.close(terminal)
    return content.decode()


def test_where_nothing_is(said: Said, tmp_path: Path) -> None:
    code, text = said("inspect", tmp_path)
    assert (code, "no checkpoint's index, and no *.safetensors files" in text) == (2, True)
    code, text = said("verify", tmp_path / "absent")
    assert (code, "absent" in text, "Traceback" in text) == (2, True, False)
