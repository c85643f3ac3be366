"""The manifest of a stage: what makes its files a stage. It is written when all of them are there."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from safetensors_spark._files.commit.target import open_target
from safetensors_spark.factory._stage_task import DATA, DROPPED

MANIFEST = "manifest.json"


@dataclass(frozen=True)
class StageCommit:
    """Makes what tasks have made a stage, and deletes the files of the one that it replaces.

    Attributes:
        folder: of the stage.
        head: what the manifest says beside its shards.
        kept: records of shards that an earlier run has made of the same input.
    """

    folder: str
    head: dict[str, Any]
    kept: Sequence[dict[str, Any]] = ()

    def __fingerprint__(self) -> str:
        # Not of the run, nor of a commit that changes no operator: what a broken run has made is not made again.
        return f"{self.folder} {self.head['config_hash']} {[(one['shard'], one['input']) for one in self.kept]}"

    def __call__(self, records: Any) -> dict[str, Any]:
        made = sorted([*self.kept, *(one for some in records for one in some)], key=lambda one: int(one["shard"]))
        operators: dict[str, dict[str, int]] = {}
        for record in made:
            for name, counts in record["operators"].items():
                total = operators.setdefault(name, {"rows": 0, "dropped": 0})
                for what, count in counts.items():
                    total[what] += count
        manifest = self.head | {
            "input_rows": sum(record["input_rows"] for record in made),
            "output_rows": sum(record["output_rows"] for record in made),
            "operators": operators,
            "outputs": [f"{DATA}/{one['file']}" for record in made for one in record["files"]],
            "shards": [{name: value for name, value in one.items() if name != "seconds"} for one in made],
        }
        target = open_target(self.folder)
        target.make("")
        target.replace(MANIFEST, f"{MANIFEST}.draft", [json.dumps(manifest, indent=1).encode()], lambda: None)
        for folder, name in ((DATA, "files"), (DROPPED, "dropped")):
            named = {one["file"] for record in made for one in record[name]}
            for file in target.names(folder):
                if file not in named:
                    target.delete(f"{folder}/{file}")
        return manifest


def read_manifest(folder: str) -> dict[str, Any] | None:
    """The manifest of a stage; None if it is not whole."""
    content = open_target(folder).read(MANIFEST)
    return None if content is None else json.loads(content)
