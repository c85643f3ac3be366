"""Runs a pipeline, stage by stage. Results of an earlier run with the same rows and configuration are reused."""

from __future__ import annotations

import json
import os
import re
import time
from collections.abc import Iterator, Sequence
from contextlib import closing
from dataclasses import replace
from typing import Any
from uuid import uuid4

from safetensors_spark._files.commit.target import open_target
from safetensors_spark.factory._apply import check_fields
from safetensors_spark.factory._code_version import code_version
from safetensors_spark.factory._duplicates import Marks, marked
from safetensors_spark.factory._errors import ContractError
from safetensors_spark.factory._fields import DROPPED_BECAUSE, DROPPED_BY, GENERATED_BY, NAMES, REFINED_BY
from safetensors_spark.factory._hook import Hook
from safetensors_spark.factory._hook_calls import HookCalls
from safetensors_spark.factory._operator import Deduplicator, Filter, Generator, Refiner
from safetensors_spark.factory._pipeline import PIPELINE, Pipeline, Stage
from safetensors_spark.factory._placement import actors_of
from safetensors_spark.factory._places import is_remote, place_of
from safetensors_spark.factory._provenance import FIELDS
from safetensors_spark.factory._quotas import quotas_of
from safetensors_spark.factory._runner import check_columns, check_kept_types, check_types
from safetensors_spark.factory._source import InputShard, ShardSource, StageFile, features_of, shards_of
from safetensors_spark.factory._stage_manifest import StageCommit, delete_others
from safetensors_spark.factory._stage_task import StageTask
from safetensors_spark.factory._stage_watch import StageWatch
from safetensors_spark.factory._stage_work import Mode, Sizes, StageWork, outputs_of
from safetensors_spark.factory._workers import kept_workers
from safetensors_spark.pipeline import Backend, Dataset, create_backend
from safetensors_spark.pipeline._run_folder import RunFolder

_PATTERN = re.compile(r"[*?\[]")

WINDOW_BYTES, SHARD_BYTES, FILE_BYTES = 16 << 20, 256 << 20, 256 << 20
DEFAULT_SIZES = Sizes(WINDOW_BYTES, FILE_BYTES)


def run(
    pipeline: Pipeline,
    dataset: Any,
    out: str | os.PathLike[str],
    *,
    mode: Mode = "incremental",
    backend: Backend | None = None,
    hooks: Sequence[Hook] = (),
    window_bytes: int = WINDOW_BYTES,
    shard_bytes: int = SHARD_BYTES,
    file_bytes: int = FILE_BYTES,
) -> Any:
    """Run a pipeline on a dataset of the Hugging Face library. Returns the resulting dataset.

    Args:
        dataset: a `datasets.Dataset`, or an `IterableDataset`, for which an `IterableDataset` is returned.
        out: the output folder. Each stage has a folder in it, with its files and their manifest.
        mode: `incremental` continues from the results of an earlier run of the same pipeline. `overwrite` computes all
            stages again, and replaces each when the new one is complete.
        backend: where tasks run; by default processes on this machine.
        hooks: observe the run, and do not change it.
        window_bytes: about how many bytes of rows a task has in memory.
        shard_bytes: about how many bytes of a `Dataset` a task processes. A stream has its own shards.
        file_bytes: the maximum size of a file, in bytes of Arrow.

    Raises:
        ContractError: an operator does not fit the rows, or does something that its kind does not allow.
        PipelineBusyError: another run works in the folder.
        ChangedStageError: in incremental mode, a stage was made with another configuration or other code.
    """
    import datasets

    sizes = Sizes(window_bytes, file_bytes)
    shards, schema = run_stages(pipeline, dataset, out, mode, backend, hooks, sizes, shard_bytes)
    files = [shard.path for shard in shards if isinstance(shard, StageFile)]
    is_stream = isinstance(dataset, datasets.IterableDataset)
    features = datasets.Features.from_arrow_schema(schema)
    if not files:
        if is_stream:
            return datasets.IterableDataset.from_generator(_nothing, features=features)
        return datasets.Dataset.from_dict({name: [] for name in features}, features=features)
    place = place_of(out)
    # The library's cache is on this machine.
    cache = None if is_remote(place) else f"{place}/_cache"
    # The library takes names of files for patterns.
    named = [_PATTERN.sub(r"[\g<0>]", file) for file in files]
    return datasets.load_dataset(
        "parquet", data_files=named, features=features, split="train", streaming=is_stream, cache_dir=cache
    )


def _nothing() -> Iterator[dict[str, Any]]:
    yield from ()


def run_stages(
    pipeline: Pipeline,
    dataset: Any,
    out: str | os.PathLike[str],
    mode: Mode,
    backend: Backend | None,
    hooks: Sequence[Hook],
    sizes: Sizes = DEFAULT_SIZES,
    shard_bytes: int = SHARD_BYTES,
    last: str | None = None,
) -> tuple[list[InputShard], Any]:
    """Compute stages. Returns the files of the last one, and the schema of their rows.

    Args:
        last: the name of the last stage to compute; by default all.
    """
    calls = HookCalls(hooks)
    shards, works = stage_works(pipeline, dataset, out, mode, sizes, shard_bytes)
    if last is not None:
        works = works[: [stage.name for stage in pipeline.stages].index(last) + 1]
    run_id, chosen = uuid4().hex, backend or create_backend()
    # Two runs would delete each other's files.
    with RunFolder(f"{place_of(out)}/_work").lock(), closing(calls), kept_workers(chosen) as by:
        for work in works:
            work.check()
        _tell(pipeline, place_of(out))
        for work in works:
            watch = StageWatch(calls, pipeline.name, work.stage.name, run_id, work.folder)
            watch.start(len(shards))
            started = time.monotonic()
            backend_of_stage = by.having(**_options(work))
            whole = replace(work, shards=_compared(work, shards, backend_of_stage))
            manifest = _run_stage(whole, run_id, backend_of_stage, watch, time.monotonic() - started)
            watch.end(manifest)
            shards = outputs_of(work.folder, manifest, work.schema)
    return shards, works[-1].schema


