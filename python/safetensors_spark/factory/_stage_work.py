"""What is to be done to make a stage, and what of it an earlier run has done."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal

import pyarrow as pa  # type: ignore[import-untyped]

from safetensors_spark.factory._errors import ChangedStageError
from safetensors_spark.factory._operator import Evaluator, Score
from safetensors_spark.factory._pipeline import Stage, differences
from safetensors_spark.factory._source import InputShard, StageFile
from safetensors_spark.factory._stage_manifest import read_manifest
from safetensors_spark.factory._stage_task import DATA, input_id
from safetensors_spark.pipeline._fingerprint import fingerprint

Mode = Literal["incremental", "overwrite"]


@dataclass(frozen=True)
class Sizes:
    """Bytes of rows of a window, and of Arrow of a file."""

    window: int
    file: int


@dataclass(frozen=True)
class StageWork:
    """A stage on its input.

    Attributes:
        pipeline: its name.
        code: the fingerprint of the stage's code, which takes time where operators read large files.
        folder: of the stage.
        schema: of the rows that it leaves.
    """

    pipeline: str
    stage: Stage
    code: str
    folder: str
    shards: Sequence[InputShard]
    schema: pa.Schema
    sizes: Sizes
    mode: Mode

    @cached_property
    def config(self) -> str:
        """A fingerprint of what decides the output beside the rows."""
        sizes = (self.sizes.window, self.sizes.file)
        stage = self.stage
        return fingerprint([stage.config, stage.on_error, stage.provenance, self.code, str(self.schema), sizes])

    @cached_property
    def generation(self) -> int:
        """Tells files of this run from those of the stage that it replaces, where the configuration is the same."""
        there = self.before if self.mode == "incremental" else read_manifest(self.folder)
        if there is None or there["config_hash"] != self.config:
            return 0
        known = int(there.get("generation", 0))
        return known if self.mode == "incremental" else 1 - known

    @cached_property
    def naming(self) -> str:
        """What of the stage is in the names of its files."""
        return f"{self.config} {self.generation}" if self.generation else self.config

    @cached_property
    def head(self) -> dict[str, Any]:
        """What the manifest says of the stage."""
        return {
            "pipeline": self.pipeline,
            "stage": self.stage.name,
            "config": self.stage.config,
            "on_error": self.stage.on_error,
            "provenance": self.stage.provenance,
            "config_hash": self.config,
            "code_hash": self.code,
            "generation": self.generation,
            "scores": {one.id: list(one.writes) for one in self.stage.operators if isinstance(one, Score | Evaluator)},
            "operator_versions": {one.id: one.version for one in self.stage.operators},
        }

    @cached_property
    def before(self) -> dict[str, Any] | None:
        """The manifest of what is there, if that is to continue."""
        return read_manifest(self.folder) if self.mode == "incremental" else None

    @cached_property
    def changes(self) -> list[str]:
        """The differences between the existing stage and this one, as text."""
        if self.before is None or self.before["config_hash"] == self.config:
            return []
        found = differences(self.before["config"], self.head["config"])
        for name in ("on_error", "provenance"):
            if (now := self.head[name]) != (was := self.before.get(name)):
                found.append(f"`{name}` is {now!r}, and was {was!r}")
        if self.before["code_hash"] != self.head["code_hash"]:
            found.append("the code of operators, or a file that they read, has changed")
        return found or ["columns or sizes differ"]

    @cached_property
    def records(self) -> list[dict[str, Any] | None]:
        """For each shard the record of an earlier run; None for a shard to compute."""
        kept = {} if self.before is None else {record["shard"]: record for record in self.before["shards"]}
        # Names of files have the number of the shard, so a shard in another place is made again.
        found = [kept.get(number) for number in range(len(self.shards))]
        return [
            one if one is not None and one["input"] == input_id(self.naming, shard) else None
            for one, shard in zip(found, self.shards, strict=True)
        ]

    @property
    def is_whole(self) -> bool:
        """Whether all shards exist, and no others."""
        return self.before is not None and None not in self.records and len(self.records) == len(self.before["shards"])

    def check(self) -> None:
        """Raise `ChangedStageError` if the existing stage was made with another configuration."""
        if self.changes:
            raise ChangedStageError(
                f"stage `{self.stage.name}` in {self.folder} was made with another configuration: "
                f"{'; '.join(self.changes)}. Run it with mode='overwrite' to compute it again, or write to another "
                "folder."
            )


def outputs_of(folder: str, manifest: dict[str, Any], schema: pa.Schema) -> list[InputShard]:
    """The files of a stage, which are the shards of the next one."""
    return [
        StageFile(
            f"{folder}/{DATA}/{one['file']}",
            # The name ends with what the rows were made of and how, which their number and size alone do not tell.
            f"{one['file'].split('-', 2)[2]} {one['rows']} {one['bytes']}",
            schema,
        )
        for record in manifest["shards"]
        for one in record["files"]
    ]
