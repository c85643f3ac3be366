"""Who is told what a run makes."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

import pytest

from pipeline.conftest import MakeBackend
from safetensors_spark.pipeline import Dataset
from safetensors_spark.pipeline._watch import Watch


class Seen(Watch):
    def __init__(self) -> None:
        self.shards: list[tuple[int, list[Any]]] = []
        self.stages: list[tuple[int, list[Any]]] = []
        self.places: set[tuple[int, int]] = set()

    def made(self, stage: int, rows: Iterable[Any]) -> None:
        self.shards.append((stage, list(rows)))
        self.places.add((os.getpid(), threading.get_ident()))

    def ended(self, stage: int, rows: Iterable[Any]) -> None:
        self.stages.append((stage, list(rows)))


def _failing(path: Path) -> Callable[[Iterator[int], Any], Iterator[int]]:
    def run(rows: Iterator[int], _: Any) -> Iterator[int]:
        for row in rows:
            if row == 3 and not path.exists():
                path.touch()
                raise ValueError("once")
            yield row * 10

    return run


def test_each_shard_is_told_once_by_the_run_that_makes_it(tmp_path: Path, backend: MakeBackend) -> None:
    rows = Dataset.from_list([1, 2, 3]).map_shard(_failing(tmp_path / "failed")).reduce(sum)
    by = backend(work_dir=str(tmp_path / "work"))
    first, second = Seen(), Seen()
    with pytest.raises(ValueError, match="once"):
        by.execute(rows, first)
    assert list(by.execute(rows, second)) == [60]
    # A task that runs beside the one that fails may be made, and not be told any more.
    told = [row for stage, rows in [*first.shards, *second.shards] for row in rows if stage == 0]
    assert len(told) == len(set(told))
    assert 30 in told
    assert set(told) <= {10, 20, 30}
    assert [number for number, _ in first.stages] == []
    assert second.stages == [(0, [10, 20, 30]), (1, [60])]
    # Here, and nowhere else.
    assert second.places == {(os.getpid(), threading.get_ident())}
