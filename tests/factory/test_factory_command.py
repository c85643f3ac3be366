"""`safetensors-spark factory run`: what it makes, what it prints, and its exit codes."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq  # type: ignore[import-untyped]
import pytest

from safetensors_spark._commands.cli import main
from safetensors_spark.dataset import open_dataset
from safetensors_spark.factory._registry import OPERATORS

WEB = """\
name: web
imports: [own_operators]
input:
  path: parquet
  data_files: in/*.parquet
stages:
  - name: score
    operators:
      - type: text_length
      - {type: command_longer, limit: 9, id: long}
  - name: words
    operators:
      - type: word_count
"""
OWN = """\
from factory.conftest import Longer
from safetensors_spark.factory import register

@register
class CommandLonger(Longer):
    type = "command_longer"

    def reasons(self, batch):
        if self.limit == 13:
            raise KeyError("unlucky")
        return super().reasons(batch)
"""
TABLE = """\
web
  stage  operator       rows in  rows out
  score                     600       590
         text_length_1      600       600
         long               600       590
  words                     590       590
         word_count_1       590       590

"""


@pytest.fixture
def web(rows: Any, tmp_path: Path) -> Path:
    (tmp_path / "in").mkdir()
    for number in range(2):
        rows.select(range(number * 300, number * 300 + 300)).to_parquet(tmp_path / "in" / f"{number}.parquet")
    (tmp_path / "own_operators.py").write_text(OWN)
    (tmp_path / "web.yaml").write_text(WEB)
    return tmp_path


def _run(folder: Path, *arguments: str) -> tuple[int, str, str]:
    """The exit code, and what is printed to standard output and to standard error."""
    command = [sys.executable, "-m", "safetensors_spark", "factory", "run", str(folder / "web.yaml"), *arguments]
    env = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=100, env=env, cwd=folder)
    return done.returncode, done.stdout, done.stderr


def _files(folder: Path) -> dict[Path, int]:
    return {path: path.stat().st_mtime_ns for path in folder.rglob("*.parquet")}


def test_a_pipeline_runs_and_what_is_there_is_not_made_again(web: Path) -> None:
    assert _run(web, "--out", "out")[:2] == (0, TABLE)
    before = _files(web / "out")
    found = pq.read_table(sorted((web / "out" / "words" / "data").iterdir()))
    assert found.column("n").to_pylist() == list(range(10, 600))
    assert found.column("word_count").to_pylist() == [2] * 590

    assert _run(web, "--out", "out", "--runtime", "sync")[:2] == (0, TABLE)
    assert _files(web / "out") == before


@pytest.fixture
def clean(monkeypatch: pytest.MonkeyPatch) -> None:
    """Imports of a test are forgotten."""
    monkeypatch.setattr("sys.path", list(sys.path))
    monkeypatch.setattr(OPERATORS, "registered", {})
    monkeypatch.delitem(sys.modules, "own_operators", raising=False)


@pytest.mark.usefixtures("clean")
def test_a_plan_tells_whether_a_run_would_be_refused(web: Path, capsys: pytest.CaptureFixture[str]) -> None:
    arguments = ["factory", "run", str(web / "web.yaml"), "--out", str(web / "out"), "--runtime", "sync"]
    assert main([*arguments, "--dry-run"]) == 0
    assert not (web / "out").exists()
    assert main(arguments) == 0
    (web / "web.yaml").write_text(WEB.replace("limit: 9", "limit: 99"))
    assert main([*arguments, "--dry-run"]) == 1
    assert "REFUSED" in capsys.readouterr().out
    assert main(arguments) == 2
    assert "`limit` of `long` is 99, and was 9" in capsys.readouterr().err
    overwrite = [*arguments, "--mode", "overwrite"]
    assert main([*overwrite, "--dry-run"]) == 0
    assert main(overwrite) == 0
    assert ["long", "600", "500"] in [line.split() for line in capsys.readouterr().out.splitlines()]


@pytest.mark.usefixtures("clean")
@pytest.mark.parametrize(
    ("right", "wrong", "arguments", "told"),
    [
        ("", "", ["--max-parallelism", "0"], "max_parallelism is 0, expected 1 or more. See `"),
        (
            "limit: 9",
            "limit: 13",
            [],
            "KeyError: 'unlucky'\nIn operator `long`\nIn rows 0 to 299 of shard 0 of stage `score`",
        ),
        ("limit: 9", "limt: 9", [], "web.yaml, line 10: `limt` is not known. Did you mean `limit`?"),
        ("type: word_count", "{type: word_count, field: txt}", [], "word_count_1 reads `txt`, but rows have n, text"),
        (
            "word_count\n",
            "expression_filter\n        expression: n >\n",
            [],
            "line 14: `n >` is not an expression of SQL",
        ),
        ("in/*.parquet", "on/*.parquet", [], "the input cannot be opened: no file is `"),
        ("path: parquet", "path: json", [], "first rows of the dataset cannot be read: ArrowInvalid: JSON"),
        ("input:\n  path: parquet\n  data_files: in/*.parquet\n", "", [], "has no `input`: add one, or name files by"),
        ("input:\n  path: parquet\n  data_files: in/*.parquet\n", "", ["--input", "x.foo"], "do not tell one format"),
    ],
)
def test_errors_are_sentences(
    web: Path, right: str, wrong: str, arguments: list[str], told: str, capfd: pytest.CaptureFixture[str]
) -> None:
    (web / "web.yaml").write_text(WEB.replace(right, wrong))
    command = ["factory", "run", str(web / "web.yaml"), "--out", str(web / "out"), "--runtime", "sync"]
    assert main([*command, *arguments]) == 2
    error = capfd.readouterr().err
    assert told in error
    assert "Traceback" not in error


@pytest.mark.usefixtures("clean")
def test_files_are_named_in_place_of_the_input(
    web: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(web / "in")
    (web / "rows.jsonl").write_text('{"n": 10, "text": "a b c"}\n{"n": 1, "text": "a"}\n')
    arguments = ["factory", "run", str(web / "web.yaml"), "--runtime", "sync", "--out"]
    assert main([*arguments, str(web / "a"), "--input", "1.parquet"]) == 0
    assert capsys.readouterr().out.splitlines()[2].split() == ["score", "300", "300"]
    (web / "web.yaml").write_text(WEB.replace("input:\n  path: parquet\n  data_files: in/*.parquet\n", ""))
    assert main([*arguments, str(web / "b"), "--input", "../rows.jsonl"]) == 0
    assert capsys.readouterr().out.splitlines()[2].split() == ["score", "2", "1"]
    assert main([*arguments, str(web / "c"), "--input", "."]) == 0
    assert capsys.readouterr().out.splitlines()[2].split() == ["score", "600", "590"]


@pytest.mark.usefixtures("clean")
def test_the_output_goes_to_the_sink(web: Path, capsys: pytest.CaptureFixture[str]) -> None:
    text = f"{WEB}sink: {{type: safetensors, path: tensors, options: {{columns: [n], batch_size: 16}}}}\n"
    (web / "web.yaml").write_text(text)
    arguments = ["factory", "run", str(web / "web.yaml"), "--runtime", "sync", "--out", str(web / "out")]
    assert main(arguments) == 0
    dataset = open_dataset(web / "tensors")
    assert [column.name for column in dataset.columns] == ["n"]
    assert sorted(dataset[0:590]["n"].tolist()) == list(range(10, 600))
    for right, wrong, meant in (("columns", "column", "columns"), ("batch_size", "batchsize", "batch_size")):
        (web / "web.yaml").write_text(text.replace(f"{right}:", f"{wrong}:"))
        assert main(arguments) == 2
        told = f"`{wrong}` is not an option of the sink `safetensors`. Did you mean `{meant}`?"
        assert told in capsys.readouterr().err
