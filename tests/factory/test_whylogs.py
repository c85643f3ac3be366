"""Profiles of stages by whylogs."""

from __future__ import annotations

import json
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import datasets
import pytest

from factory.conftest import Longer
from factory.mistakes import mistake
from safetensors_spark import MissingExtraError
from safetensors_spark._commands.cli import main
from safetensors_spark.factory import Pipeline, Stage, run
from safetensors_spark.factory.hooks.whylogs import WhylogsProfiles
from safetensors_spark.factory.operators.length import TextLength
from safetensors_spark.pipeline import Backend, create_backend

# It is imported by the hook, which decides what it sends.
pytestmark = pytest.mark.skipif(find_spec("whylogs") is None, reason="whylogs has no wheels for this Python")

RECIPE = Pipeline("p", (Stage("s", [TextLength(), Longer(limit=99)]),))


def _rows(count: int = 1000) -> Any:
    numbers = range(count)
    columns: dict[str, list[Any]] = {
        "n": list(numbers),
        "text": [None if n % 10 == 0 else f"text {n % 7}" for n in numbers],
        "count": [n if n % 4 else None for n in numbers],
        "share": [n / 4 for n in numbers],
        "is_even": [n % 2 == 0 for n in numbers],
        "list": [[n] for n in numbers],
        "none": [None] * count,
    }
    features = datasets.Dataset.from_dict({name: values[:2] for name, values in columns.items()}).features
    return datasets.Dataset.from_dict(columns, datasets.Features(features | {"none": datasets.Value("int32")}))


def _profiles(stage: Path) -> tuple[list[str], Any]:
    """What the manifest names, and the profile of the stage, as a table by column."""
    from whylogs.core import DatasetProfileView

    names = json.loads((stage / "manifest.json").read_text())["profiles"]
    return names, DatasetProfileView.read(str(stage / names[0])).to_pandas()


@pytest.mark.parametrize("kind", ["sync", "processes"])
def test_a_stage_has_the_profile_of_its_rows(kind: str, tmp_path: Path) -> None:
    backend = create_backend(kind, 2, progress=False)
    run(RECIPE, _rows(), tmp_path, backend=backend, hooks=[WhylogsProfiles(rows=64)], shard_bytes=20_000)
    manifest = json.loads((tmp_path / "s" / "manifest.json").read_text())
    names, found = _profiles(tmp_path / "s")
    assert len(names) == len(manifest["outputs"]) + 1 > 3
    assert sorted(f"profiles/{path.name}" for path in (tmp_path / "s" / "profiles").iterdir()) == sorted(names)
    assert set(found.index) == {"n", "text", "count", "share", "is_even", "none", "text_length"}
    assert set(found["counts/n"]) == {900}
    nulls = {"text": 90, "count": 225, "none": 900, "text_length": 90}
    assert found["counts/null"].to_dict() == dict.fromkeys(found.index, 0) | nulls
    assert set(found["counts/nan"]) == {0}
    assert (found.loc["n", "distribution/min"], found.loc["n", "distribution/max"]) == (100, 999)
    assert found.loc["n", "distribution/mean"] == pytest.approx(sum(range(100, 1000)) / 900)
    assert found.loc["text", "cardinality/est"] == pytest.approx(7, abs=0.1)
    assert found.loc["is_even", "counts/true"] == 450
    assert found.loc["count", "types/integral"] == 675


def test_new_shards_alone_are_profiled(tmp_path: Path, sync: Backend) -> None:
    rows = _rows(900)
    for number in range(3):
        rows.select(range(number * 300, number * 300 + 300)).to_parquet(tmp_path / f"{number}.parquet")

    def made(count: int, *hooks: WhylogsProfiles) -> dict[str, int]:
        files = [str(tmp_path / f"{number}.parquet") for number in range(count)]
        stream = datasets.load_dataset("parquet", data_files=files, split="train", streaming=True)
        run(RECIPE, stream, tmp_path / "out", backend=sync, hooks=hooks)
        folder = tmp_path / "out" / "s" / "profiles"
        return {path.name: path.stat().st_mtime_ns for path in folder.iterdir()} if folder.exists() else {}

    # Without the hook at first: it profiles what an earlier run has made.
    assert made(1) == {}
    assert len(made(1, WhylogsProfiles())) == 2
    first = made(2, WhylogsProfiles())
    assert len(first) == 3
    assert made(2, WhylogsProfiles()) == first
    second = made(3, WhylogsProfiles())
    assert len(second.items() & first.items()) == 2
    names, found = _profiles(tmp_path / "out" / "s")
    assert (len(names), found.loc["n", "counts/n"]) == (4, 800)
    # Other columns are other profiles.
    assert not made(3, WhylogsProfiles(columns=("n", "list"))).keys() & second.keys()
    _, found = _profiles(tmp_path / "out" / "s")
    assert list(found.index) == ["n"]


def test_a_stage_that_is_made_again_has_another_profile(tmp_path: Path, sync: Backend) -> None:
    hooks = [WhylogsProfiles()]
    run(RECIPE, _rows(), tmp_path, backend=sync, hooks=hooks)
    before, _ = _profiles(tmp_path / "s")
    run(RECIPE, _rows(), tmp_path, backend=sync, hooks=hooks, mode="overwrite")
    after, found = _profiles(tmp_path / "s")
    assert not set(before) & set(after)
    assert len(before) == len(after)
    assert found.loc["n", "counts/n"] == 900


def test_a_stage_without_rows_has_no_profile(tmp_path: Path, sync: Backend) -> None:
    run(Pipeline("p", (Stage("s", [Longer(limit=9999)]),)), _rows(), tmp_path, backend=sync, hooks=[WhylogsProfiles()])
    assert json.loads((tmp_path / "s" / "manifest.json").read_text())["profiles"] == []


YAML = """\
name: web
input: {path: parquet, data_files: in.parquet}
stages:
  - name: score
    operators:
      - type: text_length
hooks:
  - {type: whylogs, columns: [text_length]}
"""


def test_a_configuration_names_it(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "web.yaml").write_text(YAML)
    _rows().to_parquet(tmp_path / "in.parquet")
    out = tmp_path / "out"
    assert main(["factory", "run", str(tmp_path / "web.yaml"), "--out", str(out), "--runtime", "sync"]) == 0
    _, found = _profiles(out / "score")
    assert found.loc["text_length", "counts/null"] == 100
    assert "Did you mean `columns`?" in mistake(tmp_path, YAML.replace("columns", "colums"))
    assert "Did you mean `whylogs`?" in mistake(tmp_path, YAML.replace("whylogs", "whylog"))
    assert "hook" not in capsys.readouterr().err


def test_statistics_of_use_are_not_sent() -> None:
    # It is imported with the first one.
    WhylogsProfiles()
    from whylogs.api import usage_stats

    assert usage_stats._TELEMETRY_DISABLED


def test_what_is_not_installed_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("safetensors_spark._extras.find_spec", lambda name: None)
    with pytest.raises(MissingExtraError, match=r"not installed: pandas, whylogs. Install the extra `factory-whylogs`"):
        WhylogsProfiles()
