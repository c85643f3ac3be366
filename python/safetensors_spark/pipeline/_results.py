"""The rows that a run gives back."""

from __future__ import annotations

import weakref
from collections.abc import Callable, Iterable, Iterator
from typing import Any

from safetensors_spark.pipeline._run import Run


class Results(Iterator[Any]):
    """The rows of the last stage, in order, read from where tasks have put them.

    Attributes:
        counters: what functions have counted.
        manifest: what was made: the plan, its stages with rows, bytes, seconds and counters, and each shard.
    """

    def __init__(self, rows: Iterator[Any], manifest: dict[str, Any]) -> None:
        self._rows, self.manifest = rows, manifest
        self._delete: Callable[[], object] = lambda: None
        self.counters: dict[str, int] = manifest.get("counters", {})

    @staticmethod
    def of(run: Run, rows: Iterable[Any]) -> Results:
        results = Results(iter(rows), run.manifest)
        # Also where nobody reads them to the end.
        results._delete = weakref.finalize(results, run.folder.delete_results)
        return results

    @staticmethod
    def none() -> Results:
        """Of a run that did nothing."""
        return Results(iter(()), {})

    def __next__(self) -> Any:
        try:
            return next(self._rows)
        except StopIteration:
            self._delete()
            raise
