"""Names of shards and paths of outputs: what a run would make, before it makes any of it."""

from __future__ import annotations

import os
from dataclasses import fields
from hashlib import blake2b
from pathlib import Path
from typing import Any

from safetensors_spark._errors import PipelineError
from safetensors_spark._files.secrets import without_secrets
from safetensors_spark.pipeline._fingerprint import fingerprint
from safetensors_spark.pipeline._operations import Write
from safetensors_spark.pipeline._plan import Plan, Stage


def shard_names(plan: Plan, settings: str) -> list[list[str]]:
    """The name of each shard of each stage: its number, and a fingerprint of all that it is made of.

    Args:
        settings: what else decides what is made.
    """
    found: list[list[str]] = []
    for number, stage in enumerate(plan.stages):
        code = fingerprint([_code(stage), settings])
        if number == 0:
            inputs = [fingerprint([shard.rows, shard.version]) for shard in plan.shards]
        else:
            # Each shard may have rows of all.
            inputs = [_hash(*found[-1])] * stage.shards
        right = _hash(*shard_names(stage.right, settings)[-1]) if stage.right is not None else ""
        found.append(
            [
                f"{shard:05d}-{_hash(code, inputs[shard], right, str(shard), str(stage.shards))}"
                for shard in range(stage.shards)
            ]
        )
    return found


def _code(stage: Stage) -> list[Any]:
    """What a stage does, without what its right side does, which has names of its own."""
    begin = stage.begin
    exchange = (
        []
        if begin is None
        else [type(begin), *(getattr(begin, one.name) for one in fields(begin) if one.name != "right")]
    )
    return [exchange, list(stage.operations), stage.end]


def _hash(*parts: str) -> str:
    return blake2b("\n".join(parts).encode(), digest_size=10).hexdigest()


def outputs_of(stage: Stage) -> list[str] | None:
    """What each shard of a stage writes, as absolute paths; None if it writes nothing.

    Raises `PipelineError` if two shards would write one file.
    """
    write = stage.write
    if write is None:
        return None
    paths = [_absolute(_path(write, shard, stage.shards)) for shard in range(stage.shards)]
    if write.format != "safetensors":
        seen: dict[str, int] = {}
        for shard, path in enumerate(paths):
            if path in seen:
                raise PipelineError(
                    f"shards {seen[path]} and {shard} of {stage.shards} would both write {without_secrets(path)}: put "
                    "`{shard:05d}` into the pattern, so that each has a file of its own."
                )
            seen[path] = shard
    return paths


def _path(write: Write, shard: int, total: int) -> str:
    if write.format == "safetensors":
        return str(write.pattern)
    if callable(write.pattern):
        found: Any = write.pattern(shard, total)
        if not isinstance(found, str | os.PathLike) or not os.fspath(found):
            raise PipelineError(f"{write}: the function returned {found!r} for shard {shard}, expected a path")
        return os.fspath(found)
    try:
        return write.pattern.format(shard=shard, total=total, basename=f"shard_{shard}")
    except (KeyError, IndexError, ValueError) as error:
        raise PipelineError(
            f"{without_secrets(write.pattern)} is no pattern: {error!r}. It may have {{shard}}, {{total}} and "
            "{basename}, as in `out/data-{shard:05d}-of-{total:05d}.jsonl.gz`; write other braces twice."
        ) from None


def _absolute(path: str) -> str:
    # Workers may be in other folders.
    return path if "://" in path else str(Path(path).expanduser().absolute())
