"""Names of shards and paths of outputs: what a run would make, before it makes any of it."""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import fields, replace
from hashlib import blake2b
from pathlib import Path
from typing import Any

from safetensors_spark._errors import PipelineError
from safetensors_spark._files.secrets import without_secrets
from safetensors_spark.pipeline._fingerprint import fingerprint
from safetensors_spark.pipeline._operations import MapShard, Write
from safetensors_spark.pipeline._paths import absolute, identity
from safetensors_spark.pipeline._plan import Plan, Stage
from safetensors_spark.pipeline._source import FilePart, SampleRange


def shard_names(plan: Plan, settings: str) -> list[list[str]]:
    """The name of each shard of each stage: its number, and a fingerprint of all that it is made of, and of its output.

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
        outputs = outputs_of(stage) or [""] * stage.shards
        # Most shards do not know how many there are, and stay when there is one more.
        knows = number > 0 or stage.end is not None or any(isinstance(one, MapShard) for one in stage.operations)
        total = str(stage.shards) if knows else ""
        names = [
            f"{shard:05d}-{_hash(code, inputs[shard], right, identity(outputs[shard]), str(shard), total)}"
            for shard in range(stage.shards)
        ]
        if stage.write is not None and stage.write.format == "safetensors":
            # A commit is of all shards: those of another one are not a part of this one.
            names = [f"{name[:5]}-{_hash(name, *names)}" for name in names]
        found.append(names)
    return found


def write_id(names: list[str]) -> str:
    """The id of the shards that are committed together, by the names of all of them."""
    return blake2b("\n".join(names).encode(), digest_size=8).hexdigest()


def _code(stage: Stage) -> list[Any]:
    """What a stage does, without what its right side does, which has names of its own, and without its output."""
    begin = stage.begin
    exchange = (
        []
        if begin is None
        else [type(begin), *(getattr(begin, one.name) for one in fields(begin) if one.name not in ("right", "path"))]
    )
    operations = [replace(one, pattern="") if isinstance(one, Write) else one for one in stage.operations]
    return [exchange, operations, stage.end]


def _hash(*parts: str) -> str:
    return blake2b("\n".join(parts).encode(), digest_size=10).hexdigest()


def outputs_of(stage: Stage) -> list[str] | None:
    """What each shard of a stage writes, as absolute paths; None if it writes nothing.

    Raises `PipelineError` if two shards would write one file.
    """
    write = stage.write
    if write is None:
        return None
    paths = [absolute(_path(write, shard, stage.shards)) for shard in range(stage.shards)]
    if write.format != "safetensors":
        seen: dict[str, int] = {}
        for shard, path in enumerate(paths):
            if _path(write, shard, stage.shards).endswith("/") or ("://" not in path and Path(path).is_dir()):
                raise PipelineError(
                    f"{without_secrets(path)} is a folder, but each shard writes a file: name one, as in "
                    "`out/{shard:05d}.jsonl`."
                )
            if path in seen:
                raise PipelineError(
                    f"shards {seen[path]} and {shard} of {stage.shards} would both write {without_secrets(path)}: put "
                    "`{shard:05d}` into the pattern, so that each shard has its own file."
                )
            seen[path] = shard
    return paths


def check_not_in_place(plan: Plan) -> None:
    """Raise `PipelineError` if an output is a file that is read: a second run would read what the first has written."""
    sources: dict[str, list[str]] = {}
    for path in _sources_of(plan):
        sources.setdefault(path.rpartition("/")[2], []).append(path)
    for path in (path for stage in plan.stages for path in outputs_of(stage) or ()):
        alike = sources.get(path.rstrip("/").rpartition("/")[2], ())
        if any(identity(one) == identity(path) for one in alike):
            raise PipelineError(
                f"{without_secrets(path)} would be read and written: a resumed run, or another one, would read "
                "the output of this run. Write to another folder."
            )


def _sources_of(plan: Plan) -> Iterator[str]:
    """The files and datasets that are read, also on the right sides of joins."""
    for shard in plan.shards:
        # Of items nobody knows whether they are names of files.
        for row in shard.rows if shard.version else ():
            path = row.path if isinstance(row, FilePart) else row
            path = row.dataset.samples.location if isinstance(row, SampleRange) else path
            if isinstance(path, str):
                yield path.rstrip("/")
    for stage in plan.stages:
        if stage.right is not None:
            yield from _sources_of(stage.right)


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
            f"{without_secrets(write.pattern)} is not a pattern: {error!r}. It may have {{shard}}, {{total}} and "
            "{basename}, as in `out/data-{shard:05d}-of-{total:05d}.jsonl.gz`; double other braces."
        ) from None
