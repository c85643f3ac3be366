"""What a report tells of a run."""

from __future__ import annotations

import json
import re
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import datasets
import pyarrow as pa  # type: ignore[import-untyped]
import pyarrow.parquet as pq  # type: ignore[import-untyped]
import pytest

from factory.conftest import Longer
from safetensors_spark._commands.cli import main
from safetensors_spark._errors import PipelineError, printable
from safetensors_spark.factory import ConfigError, Filter, Pipeline, Score, Stage, plan, report, run
from safetensors_spark.factory._frequent import Frequent
from safetensors_spark.factory.operators.exact_dedup import ExactDedup
from safetensors_spark.factory.operators.expression_filter import ExpressionFilter
from safetensors_spark.factory.operators.language import Language
from safetensors_spark.factory.operators.length import TextLength, WordCount
from safetensors_spark.factory.operators.quota_sample import Bucket, QuotaSample
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
    assert (longer.rows_in, longer.rows_out) == (301, 280)
    assert [(rule.reason, rule.rows, rule.examples[0][:7]) for rule in longer.rules] == [("# <= 20", 21, "0 <= 20")]
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
    (tmp_path / "file").touch()
    with pytest.raises(ConfigError, match=r"file is not the folder of a run"):
        report(tmp_path / "file")
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


