"""Hugging Face datasets as safetensors datasets, and back."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from typing import Any

import pyarrow as pa  # type: ignore[import-untyped]

from safetensors_spark._files.commit.existing import SaveMode
from safetensors_spark.dataset import open_dataset
from safetensors_spark.dataset._arguments import whole
from safetensors_spark.factory._errors import ConfigError
from safetensors_spark.factory._source import Rows, ShardSource, features_of, shards_of
from safetensors_spark.factory._tensor_tables import ToTables, array_of, feature_of
from safetensors_spark.pipeline import Backend, Dataset, create_backend

_SHARD_BYTES = 256 << 20
# Samples that are read at a time.
_SAMPLES = 256


def to_safetensors(
    dataset: Any,
    path: str | os.PathLike[str],
    *,
    columns: Sequence[str] | None = None,
    tokens: str | None = None,
    block: int | None = None,
    mode: SaveMode = "error",
    backend: Backend | None = None,
    shard_bytes: int = _SHARD_BYTES,
    **options: Any,
) -> str:
    """Write a dataset of Hugging Face's library as a safetensors dataset, which `BatchDataset` trains from.

        to_safetensors(curated, "train", columns=["tokens", "embedding"])
        BatchDataset(open_dataset("train"), 64, shuffle=True)

    Lists without a fixed length become ragged columns, other lists and arrays tensors of one shape, images tensors of
    bytes `[height, width, 3]`, which must be alike in size. Text, bytes, dates and times, numbers and truth values stay
    what they are. The format has no null, and no structs.

    Tasks write shards, and one commit shows them all. The same call again resumes where it was interrupted, and writes
    nothing when all is there.

    Args:
        dataset: a `datasets.Dataset` or `IterableDataset`.
        path: a directory, or an fsspec URL.
        columns: those to write; by default all.
        tokens: with `block`, the column of token ids; it is the only one that is written.
        block: cut the tokens of all rows into blocks of this length. What is left at the end of each shard of the
            input is not written.
        mode: `error` if there is a dataset, `overwrite`, or `append`.
        backend: where tasks run; by default processes on this machine.
        shard_bytes: about how many bytes of a `Dataset` a task reads. A stream has shards of its own.
        options: of `safetensors_spark.dataset.DatasetWriter`, such as `batch_size` or `dtype`.

    Returns the path. Raises `ConfigError` for columns that the format does not have, and `InvalidWriteError` for rows
    that differ in shape, or are null.
    """
    features = _chosen(features_of(dataset), columns, tokens, block)
    shards = shards_of(dataset, shard_bytes) or [Rows(dataset, "no rows", 1)]
    ragged = [name for name, feature in features.items() if _is_ragged(feature)] if block is None else []
    rows: Dataset[Any] = Dataset(ShardSource(list(enumerate(shards))))
    work = rows.map_shard(ToTables(features, block)).write_safetensors(path, mode=mode, **{"ragged": ragged} | options)
    (found,) = (backend or create_backend()).execute(work)
    return str(found)


def from_safetensors(
    path: str | os.PathLike[str], *, columns: Sequence[str] | None = None, streaming: bool = True
) -> Any:
    """A safetensors dataset as a dataset of Hugging Face's library, with the same rows in the same order.

    Numbers keep their dtypes. Tensors of one shape are read as `List` of a length, or as `Array2D` to `Array5D`, ragged
    columns as `List`, dates and times as such. What was an image, a class label or a fixed list of lists is read as the
    tensor that it was stored as.

    Args:
        columns: those to read; by default all.
        streaming: return an `IterableDataset`, whose shards are the dataset's files. Otherwise all rows are read into
            memory now, as a `Dataset`.

    Raises `ConfigError` for a column of a dtype that Arrow does not have, such as BF16.
    """
    from datasets import Dataset as Table
    from datasets import DatasetInfo, Features, IterableDataset
    from datasets.iterable_dataset import ArrowExamplesIterable

    found = open_dataset(path, columns=columns)
    features = Features({column.name: feature_of(column, len(found) > 0) for column in found.columns})
    reader = _Reader(os.fspath(path), tuple(features), features)
    numbers = list(range(len(found.shards)))
    if streaming:
        return IterableDataset(ArrowExamplesIterable(reader, {"shards": numbers}), info=DatasetInfo(features=features))
    tables = [table for _, table in reader(numbers)]
    return Table(pa.concat_tables(tables) if tables else features.arrow_schema.empty_table())


class _Reader:
    """Makes tables of the samples of some shards. It goes to other processes, which open the dataset themselves."""

    def __init__(self, path: str, columns: Sequence[str], features: Any) -> None:
        self._path, self._columns, self._features = path, columns, features

    def __call__(self, shards: Sequence[int]) -> Iterator[tuple[str, pa.Table]]:
        schema = self._features.arrow_schema
        dataset = open_dataset(self._path, columns=self._columns)
        begins = [*dataset.samples.begins.tolist(), len(dataset)]
        for shard in shards:
            for begin in range(begins[shard], begins[shard + 1], _SAMPLES):
                batch = dataset[begin : min(begin + _SAMPLES, begins[shard + 1])]
                arrays = [array_of(batch[field.name], field.type) for field in schema]
                yield f"{shard}_{begin}", pa.Table.from_arrays(arrays, schema=schema)


def _chosen(features: Any, columns: Sequence[str] | None, tokens: str | None, block: int | None) -> Any:
    """The features of the columns to write. Raises `ConfigError` for those that cannot be written."""
    from datasets import Features

    if isinstance(columns, str):
        raise TypeError(f"columns is {columns!r}, expected a list of names")
    if (tokens is None) != (block is None):
        raise ValueError(f"tokens is {tokens!r} and block is {block!r}: give both or none")
    names = [tokens] if tokens is not None else list(features) if columns is None else list(columns)
    for name in names:
        if name not in features:
            raise ConfigError(f"rows have no column `{name}` to write; they have {', '.join(features)}.")
    found = Features({name: features[name] for name in names})
    if not found:
        raise ConfigError("rows have no column to write.")
    wrong = {name: str(feature) for name, feature in found.items() if not _is_supported(feature)}
    if wrong:
        left = [name for name in found if name not in wrong]
        raise ConfigError(
            f"safetensors has no {'; '.join(f'`{name}`, which is {what:.200}' for name, what in wrong.items())}. Leave "
            f"such columns out, `columns={left}`, or make them numbers, lists of numbers, text, bytes or images."
        )
    if block is not None:
        whole("block", block, 1)
        kind = found.arrow_schema.field(0).type
        if not _is_list(kind) or not pa.types.is_integer(kind.value_type):
            raise ConfigError(f"`{tokens}` is {kind}, expected lists of token ids, which are whole numbers.")
    return found


def _is_supported(feature: Any) -> bool:
    from datasets import Features, Image

    if isinstance(feature, Image):
        return True
    kind = Features({"": feature}).arrow_schema.field(0).type
    kind = kind.storage_type if isinstance(kind, pa.ExtensionType) else kind
    types = pa.types
    if types.is_string(kind) or types.is_large_string(kind) or types.is_binary(kind) or types.is_large_binary(kind):
        return True
    if types.is_date(kind) or types.is_timestamp(kind):
        return True
    while _is_list(kind):
        kind = kind.value_type
    return bool(types.is_integer(kind) or types.is_floating(kind) or types.is_boolean(kind))


def _is_ragged(feature: Any) -> bool:
    from datasets import Features, Image

    return not isinstance(feature, Image) and bool(
        pa.types.is_list(kind := Features({"": feature}).arrow_schema.field(0).type) or pa.types.is_large_list(kind)
    )


def _is_list(kind: pa.DataType) -> bool:
    return bool(pa.types.is_list(kind) or pa.types.is_large_list(kind) or pa.types.is_fixed_size_list(kind))
