"""Rows that are dropped: those for which an operator raises, and what is kept of them."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import datasets
import pyarrow as pa  # type: ignore[import-untyped]
import pyarrow.parquet as pq  # type: ignore[import-untyped]
import pytest

from factory.conftest import Longer, Upper
from safetensors_spark.factory import (
    ChangedStageError,
    ConfigError,
    Evaluator,
    Filter,
    Generator,
    NewRows,
    Operator,
    Pipeline,
    Refiner,
    Score,
    Stage,
    load_pipeline,
    report,
    run,
)
from safetensors_spark.factory.operators.exact_dedup import ExactDedup
from safetensors_spark.factory.operators.length import WordCount
from safetensors_spark.pipeline import Backend, create_backend

SIZES: dict[str, Any] = {"shard_bytes": 16_000, "window_bytes": 6000, "file_bytes": 8000}
BAD = {0, 1, 17, 500, 501, 502, 999}


def _checked(batch: pa.RecordBatch) -> list[int]:
    """Numbers, of which some are the fault of their rows."""
    found: list[int] = batch["n"].to_pylist()
    for n in found:
        if n in BAD:
            raise ValueError(f"no {n}, please: é")
    return found


class _Reads:
    @property
    def reads(self) -> tuple[str, ...]:
        return ("n", "text")


class Scored(_Reads, Score):
    type = "scored"

    @property
    def writes(self) -> Mapping[str, pa.DataType]:
        return {"double": pa.int64()}

    def score(self, batch: pa.RecordBatch) -> Any:
        return {"double": [2 * n for n in _checked(batch)]}


class Judged(_Reads, Evaluator):
    type = "judged"

    @property
    def writes(self) -> Mapping[str, pa.DataType]:
        return {"eval.good": pa.bool_()}

    def evaluate(self, batch: pa.RecordBatch) -> Any:
        return {"eval.good": [n > 5 for n in _checked(batch)]}


class Sieved(_Reads, Filter):
    type = "sieved"

    def reasons(self, batch: pa.RecordBatch) -> Any:
        return ["a third" if n % 3 == 0 else None for n in _checked(batch)]


class Refined(_Reads, Refiner):
    type = "refined"

    @property
    def writes(self) -> Mapping[str, pa.DataType]:
        return {"text": pa.string()}

    def refine(self, batch: pa.RecordBatch) -> Any:
        return {"text": [f"<{n}>" for n in _checked(batch)]}


class Generated(_Reads, Generator):
    type = "generated"

    @property
    def writes(self) -> Mapping[str, pa.DataType]:
        return {"list": pa.list_(pa.int64())}

    def generate(self, batch: pa.RecordBatch) -> Any:
        return {"list": [[n] for n in _checked(batch)]}


class Multiplied(Generated):
    type = "multiplied"

    def generate(self, batch: pa.RecordBatch) -> Any:
        numbers = _checked(batch)
        # The last row first.
        rows = [row for row, n in reversed(list(enumerate(numbers))) for _ in range(n % 3)]
        return NewRows(rows, {"list": [[numbers[row]] for row in rows]})


ONES = [Scored(), Judged(), Sieved(), Refined(), Generated(), Multiplied()]


def _dropped(stage: Path) -> list[dict[str, Any]]:
    return [row for path in sorted((stage / "dropped").iterdir()) for row in pq.read_table(path).to_pylist()]


def _files(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*.parquet")}


@pytest.mark.parametrize("operator", ONES, ids=lambda one: one.type)
def test_rows_for_which_an_operator_raises_are_dropped(
    operator: Operator, rows: Any, tmp_path: Path, sync: Backend
) -> None:
    stage = Stage("s", [WordCount(), operator, Longer(limit=990, field="word_count")], on_error="quarantine")
    run(Pipeline("p", (stage,)), rows, tmp_path / "bad", backend=sync, **SIZES)
    lost = [row for row in _dropped(tmp_path / "bad" / "s") if row["__fdf__/dropped_by"] == f"{operator.type}_1"]
    raised = [row for row in lost if row["__fdf__/dropped_because"].startswith("raised ")]
    assert [(row["n"], row["text"], row["word_count"]) for row in raised] == [(n, f"a{n} b{n}", 2) for n in sorted(BAD)]
    assert raised[2]["__fdf__/dropped_because"] == "raised ValueError: no 17, please: é"
    assert not any(row.get("__fdf__/refined_by") or row.get("__fdf__/generated_by") for row in raised)

    # The others are those of a dataset without them.
    good = rows.select([n for n in range(1000) if n not in BAD])
    run(Pipeline("p", (stage,)), good, tmp_path / "good", backend=sync, **SIZES)
    some = [{**row} for row in _dropped(tmp_path / "bad" / "s") if row not in raised]
    assert some == _dropped(tmp_path / "good" / "s")


@pytest.mark.parametrize("operator", ONES, ids=lambda one: one.type)
def test_what_is_left_is_right(operator: Operator, rows: Any, tmp_path: Path, sync: Backend) -> None:
    stage = Stage("s", [operator, Upper()], on_error="quarantine")
    found = run(Pipeline("p", (stage,)), rows, tmp_path / "bad", backend=sync, **SIZES)
    good = rows.select([n for n in range(1000) if n not in BAD])
    expected = run(Pipeline("p", (stage,)), good, tmp_path / "good", backend=sync, **SIZES)
    assert found[:] == expected[:]
    manifest = json.loads((tmp_path / "bad" / "s" / "manifest.json").read_text())
    thirds = sum(n % 3 == 0 for n in range(1000) if n not in BAD) if operator.type == "sieved" else 0
    assert manifest["operators"][f"{operator.type}_1"] == {"rows": 1000, "dropped": len(BAD) + thirds}


@pytest.mark.parametrize("operator", ONES, ids=lambda one: one.type)
def test_all_rows_may_fail(operator: Operator, tmp_path: Path, sync: Backend) -> None:
    rows = datasets.Dataset.from_dict({"n": [17] * 50, "text": ["a"] * 50})
    found = run(Pipeline("p", (Stage("s", [operator], on_error="quarantine"),)), rows, tmp_path, backend=sync)
    assert len(found) == 0
    assert len(_dropped(tmp_path / "s")) == 50


def test_files_are_the_same_for_any_number_of_workers(rows: Any, tmp_path: Path, sync: Backend) -> None:
    pipeline = Pipeline(
        "p", (Stage("s", ONES[:4], on_error="quarantine"), Stage("t", [Multiplied()], None, "quarantine"))
    )
    run(pipeline, rows, tmp_path / "one", backend=sync, **SIZES)
    run(pipeline, rows, tmp_path / "four", backend=create_backend("processes", 4, progress=False), **SIZES)
    assert _files(tmp_path / "one") == _files(tmp_path / "four")


def test_a_row_that_is_dropped_keeps_what_it_had(tmp_path: Path, sync: Backend) -> None:
    rows = datasets.Dataset.from_dict({"n": list(range(6)), "text": list("abcdef")})
    stage = Stage("s", [Upper(), Longer(limit=2, id="l"), Refined(), Upper(id="again")])
    found = run(Pipeline("p", (stage,)), rows, tmp_path, backend=sync)
    assert found["text"][:] == ["<3>", "<4>", "<5>"]
    assert found["__fdf__/refined_by"][0] == ["upper_1", "refined_1", "again"]
    lost = _dropped(tmp_path / "s")
    assert [row["text"] for row in lost] == ["A", "B", "C"]
    assert [row["__fdf__/refined_by"] for row in lost] == [["upper_1"]] * 3


class Broken(Scored):
    type = "broken"
    error: str = "contract"

    def score(self, batch: pa.RecordBatch) -> Any:
        if self.error == "contract":
            return {"other": [1] * batch.num_rows}
        raise ConnectionResetError("gone") if self.error == "connection" else MemoryError("none left")


@pytest.mark.parametrize("error", ["contract", "connection", "memory"])
def test_what_no_row_is_to_blame_for_is_raised(error: str, rows: Any, tmp_path: Path, sync: Backend) -> None:
    stage = Stage("s", [Broken(error=error)], on_error="quarantine")
    with pytest.raises(Exception, match=r"broken_1|gone|none left"):
        run(Pipeline("p", (stage,)), rows, tmp_path, backend=sync)
    assert not (tmp_path / "s" / "manifest.json").exists()


class Astray(Multiplied):
    type = "astray"
    parent: int = 0

    def generate(self, batch: pa.RecordBatch) -> Any:
        return NewRows([self.parent], {"list": [[1]]})


@pytest.mark.parametrize("parent", [-1, 1000])
def test_parents_are_rows_of_the_batch(parent: int, rows: Any, tmp_path: Path, sync: Backend) -> None:
    with pytest.raises(Exception, match="astray_1 returned parents that are no rows"):
        run(Pipeline("p", (Stage("s", [Astray(parent=parent)]),)), rows, tmp_path, backend=sync)


def test_another_answer_to_errors_is_another_stage(rows: Any, tmp_path: Path, sync: Backend) -> None:
    run(Pipeline("p", (Stage("s", [WordCount()]),)), rows, tmp_path, backend=sync)
    with pytest.raises(ChangedStageError, match="`on_error` is 'quarantine', and was 'raise'"):
        run(Pipeline("p", (Stage("s", [WordCount()], on_error="quarantine"),)), rows, tmp_path, backend=sync)


def test_a_stage_says_it_in_yaml(tmp_path: Path) -> None:
    text = "name: p\nstages:\n  - name: s\n    on_error: {}\n    operators: [{{type: word_count}}]\n"
    file = tmp_path / "p.yaml"
    file.write_text(text.format("quarantine"))
    assert load_pipeline(file).stages[0].on_error == "quarantine"
    file.write_text(text.format("quarantin"))
    with pytest.raises(ConfigError, match="line 4"):
        load_pipeline(file)
    with pytest.raises(ConfigError, match="expected 'raise' or 'quarantine'"):
        Stage("s", [WordCount()], on_error="ignore")  # type: ignore[arg-type]


def test_a_report_tells_which_errors_there_were(rows: Any, tmp_path: Path, sync: Backend) -> None:
    stage = Stage("s", [Scored()], on_error="quarantine")
    run(Pipeline("p", (stage,)), rows, tmp_path, backend=sync, **SIZES)
    (operator,) = report(tmp_path).stages[0].operators
    assert [(rule.reason, rule.rows) for rule in operator.rules] == [("raised ValueError", len(BAD))]


def test_a_deduplicator_may_begin_such_a_stage(tmp_path: Path, sync: Backend) -> None:
    rows = datasets.Dataset.from_dict({"n": [4, 17, 2, 2], "text": ["a", "b", "c", "c"]})
    stage = Stage("s", [ExactDedup(), Scored()], on_error="quarantine")
    found = run(Pipeline("p", (stage,)), rows, tmp_path, backend=sync)
    assert found["n"][:] == [4, 2]
