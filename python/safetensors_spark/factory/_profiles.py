"""What hooks have written about a stage: told by the driver before the task that writes the manifest begins."""

from __future__ import annotations

import json
from collections.abc import Sequence

from safetensors_spark._files.commit.target import open_target

PROFILES = "profiles"

# Beside what a broken run has finished.
_TOLD = "_work/profiles.json"


def tell_run(folder: str, run_id: str, profiles: Sequence[str]) -> None:
    """Let the manifest that a run is going to write name these files of a stage's folder."""
    content = json.dumps({"run_id": run_id, "profiles": list(profiles)}).encode()
    open_target(folder).replace(_TOLD, f"{_TOLD}.draft", [content], lambda: None)


def profiles_of_run(folder: str, run_id: str) -> list[str]:
    """What was told of this run."""
    content = open_target(folder).read(_TOLD)
    if content is None:
        return []
    told = json.loads(content)
    # Another run has told it, which was broken.
    return list(told["profiles"]) if told["run_id"] == run_id else []
