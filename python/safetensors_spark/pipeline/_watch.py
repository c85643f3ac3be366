"""Who is told what a run makes."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any


class Watch:
    """Is told in the process that runs the pipeline, between tasks: while it works, no further task begins.

    A shuffle that a cluster does itself is not told. What a method raises ends the run.
    """

    def made(self, stage: int, rows: Iterable[Any]) -> None:
        """This run has made a shard of a stage, which has become these rows."""

    def ended(self, stage: int, rows: Iterable[Any]) -> None:
        """All shards of a stage are there, with these rows, also those that earlier runs have made."""
