"""How long the last run took that made shards of a stage. It is not part of what the stage is."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from safetensors_spark._files.commit.target import open_target

TIMINGS = "timings.json"


def write_timings(folder: str, run_id: str, records: Sequence[Mapping[str, Any]], compared: float) -> None:
    """Write the seconds of shards that were made, and of their operators.

    Args:
        folder: of the stage.
        records: of the shards, as their tasks return them.
        compared: seconds in which rows of the whole dataset were compared, for a stage that begins with that.
    """
    operators: dict[str, dict[str, float]] = {}
    for record in records:
        for name, seconds in record.get("operator_seconds", {}).items():
            total = operators.setdefault(name, {"rows": 0, "seconds": 0.0})
            total["rows"] += record["operators"][name]["rows"]
            total["seconds"] += seconds
    timings = {
        "run_id": run_id,
        "seconds": sum(record["seconds"] for record in records),
        "compare_seconds": compared,
        "operators": operators,
        "shards": [
            {"shard": one["shard"], "input": one["input"], "seconds": one["seconds"]}
            for one in sorted(records, key=lambda one: int(one["shard"]))
        ],
    }
    target = open_target(folder)
    target.replace(TIMINGS, f"{TIMINGS}.draft", [json.dumps(timings, indent=1).encode()], lambda: None)


def read_timings(folder: str) -> dict[str, Any] | None:
    """What `write_timings` wrote; None if there is nothing, or not all of it."""
    content = open_target(folder).read(TIMINGS)
    try:
        found = None if content is None else json.loads(content)
    except ValueError:
        return None
    return found if isinstance(found, dict) else None
