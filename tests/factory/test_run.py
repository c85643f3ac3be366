"""Pipelines of the factory, from datasets to datasets."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import datasets
import numpy as np
import pyarrow as pa  # type: ignore[import-untyped]
import pyarrow.parquet as pq  # type: ignore[import-untyped]
import pytest

from factory.conftest import Halves, Longer, Upper
from safetensors_spark import PipelineBusyError
from safetensors_spark.factory import ChangedStageError, Pipeline, Stage, run
from safetensors_spark.factory.operators.exact_dedup import ExactDedup
from safetensors_spark.factory.operators.length import TextLength, WordCount
from safetensors_spark.pipeline import Backend, create_backend

SIZES: dict[str, Any] = {"shard_bytes": 4000, "window_bytes": 1500, "file_bytes": 2000}


def _pipeline(limit: int = 100) -> Pipeline:
    scores = Stage("score", [TextLength(), WordCount(), Longer(limit=limit), Upper()])
    return Pipeline("numbers", (scores, Stage("more", [Halves(), Longer(limit=990, field="n", id="last")])))


def _files(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*.parquet")}


def test_a_dataset_becomes_a_dataset(rows: Any, tmp_path: Path, sync: Backend) -> None:
    found = run(_pipeline(), rows, tmp_path, backend=sync, **SIZES)
    assert isinstance(found, datasets.Dataset)
    assert [(row["n"], row["text"], row["half"]) for row in found] == [
        one for n in range(991, 1000) for one in ((n, f"A{n} B{n}", None), (n, f"A{n} B{n}", f"B{n}"))
    ]
    first = found[0]
    assert (first["text_length"], first["word_count"]) == (9, 2)
    assert [row["__fdf__/refined_by"] for row in found] == [["upper_1"]] * 18
    assert [row["__fdf__/generated_by"] for row in found] == [None, ["halves_1"]] * 9

    manifest = json.loads((tmp_path / "score" / "manifest.json").read_text())
    assert (manifest["input_rows"], manifest["output_rows"]) == (1000, 899)
    assert manifest["operators"]["longer_1"] == {"rows": 1000, "dropped": 101}
    assert manifest["operators"]["upper_1"] == {"rows": 899, "dropped": 0}
    assert len(manifest["shards"]) > 4
    dropped = [
        row for path in sorted((tmp_path / "score" / "dropped").iterdir()) for row in pq.read_table(path).to_pylist()
    ]
    assert [row["n"] for row in dropped] == list(range(101))
    assert (dropped[7]["__fdf__/dropped_by"], dropped[7]["__fdf__/dropped_because"]) == ("longer_1", "7 <= 100")
    assert dropped[7]["word_count"] == 2


def test_a_stream_becomes_a_stream_of_the_same_rows(rows: Any, tmp_path: Path, sync: Backend) -> None:
    stream = rows.to_iterable_dataset(num_shards=3)
    found = run(_pipeline(), stream, tmp_path / "s", backend=sync, **SIZES)
    assert isinstance(found, datasets.IterableDataset)
    expected = run(_pipeline(), rows, tmp_path / "d", backend=sync, **SIZES)
    assert list(found) == list(expected)


def test_files_are_the_same_for_any_number_of_workers(rows: Any, tmp_path: Path, sync: Backend) -> None:
    run(_pipeline(), rows, tmp_path / "one", backend=sync, **SIZES)
    expected = _files(tmp_path / "one")
    assert len(expected) > 10
    for workers in (1, 4):
        folder = tmp_path / str(workers)
        run(_pipeline(), rows, folder, backend=create_backend("processes", workers, progress=False), **SIZES)
        assert _files(folder) == expected


def test_files_are_the_same_on_ray(rows: Any, tmp_path: Path, sync: Backend) -> None:
    ray = pytest.importorskip("ray")
    unique = Stage("unique", [ExactDedup(fields=("half",)), Longer(limit=200)])
    recipe = Pipeline("p", (*_pipeline().stages, unique))
    run(recipe, rows, tmp_path / "one", backend=sync, **SIZES)
    ray.init("local", num_cpus=2, include_dashboard=False, object_store_memory=80 << 20)
    try:
        run(recipe, rows, tmp_path / "ray", backend=create_backend("ray", 2, progress=False), **SIZES)
    finally:
        ray.shutdown()
    expected = _files(tmp_path / "one")
    assert len(expected) > 10
    assert _files(tmp_path / "ray") == expected


def test_features_are_kept(tmp_path: Path, sync: Backend) -> None:
    features = datasets.Features({"text": datasets.Value("string"), "label": datasets.ClassLabel(names=["no", "yes"])})
    rows = datasets.Dataset.from_dict({"text": ["a", None], "label": [1, 0]}, features=features)
    found = run(Pipeline("p", (Stage("s", [TextLength()]),)), rows, tmp_path, backend=sync)
    assert found.features["label"] == features["label"]
    assert found["text_length"][:] == [1, None]


def test_lists_of_some_length_may_be_null(tmp_path: Path, sync: Backend) -> None:
    pair = datasets.List(datasets.Value("float32"), length=2)
    features = datasets.Features({"n": datasets.Value("int64"), "pair": pair, "in": {"pair": pair}})
    rows = [
        {"n": n, "pair": None if n % 3 else [n, 0.5], "in": {"pair": None if n % 2 else [0, n]}} for n in range(100)
    ]
    dataset = datasets.Dataset.from_list(rows, features=features)
    # The second stage reads what the first one has written.
    recipe = Pipeline("p", (Stage("a", [Longer(limit=10)]), Stage("b", [Longer(limit=20)])))
    for source in (dataset, dataset.to_iterable_dataset()):
        found = run(recipe, source, tmp_path / type(source).__name__, backend=sync, **SIZES)
        assert found.features == features
        assert [dict(row) for row in found] == rows[21:]


def test_examples_of_python_have_the_types_of_the_features(tmp_path: Path, sync: Backend) -> None:
    features = datasets.Features(
        {"n": datasets.Value("int32"), "image": datasets.Image(), "grid": datasets.Array2D((1, 2), "float32")}
    )

    def examples() -> Iterator[dict[str, Any]]:
        for number in range(600):
            image = {"bytes": bytes([number % 256]), "path": None} if number % 3 else None
            yield {"n": number, "image": image, "grid": [[number, 0.5]]}

    stream = datasets.IterableDataset.from_generator(examples, features=features)
    found = run(Pipeline("p", (Stage("s", [Longer(limit=400)]),)), stream, tmp_path, backend=sync)
    assert found.features == features
    rows = list(found.decode(False))
    assert [row["n"] for row in rows] == list(range(401, 600))
    assert [row["image"] and row["image"]["bytes"] for row in rows[:3]] == [bytes([145]), None, bytes([147])]
    assert np.array(rows[5]["grid"]).tolist() == [[406, 0.5]]


@pytest.mark.parametrize("kind", ["sync", "processes"])
def test_an_operator_that_raises_is_named(kind: str, rows: Any, tmp_path: Path) -> None:
    class Fails(Upper):
        def refine(self, batch: pa.RecordBatch) -> Any:
            if "a777 b777" in batch["text"].to_pylist():
                raise ArithmeticError("no 777")
            return super().refine(batch)

    class FailsToo(Halves):
        def generate(self, batch: pa.RecordBatch) -> Any:
            raise KeyError("never")

    for operator, error in ((Fails(id="capitals"), ArithmeticError), (FailsToo(id="capitals"), KeyError)):
        recipe = Pipeline("p", (Stage("loud", [TextLength(), operator]),))
        with pytest.raises(error) as raised:
            run(recipe, rows, tmp_path, backend=create_backend(kind, 2, progress=False), **SIZES)
        told, where, *_ = raised.value.__notes__
        assert told == "In operator `capitals`"
        assert re.fullmatch(r"In rows \d+ to \d+ of shard \d+ of stage `loud`", where)
        assert not (tmp_path / "loud" / "manifest.json").exists()


def test_nothing_is_left_of_no_rows(rows: Any, tmp_path: Path, sync: Backend) -> None:
    none = run(_pipeline(limit=2000), rows, tmp_path / "a", backend=sync)
    assert len(none) == 0
    assert "half" in none.features
    assert len(run(_pipeline(), rows.select([]), tmp_path / "b", backend=sync)) == 0


def test_a_stage_that_is_whole_is_not_made_again(rows: Any, tmp_path: Path, sync: Backend) -> None:
    run(_pipeline(), rows, tmp_path, backend=sync, **SIZES)
    before = {path: path.stat().st_mtime_ns for path in tmp_path.rglob("*.parquet")}
    run(_pipeline(), rows, tmp_path, backend=sync, **SIZES)
    assert {path: path.stat().st_mtime_ns for path in tmp_path.rglob("*.parquet")} == before
    with pytest.raises(ChangedStageError, match=r"`limit` of `longer_1` is 7, and was 100.*mode='overwrite'"):
        run(_pipeline(limit=7), rows, tmp_path, backend=sync, **SIZES)
    found = run(_pipeline(limit=7), rows, tmp_path, mode="overwrite", backend=sync, **SIZES)
    assert len(found) == 18
    whole = json.loads((tmp_path / "score" / "manifest.json").read_text())
    assert whole["output_rows"] == 992
    assert sorted(path.name for path in (tmp_path / "score" / "data").iterdir()) == sorted(
        name.removeprefix("data/") for name in whole["outputs"]
    )


def test_new_rows_of_the_input_cost_their_shards_alone(rows: Any, tmp_path: Path, sync: Backend) -> None:
    for number in range(3):
        rows.select(range(number * 300, number * 300 + 300)).to_parquet(tmp_path / f"{number}.parquet")

    def stream(count: int) -> Any:
        files = [str(tmp_path / f"{number}.parquet") for number in range(count)]
        return datasets.load_dataset("parquet", data_files=files, split="train", streaming=True)

    recipe = Pipeline("p", (Stage("s", [TextLength(), Longer(limit=5)]),))
    assert len(list(run(recipe, stream(2), tmp_path / "out", backend=sync))) == 594
    before = {path: path.stat().st_mtime_ns for path in (tmp_path / "out" / "s" / "data").iterdir()}
    assert [row["n"] for row in run(recipe, stream(3), tmp_path / "out", backend=sync)] == list(range(6, 900))
    assert (
        before.items()
        <= {path: path.stat().st_mtime_ns for path in (tmp_path / "out" / "s" / "data").iterdir()}.items()
    )


def test_two_runs_do_not_work_in_one_folder(rows: Any, tmp_path: Path, sync: Backend) -> None:
    class Again(Upper):
        def refine(self, batch: pa.RecordBatch) -> Any:
            with pytest.raises(PipelineBusyError, match="which writes the same files"):
                run(_pipeline(), rows, tmp_path, mode="overwrite", backend=sync, **SIZES)
            return super().refine(batch)

    assert len(run(Pipeline("p", (Stage("s", [Again()]),)), rows, tmp_path, backend=sync)) == 1000


_SCRIPT = """
import os, sys
from pathlib import Path

