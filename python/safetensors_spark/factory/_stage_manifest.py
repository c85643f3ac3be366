"""The manifest of a stage: what makes its files a stage. It is written when all of them are there."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from safetensors_spark._errors import PipelineError
from safetensors_spark._files.commit.target import Target, open_target
from safetensors_spark.factory._profiles import PROFILES, profiles_of_run
from safetensors_spark.factory._quotas import reached
from safetensors_spark.factory._stage_task import DATA, DROPPED
from safetensors_spark.factory._timings import write_timings

MANIFEST = "manifest.json"

_TIMES = ("seconds", "operator_seconds")


@dataclass(frozen=True)
class StageCommit:
    """Makes what tasks have made a stage, and deletes the files of the one that it replaces.

    Attributes:
        folder: of the stage.
        head: what the manifest says beside its shards.
        kept: records of shards that an earlier run has made of the same input.
        quotas: of samples, by operator and bucket.
        compared: seconds in which the rows of the whole dataset were compared.
    """

    folder: str
    head: dict[str, Any]
    kept: Sequence[dict[str, Any]] = ()
    quotas: Mapping[str, Mapping[str, float]] = field(default_factory=dict)
    compared: float = 0.0

    def __fingerprint__(self) -> str:
        # Not of the run, nor of a commit that changes no operator: what a broken run has made is not made again.
        return f"{self.folder} {self.head['config_hash']} {[(one['shard'], one['input']) for one in self.kept]}"

    def __call__(self, records: Any) -> dict[str, Any]:
        new = [one for some in records for one in some]
        made = sorted([*self.kept, *new], key=lambda one: int(one["shard"]))
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
            "mixtures": reached(self.quotas, made),
            "outputs": [f"{DATA}/{one['file']}" for record in made for one in record["files"]],
            "profiles": profiles_of_run(self.folder, self.head["run_id"]),
            # Not how long they took: a manifest is a function of the rows and the configuration.
            "shards": [{name: value for name, value in one.items() if name not in _TIMES} for one in made],
        }
        target = open_target(self.folder)
        target.make("")
        if new:
            write_timings(self.folder, self.head["run_id"], new, self.compared)
        _write(target, manifest)
        delete_others(self.folder, manifest)
        return manifest


def read_manifest(folder: str) -> dict[str, Any] | None:
    """The manifest of a stage; None if it is not whole. Raises `PipelineError` for one that is damaged."""
    content = open_target(folder).read(MANIFEST)
    if content is None:
        return None
    try:
        found = json.loads(content)
    except ValueError:
        found = None
    if not isinstance(found, dict) or not isinstance(found.get("shards"), list):
        raise PipelineError(
            f"{folder}/{MANIFEST} is damaged: it is not what a run has written. Run the pipeline with "
            "mode='overwrite' to make the stage again."
        )
    return found


def tell_profiles(folder: str, manifest: dict[str, Any], profiles: Sequence[str]) -> dict[str, Any]:
    """Name other profiles in the manifest of a stage that is whole. Returns the new manifest."""
    changed = manifest | {"profiles": list(profiles)}
    target = open_target(folder)
    _write(target, changed)
    _delete_others(target, [PROFILES], {*profiles})
    return changed


def delete_others(folder: str, manifest: Mapping[str, Any]) -> None:
    """Delete the files of a stage that its manifest does not name, such as those of a run that was broken."""
    named = {f"{DROPPED}/{one['file']}" for record in manifest["shards"] for one in record["dropped"]}
    named |= {*manifest["outputs"], *manifest.get("profiles", ())}
    _delete_others(open_target(folder), (DATA, DROPPED, PROFILES), named)


def _delete_others(target: Target, folders: Sequence[str], named: set[str]) -> None:
    """Delete what the manifest does not name."""
    for folder in folders:
        for file in target.names(folder):
            if f"{folder}/{file}" not in named:
                target.delete(f"{folder}/{file}")


def _write(target: Target, manifest: dict[str, Any]) -> None:
    target.replace(MANIFEST, f"{MANIFEST}.draft", [json.dumps(manifest, indent=1).encode()], lambda: None)
