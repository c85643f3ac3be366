"""Runs a pipeline, stage by stage. What an earlier run has made of the same rows in the same way is not made again."""

from __future__ import annotations

import json
import os
from dataclasses import replace
from pathlib import Path
from typing import Any
from uuid import uuid4

from safetensors_spark._files.commit.target import open_target
from safetensors_spark.factory._apply import check_fields
from safetensors_spark.factory._code_version import code_version
from safetensors_spark.factory._duplicates import Marks, marked
from safetensors_spark.factory._fields import GENERATED_BY, NAMES, REFINED_BY
from safetensors_spark.factory._operator import Deduplicator, Generator, Refiner
from safetensors_spark.factory._pipeline import Pipeline, Stage
from safetensors_spark.factory._report import PIPELINE
from safetensors_spark.factory._source import InputShard, ShardSource, StageFile, features_of, shards_of
from safetensors_spark.factory._stage_manifest import StageCommit
from safetensors_spark.factory._stage_task import StageTask
from safetensors_spark.factory._stage_work import Mode, Sizes, StageWork, outputs_of
from safetensors_spark.pipeline import Backend, Dataset, create_backend
from safetensors_spark.pipeline._run_folder import RunFolder

WINDOW_BYTES, SHARD_BYTES, FILE_BYTES = 64 << 20, 256 << 20, 256 << 20


def run(
    pipeline: Pipeline,
    dataset: Any,
    out: str | os.PathLike[str],
    *,
    mode: Mode = "incremental",
    backend: Backend | None = None,
    window_bytes: int = WINDOW_BYTES,
    shard_bytes: int = SHARD_BYTES,
    file_bytes: int = FILE_BYTES,
) -> Any:
    """Run a pipeline on a dataset of Hugging Face's library. Returns what is left, as such a dataset.

    Args:
        dataset: a `datasets.Dataset`, or an `IterableDataset`, for which an `IterableDataset` is returned.
        out: the folder in which each stage has one, with its files and their manifest.
        mode: `incremental` goes on from what an earlier run of the same pipeline has made. `overwrite` makes all
            stages again, and replaces each when the new one is whole.
        backend: where tasks run; by default processes of this machine.
        window_bytes: about how many bytes of rows a task has in memory.
        shard_bytes: about how many bytes of a `Dataset` are a task's. A stream has shards of its own.
        file_bytes: how many bytes of Arrow a file has at most.

    Raises:
        ContractError: an operator does not fit the rows, or does what its kind may not do.
        PipelineBusyError: another run works in the folder.
        ChangedStageError: in incremental mode, a stage was made by another configuration or by other code.
    """
    import datasets

    shards, works = stage_works(pipeline, dataset, out, mode, Sizes(window_bytes, file_bytes), shard_bytes)
    run_id = uuid4().hex
    # Two runs would delete each other's files.
    with RunFolder(f"{_place(out)}/_work").lock():
        for work in works:
            work.check()
        _tell(pipeline, _place(out))
        for work in works:
            by = (backend or create_backend()).having(**_options(work))
            manifest = _run_stage(replace(work, shards=_compared(work, shards, by)), run_id, by)
            shards = outputs_of(work.folder, manifest)
    files = [shard.path for shard in shards if isinstance(shard, StageFile)]
    is_stream = isinstance(dataset, datasets.IterableDataset)
    if not files:
        features = datasets.Features.from_arrow_schema(works[-1].schema)
        empty = datasets.Dataset.from_dict({name: [] for name in features}, features=features)
        return empty.to_iterable_dataset() if is_stream else empty
    cache = f"{_place(out)}/_cache"
    return datasets.load_dataset("parquet", data_files=files, split="train", streaming=is_stream, cache_dir=cache)


def stage_works(
    pipeline: Pipeline, dataset: Any, out: str | os.PathLike[str], mode: Mode, sizes: Sizes, shard_bytes: int
) -> tuple[list[InputShard], list[StageWork]]:
    """The shards of the dataset, and what is to be done for each stage, of which none has its shards yet.

    Raises `ContractError` for an operator of any stage that does not fit, before a row is read.
    """
    if mode not in ("incremental", "overwrite"):
        raise ValueError(f"mode is {mode!r}, expected 'incremental' or 'overwrite'")
    shards, features, works = shards_of(dataset, shard_bytes), features_of(dataset), []
    for stage in pipeline.stages:
        features = features_behind(stage, features)
        folder = f"{_place(out)}/{stage.name}"
        works.append(StageWork(pipeline.name, stage, stage.code, folder, (), features.arrow_schema, sizes, mode))
    return shards, works


def _place(out: str | os.PathLike[str]) -> str:
    return str(out) if "://" in str(out) else str(Path(out).expanduser().absolute())


def features_behind(stage: Stage, features: Any) -> Any:
    """The features of the rows that a stage leaves. Raises `ContractError` for an operator that does not fit."""
    from datasets import Features
    from datasets.features.features import generate_from_arrow_type

    found = dict(features)
    for operator in stage.operators:
        check_fields(operator, list(found))
        for name, kind in operator.writes.items():
            # A field that keeps its type keeps its feature, such as an image.
            if name not in found or Features({name: found[name]}).arrow_schema.field(name).type != kind:
                found[name] = generate_from_arrow_type(kind)
        for kind_of, name in ((Refiner, REFINED_BY), (Generator, GENERATED_BY)):
            if isinstance(operator, kind_of):
                found[name] = generate_from_arrow_type(NAMES)
    return Features(found)


def _tell(pipeline: Pipeline, place: str) -> None:
    """Write which stages there are, in which order, for reports."""
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


def _run_stage(work: StageWork, run_id: str, backend: Backend) -> dict[str, Any]:
    """Make what is not there of a stage. Returns its manifest."""
    if work.before is not None and work.is_whole:
        return work.before
    there = [record | {"shard": number} for number, record in enumerate(work.records) if record is not None]
    left = [(number, shard) for number, shard in enumerate(work.shards) if work.records[number] is None]
    sizes = work.sizes
    operators = [Marks(id=one.id) if isinstance(one, Deduplicator) else one for one in work.stage.operators]
    task = StageTask(work.folder, tuple(operators), work.config, work.schema, sizes.window, sizes.file)
    head = work.head | {"run_id": run_id, "code_version": code_version(work.stage, work.code)}
    dataset: Dataset[Any] = Dataset(ShardSource(left))
    made = dataset.map_shard(task).reduce(list, StageCommit(work.folder, head, there))
    (manifest,) = backend.execute(made)
    found: dict[str, Any] = manifest
    return found