import datasets

from factory.test_run import SIZES, _pipeline
from safetensors_spark.factory import run
from safetensors_spark.pipeline import create_backend

out, left, seen = Path(sys.argv[1]), int(sys.argv[2]), 0

def hook(event, arguments):
    global seen
    if event in ("os.rename", "os.remove", "os.rmdir", "shutil.rmtree") and str(out) in str(arguments[0]):
        seen += 1
        if seen > left:
            os._exit(9)

rows = datasets.Dataset.from_dict({"n": list(range(1000)), "text": [f"a{n} b{n}" for n in range(1000)]})
sys.addaudithook(hook)
run(_pipeline(), rows, out, backend=create_backend("sync", progress=False), **SIZES)
print(seen, flush=True)
os._exit(0)
"""


def _changes(folder: Path, limit: int) -> int | None:
    """How many changes of files a run makes in a process of its own; None if it was killed before the next one."""
    command = [sys.executable, "-c", _SCRIPT, str(folder), str(limit)]
    env = {**os.environ, "PYTHONPATH": str(Path(__file__).parents[1])}
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=False, timeout=900, env=env)
    assert done.returncode in (0, 9)
    return int(done.stdout.split()[-1]) if done.returncode == 0 else None


def test_a_run_that_is_killed_equals_an_unbroken_one(tmp_path: Path) -> None:
    changes = _changes(tmp_path / "whole", 1_000_000)
    expected = _files(tmp_path / "whole")
    assert changes is not None
    for part in (2, 5, 7.9):
        folder = tmp_path / str(part)
        assert _changes(folder, int(changes * part / 8)) is None
        assert _changes(folder, 1_000_000) is not None
        assert _files(folder) == expected


_FULL = """
import resource, signal, sys

signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
if sys.argv[2] == "full":
    resource.setrlimit(resource.RLIMIT_FSIZE, (20_000, 20_000))

import datasets

from factory.test_run import _pipeline
from safetensors_spark.factory import run
from safetensors_spark.pipeline import create_backend

datasets.disable_caching()
rows = datasets.Dataset.from_dict({"n": list(range(9000)), "text": [f"a{n} b{n * 7919 % 9001}" for n in range(9000)]})
sizes = {"shard_bytes": 60_000, "file_bytes": 600_000}
try:
    run(_pipeline(), rows, sys.argv[1], backend=create_backend("sync", progress=False), **sizes)
except OSError as error:
    print(error)
"""


def test_a_full_disk_is_told_and_the_next_run_goes_on(tmp_path: Path) -> None:
    def start(folder: str, disk: str) -> str:
        command = [sys.executable, "-c", _FULL, str(tmp_path / folder), disk]
        env = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
        return subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True, timeout=900, env=env).stdout

    told = start("a", "full")
    assert "cannot be written: File too large. The partial file is removed. Make room" in told
    assert not list(tmp_path.rglob("*.draft"))
    assert not (tmp_path / "a" / "score" / "manifest.json").exists()
    for folder in ("a", "b"):
        assert not start(folder, "empty")
    assert _files(tmp_path / "a") == _files(tmp_path / "b")