def test_seconds_of_operators_are_told(out: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    first = report(out).stages[0]
    assert first.timing is not None
    assert (first.timing.shards, first.timing.of) == (1, 1)
    assert first.timing.compare_seconds > 0
    for one in first.operators:
        assert one.seconds is not None
        assert one.seconds > 0
        assert one.rows_per_second == pytest.approx(one.rows_in / one.seconds)
    # Rows are compared before there are tasks.
    assert first.operators[0].seconds is not None
    assert first.operators[0].seconds > first.timing.compare_seconds
    assert sum(one.seconds or 0 for one in first.operators) + first.timing.other_seconds == pytest.approx(
        first.timing.seconds + first.timing.compare_seconds
    )
    assert main(["factory", "report", str(out), "--html", str(tmp_path / "page.html")]) == 0
    assert "first: Seconds of all shards, of all workers together: " in capsys.readouterr().out
    page = _Page()
    page.feed((tmp_path / "page.html").read_text())
    assert "read, write" in page.text
    # No file of a stage whose bytes are to be equal has them.
    assert "seconds" not in (out / "first" / "manifest.json").read_text()


def test_labels_of_bars_have_room(tmp_path: Path, sync: Backend) -> None:
    ids = ["perceptual_hash_dedup_1", *(f"a_rather_long_name_of_an_operator_{number}" for number in (1, 2))]
    stage = Stage("s", [WordCount(id=name, output=f"field {number}") for number, name in enumerate(ids)])
    run(Pipeline("p", (stage,)), datasets.Dataset.from_dict({"text": ["a b"]}), tmp_path, backend=sync)
    plot = report(tmp_path).to_html().partition("<b>seconds</b>")[2].partition("</svg>")[0]
    labels = re.findall(r'<text x="(\d+)" y="\d+" text-anchor="end">([^<]*)<', plot)
    assert [text for _, text in labels] == [
        ids[0], "a_rather_long_nam…operator_1", "a_rather_long_nam…operator_2", "read, write",
    ]  # fmt: skip
    # Letters have about half the size of the type, which is 9.
    assert all(int(x) >= 5.4 * len(text) for x, text in labels)


@pytest.mark.parametrize("content", [None, b"{", b"[]", b'{"shards": 3}', b'{"shards": [{"input": "of another run"}]}'])
def test_a_run_without_timings_has_a_report(content: bytes | None, out: Path) -> None:
    for stage in ("first", "second"):
        file = out / stage / "timings.json"
        file.unlink() if content is None else file.write_bytes(content)
    assert [stage.timing for stage in report(out).stages] == [None, None]
    assert {one.seconds for stage in report(out).stages for one in stage.operators} == {None}
    assert main(["factory", "report", str(out)]) == 0
    assert "<p>Seconds" not in report(out).to_html()


def test_seconds_are_those_of_the_last_run_that_made_shards(rows: Any, tmp_path: Path, sync: Backend) -> None:
    for number in range(3):
        rows.select(range(number * 300, number * 300 + 300)).to_parquet(tmp_path / f"{number}.parquet")

    def timing(count: int) -> Any:
        files = [str(tmp_path / f"{number}.parquet") for number in range(count)]
        stream = datasets.load_dataset("parquet", data_files=files, split="train", streaming=True)
        run(Pipeline("p", (Stage("s", [WordCount()]),)), stream, tmp_path / "out", backend=sync)
        return report(tmp_path / "out").stages[0].timing

    before = timing(2)
    assert (before.shards, before.of) == (2, 2)
    assert timing(2) == before
    after = timing(3)
    assert (after.shards, after.of) == (1, 3)
    # Of shards that are no longer there nothing is told.
    assert timing(1) is None


def test_buckets_of_samples_are_told(tmp_path: Path, sync: Backend, capsys: pytest.CaptureFixture[str]) -> None:
    rows = datasets.Dataset.from_dict({"id": [f"row {n}" for n in range(4000)], "score": [n % 4 for n in range(4000)]})
    buckets = (Bucket(name="good", where="score = 3"), Bucket(name="fair", where="score >= 1", keep=0.25))
    operators = [ExpressionFilter(expression="score < 9"), QuotaSample(id="q", buckets=buckets, key="id")]
    recipe = Pipeline("p", (Stage("s", operators),))
    found = run(recipe, rows, tmp_path / "a", backend=sync, shard_bytes=30_000)
    fair = sum(score in (1, 2) for score in found["score"])
    expected = {
        "good": {"rows": 1000, "kept": 1000, "keep": 1.0, "kept_share": 1.0, "ratio_wanted": 0.666667},
        "fair": {"rows": 2000, "kept": fair, "keep": 0.25, "kept_share": fair / 2000, "ratio_wanted": 0.333333},
        "no bucket": {"rows": 1000, "kept": 0, "keep": 0.0, "kept_share": 0.0, "ratio_wanted": 0.0},
    }
    manifest = json.loads((tmp_path / "a" / "s" / "manifest.json").read_text())
    assert len(manifest["shards"]) > 2
    for name, values in expected.items():
        ratio = round(float(values["kept"]) / (1000 + fair), 6)
        assert manifest["mixtures"]["q"][name] == pytest.approx(values | {"ratio": ratio})
    run(recipe, rows, tmp_path / "b", backend=sync, shard_bytes=90_000)
    assert json.loads((tmp_path / "b" / "s" / "manifest.json").read_text())["mixtures"] == manifest["mixtures"]
    assert [(one.name, one.kept) for one in report(tmp_path / "a").stages[0].buckets] == [
        ("good", 1000),
        ("fair", fair),
        ("no bucket", 0),
    ]
    assert main(["factory", "report", str(tmp_path / "a")]) == 0
    lines = [line.split() for line in capsys.readouterr().out.splitlines()]
    assert ["q", "good", "1,000", "1,000", "1", "1", "0.6667", f"{1000 / (1000 + fair):.4g}"] in lines
    assert "no bucket" in report(tmp_path / "a").to_html()


class Tells(Filter):
    """Drops rows with their texts as reasons."""

    type = "tells"

    @property
    def reads(self) -> tuple[str, ...]:
        return ("text",)

    def reasons(self, batch: pa.RecordBatch) -> Any:
        return batch["text"]


def test_reasons_that_differ_in_numbers_are_one_rule(tmp_path: Path, sync: Backend) -> None:
    texts = [
        *(f"{n} words, fewer than 50: {n}" for n in range(-3, 40)),
        "sha1 of 7",
        "sha1 of 7",
        "v1.2.3 is old",
        None,
    ]
    texts += ["1,234 of 1e+06", "0.5 of 3"]
    rows = datasets.Dataset.from_dict({"text": texts})
    run(Pipeline("p", (Stage("s", [Tells()]),)), rows, tmp_path, backend=sync)
    (operator,) = report(tmp_path).stages[0].operators
    assert [(rule.reason, rule.rows) for rule in operator.rules] == [
        ("# words, fewer than 50", 43),
        ("# of #", 2),
        ("sha1 of 7", 2),
        ("v1.2.3 is old", 1),
    ]


def test_rare_texts_and_reasons_are_others(tmp_path: Path, sync: Backend) -> None:
    letters = "abcdefghijklmnopqrstuvwxyz"
    rare = [f"{a}{b}{c}" for a in letters for b in letters for c in letters[:7]]
    texts = [one for n, text in enumerate(rare) for one in ([text, "often", "too"] if n % 2 else [text, "often"])]
    rows = datasets.Dataset.from_dict({"text": texts})

    class Same(Score):
        type = "same"

        @property
        def reads(self) -> tuple[str, ...]:
            return ("text",)

        @property
        def writes(self) -> dict[str, pa.DataType]:
            return {"label": pa.string()}

        def score(self, batch: pa.RecordBatch) -> dict[str, Any]:
            return {"label": batch["text"]}

    stages = (Stage("s", [Same()]), Stage("t", [Tells()]))
    run(Pipeline("p", stages), rows, tmp_path, backend=sync, window_bytes=20_000)
    first, second = report(tmp_path).stages
    (histogram,), (operator,) = first.scores, second.operators
    assert (histogram.labels[:2], histogram.rows[:2]) == (("often", "too"), (len(rare), len(rare) // 2))
    assert (len(histogram.rows), sum(histogram.rows) + histogram.others) == (20, len(texts))
    assert [(rule.reason, rule.rows) for rule in operator.rules[:2]] == [("often", len(rare)), ("too", len(rare) // 2)]
    assert (len(operator.rules), sum(rule.rows for rule in operator.rules) + operator.other_rows) == (20, len(texts))
    assert "others" in report(tmp_path).to_html()


def test_frequent_values_stay() -> None:
    found = Frequent(10)
    for number in range(1000):
        found.add({number: 1, "often": 1})
        assert len(found.counts) <= 20
    assert (found.total, found.is_exact, found.top(1)[0][0]) == (2000, False, "often")
    assert 2000 - 2000 / 10 - 1000 <= found.counts["often"] <= 1000


@pytest.mark.parametrize(
    ("name", "content", "told"),
    [
        (
            "pipeline.json",
            b"{",
            "pipeline.json is damaged: it does not name a pipeline and its stages. Run the pipeline again",
        ),
        ("pipeline.json", b"[]", "pipeline.json is damaged"),
        ("first/manifest.json", b"{", "first/manifest.json is damaged: it is not what a run has written. Run the"),
        ("first/manifest.json", b'{"shards": [{}]}', "first/manifest.json is damaged, or not what a run has written"),
        ("first/dropped/*", None, ".parquet is missing, which the stage's manifest names. Run the pipeline with"),
        ("first/data/*", b"PAR1 no", ".parquet is damaged, or not what a run has written (ArrowInvalid: Parquet"),
        ("first/dropped/*", b"", ".parquet is damaged, or not what a run has written (ArrowInvalid: Parquet"),
    ],
)
def test_what_is_missing_or_damaged_is_a_sentence(
    name: str, content: bytes | None, told: str, out: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (file, *_) = out.glob(name)
    file.unlink() if content is None else file.write_bytes(content)
    with pytest.raises(PipelineError) as caught:
        report(out)
    assert told in str(caught.value)
    assert str(file) in str(caught.value)
    assert "\n" not in str(caught.value)
    assert main(["factory", "report", str(out)]) == 2
    error = capsys.readouterr().err
    assert told in error
    assert "Traceback" not in error


def test_a_file_that_lacks_a_column_is_told(out: Path) -> None:
    (file,) = (out / "first" / "data").iterdir()
    pq.write_table(pq.read_table(file).drop_columns(["language_score"]), file)
    with pytest.raises(PipelineError, match=r"is damaged, or not what a run has written .*language_score"):
        report(out)
    with file.open("r+b") as content:
        content.truncate(200)
    with pytest.raises(PipelineError, match=r"\.parquet is damaged"):
        report(out)


def test_notebooks_show_reports_and_plans(rows: Any, tmp_path: Path, sync: Backend) -> None:
    recipe = Pipeline("p", (Stage("s", [TextLength(id="<b>")]),))
    run(recipe, rows, tmp_path, backend=sync)
    found = report(tmp_path)
    assert repr(found) == "<Report of p: 1 stage, 1,000 rows in, 1,000 out>"
    assert found._repr_html_().startswith('<iframe srcdoc="&lt;!doctype html')
    shown = plan(recipe, rows, tmp_path, backend=sync)
    assert repr(shown) == str(shown)
    assert "pipeline p: 1 stage" in shown._repr_html_()
