"""Hooks: what they are told, and that nothing of a run depends on them."""

from __future__ import annotations

import json
import logging
import sys
from collections.abc import Iterable
from dataclasses import FrozenInstanceError
from pathlib import Path
from typing import Any

import datasets
import pytest
from pydantic import PrivateAttr

from factory.conftest import Longer
from factory.mistakes import mistake
from safetensors_spark._commands.cli import main
from safetensors_spark.factory import (
    Hook,
    PartitionEnd,
    Pipeline,
    Stage,
    StageEnd,
    StageFiles,
    StageStart,
    load_config,
    register,
    run,
)
from safetensors_spark.factory._registry import HOOKS
from safetensors_spark.factory.operators.exact_dedup import ExactDedup
from safetensors_spark.factory.operators.length import TextLength
from safetensors_spark.pipeline import Backend, create_backend

SIZES: dict[str, Any] = {"shard_bytes": 6000, "window_bytes": 3000, "file_bytes": 4000}
RECIPE = Pipeline(
    "told", (Stage("first", [ExactDedup(), TextLength()]), Stage("second", [Longer(limit=499, id="longer")]))
)


class Seen(Hook):
    """Keeps what it is told."""

    type = "seen"
    _events: list[Any] = PrivateAttr(default_factory=list)

    def on_stage_start(self, event: StageStart) -> None:
        self._events.append(event)

    def on_partition_end(self, event: PartitionEnd) -> None:
        assert all(Path(path).is_file() for path in (*event.paths, *event.dropped_paths))
        self._events.append(event)

    def on_stage_end(self, event: StageEnd) -> None:
        self._events.append(event)

    def of(self, stage: str) -> list[Any]:
        return [event for event in self._events if event.stage == stage]


class Broken(Hook):
    """Changes what it gets, and fails each time."""

    type = "broken"
    error: Any = ValueError("no\x1b[31m luck")

    def on_stage_start(self, event: StageStart) -> None:
        with pytest.raises(FrozenInstanceError):
            event.stage = "another"  # type: ignore[misc]
        object.__setattr__(event, "stage", "another")
        raise self.error

    def on_partition_end(self, event: PartitionEnd) -> None:
        raise self.error

    def profiles(self, event: StageFiles) -> Iterable[str]:
        raise self.error

    def on_stage_end(self, event: StageEnd) -> None:
        event.manifest["shards"].clear()
        event.manifest.clear()
        raise self.error


