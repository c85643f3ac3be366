"""How operators are called, and what deduplicators may return."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import datasets
import numpy as np
import pyarrow as pa  # type: ignore[import-untyped]
import pytest

from factory.conftest import Longer
from safetensors_spark.factory import ContractError, Deduplicator, Keys, Pipeline, Score, Stage, run
from safetensors_spark.factory.operators.expression_filter import ExpressionFilter
from safetensors_spark.pipeline import Backend


class Alone(Score):
    """Raises where it is called by two threads at once, or without rows."""

    type = "alone"

    @property
    def reads(self) -> tuple[str, ...]:
        return ("n",)

    @property
    def writes(self) -> Mapping[str, pa.DataType]:
        return {"least": pa.int64()}

    def score(self, batch: pa.RecordBatch) -> Any:
        if not _turn.acquire(blocking=False):
            raise RuntimeError("two at once")
        time.sleep(0.02)
        least = min(batch["n"].to_pylist())
        _turn.release()
        return {"least": [least] * batch.num_rows}


_turn = threading.Lock()


def test_an_operator_is_called_by_one_thread_at_a_time(tmp_path: Path, sync: Backend) -> None:
    # So many rows of a window that Daft divides them.
    rows = datasets.Dataset(pa.table({"n": np.arange(300_000)}))
    keeps = ExpressionFilter(expression="n >= 100000")
    found = run(Pipeline("p", (Stage("s", [Alone(), keeps]),)), rows, tmp_path, backend=sync)
    assert len(found) == 200_000
    assert found[0]["n"] == 100_000


def test_an_operator_is_not_called_without_rows(tmp_path: Path, sync: Backend) -> None:
    rows = datasets.Dataset.from_dict({"n": [1, 2, 3]})
    found = run(Pipeline("p", (Stage("s", [Longer(limit=9), Alone()]),)), rows, tmp_path, backend=sync)
    assert len(found) == 0
    assert list(found.features) == ["n", "least"]


class Own(Deduplicator):
    """Compares numbers, by keys that a test makes."""

    type = "own"

    found: Callable[[int], Any]

    @property
    def config(self) -> dict[str, Any]:
        return {"type": self.type, "id": self.id}

    @property
    def functions(self) -> tuple[Callable[..., Any], ...]:
        return (self.found,)

    @property
    def reads(self) -> tuple[str, ...]:
        return ("n",)

    def keys(self, batch: pa.RecordBatch) -> Any:
        return self.found(batch.num_rows)


def _keys(rows: int, kind: Any = np.uint64) -> Any:
    return np.zeros((rows, 2), kind)


@pytest.mark.parametrize(
    ("found", "told"),
    [
        (lambda rows: {"n": list(range(rows))}, "a dict, expected Keys"),
        (lambda rows: Keys(np.arange(rows), np.zeros(rows, np.uint64)), r"rows of shape \[4\] and keys of shape \[4\]"),
        (lambda rows: Keys(np.arange(rows - 1), _keys(rows)), r"rows of shape \[3\] and keys of shape \[4, 2\]"),
        (
            lambda rows: Keys(np.arange(rows) + 1, _keys(rows)),
            "keys of row 4: each is of a row of the batch, from 0 to",
        ),
        (
            lambda rows: Keys(np.arange(rows) - 1, _keys(rows)),
            "keys of row -1: each is of a row of the batch, from 0 to",
        ),
        (lambda rows: Keys(np.arange(rows) / 2, _keys(rows)), "rows that are no int64: they are float64"),
        (lambda rows: Keys(np.arange(rows), _keys(rows, float)), "keys that are no uint64: they are float64"),
        (lambda rows: Keys(np.arange(rows), _keys(rows), np.zeros((1, 8))), "1 signature for 4 rows"),
    ],
)
def test_what_deduplicators_may_not_return(found: Any, told: str, tmp_path: Path, sync: Backend) -> None:
    rows = datasets.Dataset.from_dict({"n": [1, 2, 3, 4]})
    with pytest.raises(ContractError, match=f"^same returned {told}"):
        run(Pipeline("p", (Stage("s", [Own(id="same", found=found)]),)), rows, tmp_path, backend=sync)
    assert not (tmp_path / "s" / "manifest.json").exists()


class Similar(Own):
    """Has signatures that it cannot compare."""

    type = "similar"

    def are_similar(self, some: Any, others: Any) -> Any:
        raise ArithmeticError("cannot compare")


def _raises(rows: int) -> Any:
    raise LookupError(f"no keys of {rows}")


def test_a_deduplicator_that_raises_is_named(tmp_path: Path, sync: Backend) -> None:
    rows = datasets.Dataset.from_dict({"n": [1, 2, 3, 4]})
    with pytest.raises(LookupError, match="no keys of 4") as raised:
        run(Pipeline("p", (Stage("s", [Own(id="same", found=_raises)]),)), rows, tmp_path, backend=sync)
    assert raised.value.__notes__[:2] == ["In operator `same`", "In rows 0 to 3 of shard 0 of stage `s`"]
    alike = Similar(id="same", found=lambda rows: Keys(np.arange(rows), _keys(rows), np.zeros((rows, 8))))
    with pytest.raises(ArithmeticError, match="cannot compare") as raised_later:
        run(Pipeline("p", (Stage("t", [alike]),)), rows, tmp_path, backend=sync)
    assert "In operator `same`" in raised_later.value.__notes__