def stage_works(
    pipeline: Pipeline, dataset: Any, out: str | os.PathLike[str], mode: Mode, sizes: Sizes, shard_bytes: int
) -> tuple[list[InputShard], list[StageWork]]:
    """The shards of the dataset, and what is to be done for each stage, of which none has its shards yet.

    Raises `ContractError` for an operator of any stage that does not fit, before a row is read.
    """
    if mode not in ("incremental", "overwrite"):
        raise ValueError(f"mode is {mode!r}, expected 'incremental' or 'overwrite'")
    shards, features, works = shards_of(dataset, shard_bytes), features_of(dataset), []
    for name in (DROPPED_BY, DROPPED_BECAUSE):
        if name in features:
            raise ContractError(
                f"rows have the field `{name}`, which the factory writes of rows that it drops. Remove it first, with "
                f"`remove_columns`."
            )
    check_columns(features.arrow_schema)
    for stage in pipeline.stages:
        features = features_behind(stage, features)
        check_columns(features.arrow_schema)
        folder = f"{place_of(out)}/{stage.name}"
        works.append(StageWork(pipeline.name, stage, stage.code, folder, (), features.arrow_schema, sizes, mode))
    return shards, works


def features_behind(stage: Stage, features: Any) -> Any:
    """The features of a stage's output rows. Raises `ContractError` for an operator that does not fit."""
    from datasets import Features
    from datasets.features.features import generate_from_arrow_type

    found = dict(features)
    drops = stage.on_error == "quarantine" or any(isinstance(one, Filter | Deduplicator) for one in stage.operators)
    for operator in stage.operators:
        check_fields(operator, list(found))
        check_types(operator, Features(found).arrow_schema)
        if drops:
            check_kept_types(operator, Features(found).arrow_schema)
        for name, kind in operator.writes.items():
            # A field that keeps its type keeps its feature, such as an image.
            if name not in found or Features({name: found[name]}).arrow_schema.field(name).type != kind:
                found[name] = generate_from_arrow_type(kind)
        for kind_of, name in ((Refiner, REFINED_BY), (Generator, GENERATED_BY)):
            if isinstance(operator, kind_of):
                found[name] = generate_from_arrow_type(NAMES)
    if stage.provenance:
        found |= {name: generate_from_arrow_type(kind) for name, kind in FIELDS.items()}
    return Features(found)


def _tell(pipeline: Pipeline, place: str) -> None:
    """Record the stages and their order, for reports."""
    told = {"pipeline": pipeline.name, "stages": [stage.name for stage in pipeline.stages]}
    target = open_target(place)
    target.replace(PIPELINE, f"{PIPELINE}.draft", [json.dumps(told, indent=1).encode()], lambda: None)


def _options(work: StageWork) -> dict[str, Any]:
    return {"work_dir": f"{work.folder}/_work"} | ({"resume": False} if work.mode == "overwrite" else {})


def _compared(work: StageWork, shards: list[InputShard], backend: Backend) -> list[InputShard]:
    """The shards, whose duplicates are marked if the stage begins with their operator."""
    operator = work.stage.deduplicator
    if operator is None:
        return shards
    return marked(operator, shards, work.folder, work.config, work.sizes.window, backend)


def _run_stage(work: StageWork, run_id: str, backend: Backend, watch: StageWatch, seconds: float) -> dict[str, Any]:
    """Compute the missing shards of a stage. Returns its manifest.

    Args:
        seconds: in which its rows were compared, where it begins with that.
    """
    if work.before is not None and work.is_whole:
        whole = watch.whole(work.before)
        # An overwrite that was broken has left its own.
        delete_others(work.folder, whole)
        return whole
    there = [record | {"shard": number} for number, record in enumerate(work.records) if record is not None]
    left = [(number, shard) for number, shard in enumerate(work.shards) if work.records[number] is None]
    sizes = work.sizes
    operators = [Marks(id=one.id) if isinstance(one, Deduplicator) else one for one in work.stage.operators]
    head = work.head | {"run_id": run_id, "code_version": code_version(work.stage, work.code)}
    compared = seconds if work.stage.deduplicator is not None else 0.0
    commit = StageCommit(work.folder, head, there, quotas_of(work.stage.operators), compared)
    with actors_of(operators if left else [], backend) as actors:
        task = StageTask(
            work.folder, work.stage, tuple(operators), work.naming, work.schema, sizes.window, sizes.file, actors
        )
        dataset: Dataset[Any] = Dataset(ShardSource(left))
        (manifest,) = backend.execute(dataset.map_shard(task).reduce(list, commit), watch.of(there))
    found: dict[str, Any] = manifest
    return found