def _files(folder: Path) -> dict[str, bytes]:
    """All that a run has made, with what of manifests does not differ from run to run."""
    found = {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*.parquet")}
    for path in folder.rglob("manifest.json"):
        content = json.loads(path.read_text())
        found[str(path.relative_to(folder))] = json.dumps(content | {"run_id": ""}).encode()
    return found


@pytest.mark.parametrize(("kind", "stages"), [("sync", ["first", "second"]), ("processes", ["second"])])
def test_hooks_are_told_of_stages_and_shards(kind: str, stages: list[str], rows: Any, tmp_path: Path) -> None:
    backend, hook = create_backend(kind, 2, progress=False), Seen()
    recipe = Pipeline("told", tuple(stage for stage in RECIPE.stages if stage.name in stages))
    run(recipe, rows, tmp_path, backend=backend, hooks=[hook], **SIZES)
    for name in stages:
        manifest = json.loads((tmp_path / name / "manifest.json").read_text())
        start, *shards, end = hook.of(name)
        assert start == StageStart("told", name, manifest["run_id"], str(tmp_path / name), len(manifest["shards"]))
        assert sorted(one.shard for one in shards) == list(range(start.shards))
        assert start.shards > 3
        for one in shards:
            record = manifest["shards"][one.shard]
            assert (one.rows_in, one.rows_out) == (record["input_rows"], record["output_rows"])
            assert [Path(path).name for path in one.paths] == [file["file"] for file in record["files"]]
            assert [Path(path).name for path in one.dropped_paths] == [file["file"] for file in record["dropped"]]
        assert (end.manifest, end.shards_made) == (manifest, start.shards)


def test_shards_of_earlier_runs_are_not_told(rows: Any, tmp_path: Path, sync: Backend) -> None:
    for number in range(3):
        rows.select(range(number * 300, number * 300 + 300)).to_parquet(tmp_path / f"{number}.parquet")

    def told(count: int) -> list[Any]:
        files = [str(tmp_path / f"{number}.parquet") for number in range(count)]
        stream = datasets.load_dataset("parquet", data_files=files, split="train", streaming=True)
        hook = Seen()
        run(Pipeline("p", (Stage("s", [TextLength()]),)), stream, tmp_path / "out", backend=sync, hooks=[hook])
        return hook.of("s")

    assert [one.shard for one in told(2)[1:-1]] == [0, 1]
    assert [one.shard for one in told(3)[1:-1]] == [2]
    start, end = told(3)
    assert (start.shards, end.shards_made, end.manifest["output_rows"]) == (3, 0, 900)


def test_a_stage_that_fails_does_not_end(rows: Any, tmp_path: Path, sync: Backend) -> None:
    class Fails(TextLength):
        def score(self, batch: Any) -> Any:
            raise KeyError("never")

    hook = Seen()
    with pytest.raises(KeyError, match="never"):
        run(Pipeline("p", (Stage("s", [Fails()]),)), rows, tmp_path, backend=sync, hooks=[hook])
    assert [type(one) for one in hook.of("s")] == [StageStart]


@pytest.mark.parametrize("error", [ValueError("no\x1b[31m luck"), SystemExit(3), OSError(28, "full")])
def test_a_broken_hook_changes_nothing(
    error: BaseException, rows: Any, tmp_path: Path, sync: Backend, caplog: pytest.LogCaptureFixture
) -> None:
    expected = run(RECIPE, rows, tmp_path / "without", backend=sync, **SIZES)
    seen = Seen()
    with caplog.at_level(logging.WARNING, "safetensors_spark"):
        hooks = [Broken(error=error), seen, Broken(error=error, name="other")]
        found = run(RECIPE, rows, tmp_path / "with", backend=sync, hooks=hooks, **SIZES)
    assert found[:] == expected[:]
    assert _files(tmp_path / "with") == _files(tmp_path / "without")
    assert len(seen.of("second")) > 3
    first, second, *counts = [record.getMessage() for record in caplog.records]
    start = "has failed in `on_stage_start` of stage `first`, and the run continues: "
    assert first.startswith(f"The hook `broken` {start}{type(error).__name__}: ")
    assert second.startswith(f"The hook `other` {start}")
    assert "\x1b" not in first
    calls = len(seen._events) + 2
    assert counts == [f"The hook `{name}` has failed {calls} times in this run." for name in ("broken", "other")]


@pytest.mark.parametrize(
    ("hooks", "told"),
    [([Seen], "the class Seen: call it"), (["seen"], "a str, expected instances of Hook")],
)
def test_what_is_no_hook_is_told_before_anything_runs(hooks: Any, told: str, rows: Any, tmp_path: Path) -> None:
    with pytest.raises(TypeError, match=told):
        run(RECIPE, rows, tmp_path / "out", hooks=hooks)
    assert not (tmp_path / "out").exists()


class Counts(Hook):
    """Writes a profile of each stage."""

    type = "counts"
    path: str = "profiles/count.json"

    def profiles(self, event: StageFiles) -> Iterable[str]:
        folder = Path(event.folder) / "profiles"
        folder.mkdir(exist_ok=True)
        (folder / "count.json").write_text(json.dumps(len(event.paths)))
        (folder / "leftover").touch()
        return [self.path]


def test_profiles_of_hooks_are_named_in_the_manifest(rows: Any, tmp_path: Path, sync: Backend) -> None:
    recipe = Pipeline("p", (Stage("s", [TextLength()]),))

    def profiles(out: str, *hooks: Hook, **options: Any) -> Any:
        run(recipe, rows, tmp_path / out, backend=sync, hooks=hooks, **SIZES, **options)
        manifest = json.loads((tmp_path / out / "s" / "manifest.json").read_text())
        assert list(_files(tmp_path / out)) == list(_files(tmp_path / "a"))
        return manifest["profiles"]

    assert profiles("a", Counts()) == ["profiles/count.json"]
    manifest = json.loads((tmp_path / "a" / "s" / "manifest.json").read_text())
    count = json.loads((tmp_path / "a" / "s" / "profiles" / "count.json").read_text())
    assert count == len(manifest["outputs"]) > 3
    assert [path.name for path in (tmp_path / "a" / "s" / "profiles").iterdir()] == ["count.json"]
    # A run without the hook that makes nothing leaves it, and one that makes the stage does not.
    assert profiles("a") == ["profiles/count.json"]
    assert profiles("a", mode="overwrite") == []
    assert not list((tmp_path / "a" / "s" / "profiles").iterdir())
    # A hook that comes later sees stages that are whole.
    assert profiles("a", Counts()) == ["profiles/count.json"]


@pytest.mark.parametrize("path", ["../manifest.json", "manifest.json", "profiles/none", "profiles/../manifest.json"])
def test_profiles_are_files_of_their_folder(
    path: str, rows: Any, tmp_path: Path, sync: Backend, caplog: pytest.LogCaptureFixture
) -> None:
    run(Pipeline("p", (Stage("s", [TextLength()]),)), rows, tmp_path, backend=sync, hooks=[Counts(path=path)])
    assert json.loads((tmp_path / "s" / "manifest.json").read_text())["profiles"] == []
    assert f"it returned '{path}', expected a file of the stage" in caplog.text


YAML = """\
name: web
imports: [own_hooks]
input: {path: parquet, data_files: in.parquet}
stages:
  - name: score
    operators:
      - type: text_length
hooks:
  - type: notes
    path: notes.txt
"""
OWN = """\
from safetensors_spark.factory import Hook, register

@register
class Notes(Hook):
    type = "notes"
    path: str

    def on_stage_end(self, event):
        with open(self.path, "a") as file:
            print(event.stage, event.manifest["output_rows"], file=file)
"""


@pytest.fixture
def clean(monkeypatch: pytest.MonkeyPatch) -> None:
    """Imports of a test are forgotten."""
    monkeypatch.setattr("sys.path", list(sys.path))
    monkeypatch.setattr(HOOKS, "registered", {})
    monkeypatch.delitem(sys.modules, "own_hooks", raising=False)


@pytest.mark.usefixtures("clean")
def test_hooks_of_a_configuration_run(rows: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "own_hooks.py").write_text(OWN)
    (tmp_path / "web.yaml").write_text(YAML)
    rows.to_parquet(tmp_path / "in.parquet")
    monkeypatch.chdir(tmp_path)
    assert main(["factory", "run", "web.yaml", "--out", "out", "--runtime", "sync"]) == 0
    assert Path("notes.txt").read_text() == "score 1000\n"
    config = load_config("web.yaml")
    (hook,) = config.new_hooks()
    assert (str(hook), hook.path) == ("notes", "notes.txt")  # type: ignore[attr-defined]
    Path("again.yaml").write_text(config.to_yaml())
    assert load_config("again.yaml").hooks == config.hooks
    assert {"const": "notes"} in [
        part.get("properties", {}).get("type") for part in config.json_schema()["$defs"].values()
    ]


@pytest.mark.usefixtures("clean")
@pytest.mark.parametrize(
    ("right", "wrong", "told"),
    [
        ("type: notes", "type: note", "line 9: no hook has the type `note`. Did you mean `notes`?"),
        ("path: notes.txt", "pth: notes.txt", "line 10: `pth` is not known. Did you mean `path`?"),
        ("path: notes.txt", "path: 3", "line 10: `path` is 3, expected text."),
        ("type: notes\n    path", "path", "line 9: `type` is missing"),
        ("hooks:", "hook:", "line 8: `hook` is not known. Did you mean `hooks`?"),
        (
            "hooks:\n  - type: notes\n    path: notes.txt",
            "hooks: notes",
            "line 8: `hooks` is the text 'notes', expected",
        ),
    ],
)
def test_mistakes_have_their_line(right: str, wrong: str, told: str, tmp_path: Path) -> None:
    (tmp_path / "own_hooks.py").write_text(OWN)
    assert told in mistake(tmp_path, YAML.replace(right, wrong))


def test_hooks_of_other_packages_are_known(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    info = tmp_path / "notes-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: notes\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text("[safetensors_spark.factory.hooks]\nnotes = packaged_notes:Notes\n")
    (tmp_path / "packaged_notes.py").write_text(OWN.replace("@register\n", ""))
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.delitem(vars(HOOKS), "offered", raising=False)
    try:
        assert HOOKS.find("notes").__module__ == "packaged_notes"
    finally:
        del vars(HOOKS)["offered"]


def test_a_type_has_one_class(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(HOOKS, "registered", {})
    register(Seen)
    with pytest.raises(Exception, match="there is a hook of the type `seen` already: give Again another one"):

        @register
        class Again(Hook):
            type = "seen"
