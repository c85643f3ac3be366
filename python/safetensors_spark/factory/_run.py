"""Runs a pipeline, stage by stage. What an earlier run has made of the same rows in the same way is not made again."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any, Literal

import pyarrow as pa  # type: ignore[import-untyped]

from safetensors_spark.factory._apply import check_fields
from safetensors_spark.factory._errors import ChangedStageError
from safetensors_spark.factory._fields import GENERATED_BY, NAMES, REFINED_BY
from safetensors_spark.factory._operator import Generator, Refiner
from safetensors_spark.factory._pipeline import Pipeline, Stage, differences
from safetensors_spark.factory._source import InputShard, ShardSource, StageFile, features_of, shards_of
from safetensors_spark.factory._stage_manifest import StageCommit, read_manifest
from safetensors_spark.factory._stage_task import DATA, StageTask, input_id
from safetensors_spark.pipeline import Backend, Dataset, create_backend
from safetensors_spark.pipeline._fingerprint import fingerprint
from safetensors_spark.pipeline._run_folder import RunFolder

_WINDOW_BYTES, _SHARD_BYTES, _FILE_BYTES = 64 << 20, 256 << 20, 256 << 20

Mode = Literal["incremental", "overwrite"]


def run(
    pipeline: Pipeline,
    dataset: Any,
    out: str | os.PathLike[str],
    *,
    mode: Mode = "incremental",
    backend: Backend | None = None,
    window_bytes: int = _WINDOW_BYTES,
    shard_bytes: int = _SHARD_BYTES,
    file_bytes: int = _FILE_BYTES,
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

    if mode not in ("incremental", "overwrite"):
        raise ValueError(f"mode is {mode!r}, expected 'incremental' or 'overwrite'")
    place = str(out) if "://" in str(out) else str(Path(out).expanduser().absolute())
    shards, features = shards_of(dataset, shard_bytes), features_of(dataset)
    # Two runs would delete each other's files.
    with RunFolder(f"{place}/_work").lock():
        for stage in pipeline.stages:
            features = features_behind(stage, features)
            sizes = (window_bytes, file_bytes)
            folder = f"{place}/{stage.name}"
            manifest = _run_stage(pipeline, stage, folder, shards, features, sizes, mode, backend or create_backend())
            shards = [
                StageFile(f"{folder}/{DATA}/{one['file']}", f"{one['rows']} {one['bytes']}")
                for record in manifest["shards"]
                for one in record["files"]
            ]
    files = [shard.path for shard in shards if isinstance(shard, StageFile)]
    is_stream = isinstance(dataset, datasets.IterableDataset)
    if not files:
        empty = datasets.Dataset.from_dict({name: [] for name in features}, features=features)
        return empty.to_iterable_dataset() if is_stream else empty
    cache = f"{place}/_cache"
    return datasets.load_dataset("parquet", data_files=files, split="train", streaming=is_stream, cache_dir=cache)


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


def _run_stage(
    pipeline: Pipeline,
    stage: Stage,
    folder: str,
    shards: list[InputShard],
    features: Any,
    sizes: tuple[int, int],
    mode: Mode,
    backend: Backend,
) -> dict[str, Any]:
    schema: pa.Schema = features.arrow_schema
    config = fingerprint([stage.config, stage.code, str(schema), sizes])
    head = {
        "pipeline": pipeline.name,
        "stage": stage.name,
        "config": stage.config,
        "config_hash": config,
        "code_version": stage.code,
        "operator_versions": {one.id: one.version for one in stage.operators},
    }
    kept: dict[str, dict[str, Any]] = {}
    before = read_manifest(folder)
    if before is not None and mode == "incremental":
        _check_same(before, head, stage, folder)
        kept = {record["input"]: record for record in before["shards"]}
    records = [kept.get(input_id(config, shard)) for shard in shards]
    if before is not None and mode == "incremental" and None not in records and len(records) == len(before["shards"]):
        return before
    task = StageTask(folder, stage.operators, config, schema, *sizes)
    there = [record | {"shard": number} for number, record in enumerate(records) if record is not None]
    left = [(number, shard) for number, shard in enumerate(shards) if records[number] is None]
    dataset: Dataset[Any] = Dataset(ShardSource(left))
    work = dataset.map_shard(task).reduce(list, StageCommit(folder, head, there))
    options = {"work_dir": f"{folder}/_work"} | ({"resume": False} if mode == "overwrite" else {})
    (manifest,) = backend.having(**options).execute(work)
    found: dict[str, Any] = manifest
    return found


def _check_same(before: dict[str, Any], head: dict[str, Any], stage: Stage, folder: str) -> None:
    if before["config_hash"] == head["config_hash"]:
        return
    found = differences(before["config"], head["config"])
    if before["code_version"] != head["code_version"]:
        found.append("the code of operators, or a file that they read, has changed")
    raise ChangedStageError(
        f"stage `{stage.name}` in {folder} was made in another way: {'; '.join(found) or 'columns differ'}. "
        "Run it with mode='overwrite' to make it again, or write to another folder."
    )
