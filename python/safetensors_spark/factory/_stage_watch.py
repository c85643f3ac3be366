"""Tells hooks of a stage, as its tasks end."""

from __future__ import annotations

import logging
import time
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from safetensors_spark.factory._hook import PartitionEnd, StageEnd, StageFiles, StageStart
from safetensors_spark.factory._hook_calls import HookCalls
from safetensors_spark.factory._profiles import tell_run
from safetensors_spark.factory._stage_manifest import tell_profiles
from safetensors_spark.factory._stage_task import DATA, DROPPED
from safetensors_spark.pipeline._watch import Watch

_LOGGER = logging.getLogger("safetensors_spark")

_Record = Mapping[str, Any]


class StageWatch(Watch):
    """Of one stage in one run."""

    def __init__(self, calls: HookCalls, pipeline: str, stage: str, run_id: str, folder: str) -> None:
        self._calls, self._names, self._folder = calls, (pipeline, stage, run_id), folder
        self._kept: Sequence[_Record] = ()
        self._made, self._started = 0, time.monotonic()

    def of(self, kept: Sequence[_Record]) -> StageWatch | None:
        """What the run tells; nothing if nobody listens.

        Args:
            kept: records of shards that an earlier run has made.
        """
        self._kept = kept
        return self if self._calls else None

    def start(self, shards: int) -> None:
        self._calls.stage_start(StageStart(*self._names, self._folder, shards))

    def made(self, stage: int, rows: Iterable[Any]) -> None:
        # The one behind writes the manifest. A shard has become a list of its records.
        for record in (one for some in rows for one in some) if stage == 0 else ():
            self._made += 1
            self._calls.partition_end(
                PartitionEnd(
                    *self._names,
                    shard=record["shard"],
                    rows_in=record["input_rows"],
                    rows_out=record["output_rows"],
                    paths=self._paths([record]),
                    dropped_paths=tuple(f"{self._folder}/{DROPPED}/{one['file']}" for one in record["dropped"]),
                    seconds=record["seconds"],
                )
            )

    def ended(self, stage: int, rows: Iterable[Any]) -> None:
        if stage == 0:
            new = (one for some in rows for one in some)
            records = sorted([*self._kept, *new], key=lambda one: int(one["shard"]))
            if profiles := self._profiles(records):
                try:
                    tell_run(self._folder, self._names[2], profiles)
                except OSError as error:
                    _LOGGER.warning("Profiles of %s are not named in its manifest: %s", self._folder, error)

    def whole(self, manifest: dict[str, Any]) -> dict[str, Any]:
        """The manifest of a stage that was whole before, with profiles that hooks have made of it now."""
        profiles = self._profiles(manifest["shards"])
        if not profiles or profiles == manifest.get("profiles"):
            return manifest
        try:
            return tell_profiles(self._folder, manifest, profiles)
        except OSError as error:
            _LOGGER.warning("Profiles of %s are not named in its manifest: %s", self._folder, error)
            return manifest

    def end(self, manifest: dict[str, Any]) -> None:
        seconds = time.monotonic() - self._started
        self._calls.stage_end(StageEnd(*self._names, self._folder, self._made, seconds, manifest))

    def _profiles(self, records: Sequence[_Record]) -> list[str]:
        return self._calls.profiles(StageFiles(*self._names, self._folder, self._paths(records)))

    def _paths(self, records: Iterable[_Record]) -> tuple[str, ...]:
        return tuple(f"{self._folder}/{DATA}/{one['file']}" for record in records for one in record["files"])
