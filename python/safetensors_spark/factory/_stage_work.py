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
        return fingerprint([self.stage.config, self.code, str(self.schema), sizes])

    @cached_property
    def head(self) -> dict[str, Any]:
        """What the manifest says of the stage."""
        return {
            "pipeline": self.pipeline,
            "stage": self.stage.name,
            "config": self.stage.config,
            "config_hash": self.config,
            "code_hash": self.code,
            "scores": {one.id: list(one.writes) for one in self.stage.operators if isinstance(one, Score | Evaluator)},
            "operator_versions": {one.id: one.version for one in self.stage.operators},
        }

    @cached_property
    def before(self) -> dict[str, Any] | None:
        """The manifest of what is there, if that is to go on."""
        return read_manifest(self.folder) if self.mode == "incremental" else None

    @cached_property
    def changes(self) -> list[str]:
        """What differs between what is there and what would be made, in words."""
        if self.before is None or self.before["config_hash"] == self.config:
            return []
        found = differences(self.before["config"], self.head["config"])
        if self.before["code_hash"] != self.head["code_hash"]:
            found.append("the code of operators, or a file that they read, has changed")
        return found or ["columns or sizes differ"]

    @cached_property
    def records(self) -> list[dict[str, Any] | None]:
        """For each shard the record of what an earlier run has made of it; None for one that is to be made."""
        kept = {} if self.before is None else {record["input"]: record for record in self.before["shards"]}
        return [kept.get(input_id(self.config, shard)) for shard in self.shards]

    @property
    def is_whole(self) -> bool:
        """Whether all is there, and nothing else."""
        return self.before is not None and None not in self.records and len(self.records) == len(self.before["shards"])

    def check(self) -> None:
        """Raise `ChangedStageError` if what is there was made in another way."""
        if self.changes:
            raise ChangedStageError(
                f"stage `{self.stage.name}` in {self.folder} was made in another way: {'; '.join(self.changes)}. "
                "Run it with mode='overwrite' to make it again, or write to another folder."
            )


def outputs_of(folder: str, manifest: dict[str, Any]) -> list[InputShard]:
    """The files of a stage, which are the shards of the next one."""
    return [
        StageFile(f"{folder}/{DATA}/{one['file']}", f"{one['rows']} {one['bytes']}")
        for record in manifest["shards"]
        for one in record["files"]
    ]
