"""Plans: what a run would do is what it does."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import datasets
import pyarrow as pa  # type: ignore[import-untyped]
import pytest

from factory.conftest import Halves, Longer, Upper
from safetensors_spark.factory import ContractError, Pipeline, Score, Stage, plan, run
from safetensors_spark.factory._code_version import code_version
from safetensors_spark.factory._stage_manifest import read_manifest
from safetensors_spark.factory.operators.length import TextLength, WordCount
from safetensors_spark.factory.operators.map_batches import MapBatches
from safetensors_spark.pipeline import Backend, SyncBackend

RECIPE = Pipeline(
    "numbers",
    (Stage("score", [TextLength(), Longer(limit=100), Upper()]), Stage("more", [Halves(), WordCount(field="half")])),
)


def _plan(rows: Any, folder: Path, pipeline: Pipeline = RECIPE, **options: Any) -> Any:
    return plan(pipeline, rows, folder, backend=SyncBackend(progress=False), shard_bytes=8000, **options)


def test_a_plan_tells_shards_operators_and_fields(rows: Any, tmp_path: Path) -> None:
    found = _plan(rows, tmp_path / "out")
    score, more = found.stages
    assert (score.rows, score.made, score.changes) == (1000, 0, [])
    assert score.shards > 1
    assert (more.shards, more.rows) == (None, None)
    assert list(more.fields) == [
        "n", "text", "text_length", "__fdf__/refined_by", "half", "__fdf__/generated_by", "word_count",
    ]  # fmt: skip
    lines = str(found).splitlines()
    assert lines[1:3] == [f"input: Dataset, {score.shards} shards, 1,000 rows", "runtime: sync, 1 task at a time"]
    assert "    text_length_1  text_length  score    CPU  text -> text_length: int64" in lines
    assert "    longer_1       longer       filter   CPU  n -> no field" in lines
    assert f"  written to {tmp_path}/out/score: data/*.parquet, dropped/*.parquet, manifest.json" in lines
    assert not (tmp_path / "out").exists()


def test_a_plan_tells_what_is_there_and_why_the_rest_is_made(rows: Any, tmp_path: Path, sync: Backend) -> None:
    for number in range(3):
        rows.select(range(number * 300, number * 300 + 300)).to_parquet(tmp_path / f"{number}.parquet")

    def stream(count: int) -> Any:
        files = [str(tmp_path / f"{number}.parquet") for number in range(count)]
        return datasets.load_dataset("parquet", data_files=files, split="train", streaming=True)

    out = tmp_path / "out"
    run(RECIPE, stream(2), out, backend=sync)
    found = _plan(stream(2), out)
    assert [(one.shards, one.made, one.rows) for one in found.stages] == [(2, 2, None), (2, 2, 499)]
    assert str(found).count("nothing is computed: 2 shards of the same rows exist") == 2
    more = _plan(stream(3), out)
    assert (more.stages[0].shards, more.stages[0].made, more.stages[1].shards) == (3, 2, None)
    assert more.stages[0].work == "1 of 3 shards are computed: their rows are new or have changed"
    less = _plan(stream(1), out)
    assert less.stages[0].work == "no shard is computed, but shards leave the output: 1 of 2 are left"
    other = Pipeline("numbers", (Stage("score", [TextLength(), Longer(limit=7), Upper()]), RECIPE.stages[1]))
    changed = _plan(stream(2), out, other)
    assert changed.stages[0].changes == ["`limit` of `longer_1` is 7, and was 100"]
    assert "REFUSED: it was made with another configuration: `limit` of `longer_1` is 7, and was 100." in str(changed)
    again = _plan(stream(2), out, other, mode="overwrite")
    assert [(one.made, one.changes) for one in again.stages] == [(0, []), (0, [])]


def test_no_stage_runs_before_all_are_checked(rows: Any, tmp_path: Path, sync: Backend) -> None:
    wrong = Pipeline("p", (Stage("a", [TextLength()]), Stage("b", [WordCount(field="txt")])))
    for function in (plan, run):
        with pytest.raises(ContractError, match=r"word_count_1 reads `txt`, but rows have n, text, text_length\."):
            function(wrong, rows, tmp_path / "out", backend=sync)
    assert not (tmp_path / "out").exists()


def test_a_manifest_has_the_run_that_made_it(rows: Any, tmp_path: Path, sync: Backend) -> None:
    def ids() -> list[str]:
        found = [read_manifest(f"{tmp_path}/{stage.name}") for stage in RECIPE.stages]
        return [one["run_id"] for one in found if one is not None]

    run(RECIPE, rows, tmp_path, backend=sync)
    first = ids()
    assert len(first) == 2
    assert len(set(first)) == 1
    run(RECIPE, rows, tmp_path, backend=sync)
    assert ids() == first
    run(RECIPE, rows, tmp_path, backend=sync, mode="overwrite")
    assert not set(ids()) & set(first)


class Breaks(Score):
    """Fails at the number that the environment names."""

    type = "breaks"

    @property
    def reads(self) -> tuple[str, ...]:
        return ("n",)

    @property
    def writes(self) -> Mapping[str, pa.DataType]:
        return {"m": pa.int64()}

    def score(self, batch: pa.RecordBatch) -> Any:
        if int(os.environ.get("BREAKS_AT", -1)) in batch["n"].to_pylist():
            raise OSError("broken off")
        return {"m": batch["n"]}


def test_another_run_goes_on_from_a_broken_one(
    rows: Any, tmp_path: Path, sync: Backend, monkeypatch: pytest.MonkeyPatch
) -> None:
    def files() -> dict[str, tuple[int, bytes]]:
        return {one.name: (one.stat().st_mtime_ns, one.read_bytes()) for one in (tmp_path / "s" / "data").iterdir()}

    recipe = Pipeline("p", (Stage("s", [Breaks()]),))
    monkeypatch.setenv("BREAKS_AT", "700")
    with pytest.raises(OSError, match="broken off"):
        run(recipe, rows, tmp_path, backend=sync, shard_bytes=8000)
    broken = files()
    assert len(broken) >= 1
    monkeypatch.delenv("BREAKS_AT")
    found = run(recipe, rows, tmp_path, backend=sync, shard_bytes=8000)
    assert found["m"][:] == list(range(1000))
    assert broken.items() <= files().items()


def test_the_code_of_own_operators_is_that_of_their_checkout(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def git(*arguments: str) -> str:
        command = ["git", "-C", str(tmp_path), "-c", "user.name=a", "-c", "user.email=a@b", *arguments]
        return subprocess.run(command, check=True, capture_output=True, text=True).stdout.strip()

    file = tmp_path / "checked_out.py"
    file.write_text("from factory.conftest import Upper\n\n\nclass Loud(Upper):\n    type = 'loud'\n")
    monkeypatch.syspath_prepend(tmp_path)
    from checked_out import Loud  # type: ignore[import-not-found]

    assert code_version(Stage("s", [TextLength()]), "").startswith("safetensors-spark ")
    stage = Stage("s", [TextLength(), Loud()])
    assert code_version(stage, "abc").endswith("+abc")
    git("init", "-q")
    assert code_version(stage, "abc").endswith("+abc")
    git("add", "checked_out.py")
    git("commit", "-qm", "a")
    assert code_version(stage, "abc") == f"git:{git('rev-parse', 'HEAD')}"
    file.write_text(file.read_text() + "\n")
    assert code_version(stage, "abc") == f"git:{git('rev-parse', 'HEAD')}-dirty"

    # A function counts as an operator does.
    (tmp_path / "own_function.py").write_text("def made(batch):\n    return {'m': batch['n']}\n")
    mapped = MapBatches(function="own_function:made", inputs=("n",), outputs={"m": "int64"})
    assert code_version(Stage("s", [mapped]), "abc").endswith("+abc")
    git("add", "-A")
    git("commit", "-qm", "b")
    assert code_version(Stage("s", [mapped]), "abc") == f"git:{git('rev-parse', 'HEAD')}"
