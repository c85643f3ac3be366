"""Each block of code in the specification, as its users typed it."""

from __future__ import annotations

import gzip
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from pipeline.conftest import ALL, MakeBackend
from safetensors_spark._commands.cli import main as command
from safetensors_spark.pipeline import (
    Dataset,
    SyncBackend,
    ThreadPoolBackend,
    ZephyrContext,
    create_backend,
    flow_backend,
    get_shared,
    load_jsonl,
)


def lines(paths: list[str]) -> list[Any]:
    return [json.loads(line) for path in paths for line in gzip.open(path, "rt")]


def transform_record(row: dict[str, Any]) -> dict[str, Any]:
    return {"id": row["id"]}


def test_quick_start(files: Path, tmp_path: Path, backend: MakeBackend) -> None:
    pipeline = (
        Dataset.from_files(f"{files}/", "**/*.jsonl.gz")
        .flat_map(load_jsonl)
        .filter(lambda x: x["score"] > 0.5)
        .map(lambda x: transform_record(x))
        .write_jsonl(f"{tmp_path}/output/data-{{shard:05d}}-of-{{total:05d}}.jsonl.gz")
    )
    paths = list(backend().execute(pipeline))
    assert [Path(path).name for path in paths] == [f"data-{shard:05d}-of-00004.jsonl.gz" for shard in range(4)]
    assert lines(paths) == [{"id": row["id"]} for row in ALL if row["score"] > 0.5]


def test_wikipedia_processing(files: Path, tmp_path: Path) -> None:
    def process_record(row: dict[str, Any], config: dict[str, int]) -> dict[str, Any] | None:
        return {"id": row["id"]} if row["id"] % config["every"] == 0 else None

    config, output = {"every": 100}, str(tmp_path / "output")
    listed = sorted(map(str, files.rglob("*.gz")))
    backend = flow_backend(progress=False)
    pipeline = (
        Dataset.from_list(listed)
        .load_jsonl()
        .map(lambda row: process_record(row, config))
        .filter(lambda x: x is not None)
        .write_jsonl(f"{output}/data-{{shard:05d}}-of-{{total:05d}}.jsonl.gz")
    )
    assert lines(list(backend.execute(pipeline))) == [{"id": row["id"]} for row in ALL if row["id"] % 100 == 0]


def test_dataset_sampling(files: Path, tmp_path: Path, backend: MakeBackend) -> None:
    def sample_file(path: str, weights: dict[str, float]) -> dict[str, Any]:
        return {"path": Path(path).name, "rows": int(weights["web"] * sum(1 for _ in load_jsonl(path)))}

    weights, output = {"web": 0.5}, str(tmp_path)
    pipeline = (
        Dataset.from_files(str(files), "**/*.jsonl.gz")
        .map(lambda path: sample_file(path, weights))
        .write_jsonl(f"{output}/sampled-{{shard:05d}}.jsonl.gz")
    )
    found = lines(list(backend().execute(pipeline)))
    assert found == [{"path": f"{number}.jsonl.gz", "rows": 125} for number in (0, 2, 1, 3)]


def test_parallel_downloads(tmp_path: Path) -> None:
    def download(config: str, source: str, target: str) -> str:
        Path(target).write_text(f"{config} {Path(source).read_text()}")
        return target

    (tmp_path / "a").write_text("a")
    (tmp_path / "b").write_text("b")
    tasks = [("copy of", str(tmp_path / name), str(tmp_path / f"{name}2")) for name in ("a", "b")]
    backend = create_backend("threadpool", progress=False)
    pipeline = Dataset.from_list(tasks).map(lambda t: download(*t))
    assert list(backend.execute(pipeline)) == [str(tmp_path / "a2"), str(tmp_path / "b2")]
    assert (tmp_path / "b2").read_text() == "copy of b"


def test_the_backends_are_made_by_their_names() -> None:
    assert ThreadPoolBackend(max_parallelism=3).options.max_parallelism == 3
    assert type(create_backend("sync")) is SyncBackend
    assert create_backend("threadpool", max_parallelism=7, memory="2GB").options.memory == "2GB"
    for kind in ("processes", "threads"):
        with pytest.raises(ValueError, match="max_parallelism is 0, expected"):
            create_backend(kind, max_parallelism=0)
    with pytest.raises(ValueError, match="backend_type is 'iris'"):
        create_backend("iris")
    with pytest.raises(ValueError, match="memory is '2 apples'"):
        create_backend("sync", memory="2 apples")


def test_the_context_shares_objects(backend: MakeBackend) -> None:
    context = ZephyrContext(client=backend(), num_workers=2, resources={"memory": "1GB"})
    context.put("names", {1: "one", 2: "two"})
    assert context.execute(Dataset.from_list([1, 2]).map(lambda row: get_shared("names")[row])) == ["one", "two"]


SCRIPT = """
import sys
from safetensors_spark.pipeline import flow_backend, Dataset

def words(row):
    return {"words": len(row["text"].split())}

def main():
    backend = flow_backend()  # Configured from CLI args
    pipeline = Dataset.from_files(sys.argv[1], "**/*.gz").load_jsonl().map(words).write_jsonl(sys.argv[2])
    print(backend.options.max_parallelism, backend.options.memory, len(list(backend.execute(pipeline))))
"""


def test_the_launcher_runs_main(files: Path, tmp_path: Path) -> None:
    script = tmp_path / "script.py"
    script.write_text(SCRIPT)
    arguments = ["--max-parallelism=2", "--memory=2GB", str(files), f"{tmp_path}/{{shard}}.jsonl"]
    run = [sys.executable, "-m", "safetensors_spark", "pipeline", str(script), *arguments]
    assert subprocess.run(run, check=True, capture_output=True, text=True).stdout == "2 2GB 4\n"
    assert sum(path.read_text().count("\n") for path in tmp_path.glob("*.jsonl")) == 1000
    for option, told in (("--max-parallelism=0", "max_parallelism is 0"), ("--memory=much", "memory is 'much'")):
        found = subprocess.run([*run, option], capture_output=True, text=True)
        assert (found.returncode, found.stderr.startswith("safetensors-spark: ")) == (2, True)
        assert told in found.stderr
        assert "Traceback" not in found.stderr


def test_the_launcher_shows_the_plan(files: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    script = tmp_path / "script.py"
    script.write_text(SCRIPT)
    argv, path = list(sys.argv), list(sys.path)
    try:
        arguments = [str(script), "--dry-run", "--backend=sync", str(files), f"{tmp_path}/{{shard}}.jsonl"]
        assert command(["pipeline", *arguments]) == 0
    finally:
        sys.argv[:], sys.path[:] = argv, path
    assert "stage 1: 4 shards: load jsonl | map words | write jsonl" in capsys.readouterr().out
    assert not list(tmp_path.glob("*.jsonl"))


def test_the_launcher_says_what_is_wrong(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    script = tmp_path / "script.py"
    script.write_text("x = 1\n")
    assert command(["pipeline", str(script)]) == 2
    assert "script.py has no function `main`" in capsys.readouterr().err
    assert command(["pipeline", str(tmp_path / "gone.py")]) == 2
    assert "gone.py does not exist" in capsys.readouterr().err
    assert command(["pipeline", "--cluster=iris", str(script)]) == 2
    assert "Iris is the cluster manager of another project" in capsys.readouterr().err
    assert command(["pipeline", "--num-gpus=1", str(script)]) == 2
    assert "only --backend=ray supports it" in capsys.readouterr().err
