"""What a report tells of a run."""

from __future__ import annotations

import json
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import datasets
import pyarrow as pa  # type: ignore[import-untyped]
import pytest

from factory.conftest import Longer
from safetensors_spark._commands.cli import main
from safetensors_spark._errors import printable
from safetensors_spark.factory import ConfigError, Pipeline, Score, Stage, report, run
from safetensors_spark.factory.operators.exact_dedup import ExactDedup
from safetensors_spark.factory.operators.expression_filter import ExpressionFilter
from safetensors_spark.factory.operators.language import Language
from safetensors_spark.factory.operators.length import WordCount
from safetensors_spark.pipeline import Backend

EVIL = "<script>alert(1)</script> & \"quotes\" 'too' \u202e"


@pytest.fixture
def out(tmp_path: Path, sync: Backend) -> Path:
    texts = [f"some words of a text with the number {number}, and no more" for number in range(300)]
    rows = datasets.Dataset.from_dict({"n": range(320), "text": [*texts, *texts[:10], *[EVIL] * 10]})
    first = Stage("first", [ExactDedup(), WordCount(), Language(), Longer(limit=20)])
    second = Stage("second", [ExpressionFilter(expression="n < 250")])
    run(Pipeline("told", (first, second)), rows, tmp_path / "out", backend=sync, window_bytes=5000)
    return tmp_path / "out"


def test_a_report_counts_rows_reasons_and_scores(out: Path) -> None:
    found = report(out)
    assert (found.pipeline, [stage.name for stage in found.stages]) == ("told", ["first", "second"])
    first, second = found.stages
    assert (first.rows_in, first.rows_out, second.rows_in, second.rows_out) == (320, 280, 280, 229)
    unique, _, _, longer = first.operators
    assert (unique.id, unique.rows_in, unique.rows_out) == ("exact_dedup_1", 320, 301)
    assert [(rule.reason, rule.rows, len(rule.examples)) for rule in unique.rules] == [("duplicate", 19, 3)]
    assert unique.rules[0].examples[0].startswith("duplicate of row 0 of shard 0 | some words of a text")
    assert (longer.rows_in, longer.rows_out, sum(rule.rows for rule in longer.rules)) == (301, 280, 21)
    words, language, score = first.scores
    assert (words.field, sum(words.rows), words.nulls) == ("word_count", 280, 0)
    assert words.rows[-1] == 279
    assert (language.field, language.labels[0], language.rows[0]) == ("language", "en", 280 - sum(language.rows[1:]))
    assert sum(score.rows) + score.nulls == 280
    assert json.loads(found.to_json())["stages"][1]["operators"][0]["rows_out"] == 229


class _Page(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.tags: set[str] = set()
        self.text = ""

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.add(tag)
        assert not {"src", "href", "onload"} & {name for name, _ in attrs}

    def handle_data(self, data: str) -> None:
        self.text += data


def test_a_page_shows_rows_as_text(tmp_path: Path, sync: Backend, capsys: pytest.CaptureFixture[str]) -> None:
    rows = datasets.Dataset.from_dict({"n": [1, 30, 31], "text": [EVIL, EVIL, EVIL]})
    out = tmp_path / "out"
    run(Pipeline("told", (Stage("s", [ExactDedup(), Language(), Longer(limit=0)]),)), rows, out, backend=sync)
    assert main(["factory", "report", str(out), "--html", str(tmp_path / "report.html")]) == 0
    assert "duplicate" in capsys.readouterr().out
    page = _Page()
    page.feed((tmp_path / "report.html").read_text())
    assert "script" not in page.tags
    assert "svg" in page.tags
    assert printable(EVIL) in page.text
    assert "\u202e" not in page.text
    assert main(["factory", "report", str(out), "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["pipeline"] == "told"


def test_what_is_no_run_is_told(tmp_path: Path, rows: Any, sync: Backend) -> None:
    with pytest.raises(ConfigError, match=r"is not the folder of a run: it has no pipeline.json"):
        report(tmp_path)
    assert main(["factory", "report", str(tmp_path)]) == 2
    run(Pipeline("p", (Stage("none", [Longer(limit=10_000), WordCount()]),)), rows, tmp_path / "a", backend=sync)
    (stage,) = report(tmp_path / "a").stages
    assert (stage.rows_out, stage.scores) == (0, ())


def test_scores_of_any_size_have_a_histogram(tmp_path: Path, sync: Backend) -> None:
    values = [-1e308, 1e308, 0.0, None, float("nan"), float("inf")]
    rows = datasets.Dataset.from_dict({"n": range(6), "value": values})

    class Same(Score):
        type = "same"

        @property
        def reads(self) -> tuple[str, ...]:
            return ("value",)

        @property
        def writes(self) -> dict[str, pa.DataType]:
            return {"score": pa.float64()}

        def score(self, batch: pa.RecordBatch) -> dict[str, Any]:
            return {"score": batch["value"]}

    run(Pipeline("p", (Stage("s", [Same()]),)), rows, tmp_path, backend=sync)
    (histogram,) = report(tmp_path).stages[0].scores
    assert (sum(histogram.rows), histogram.nulls) == (3, 3)
