"""Rows of Hugging Face datasets and of stages, in shards: the units of work, which the input alone decides."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import pyarrow as pa  # type: ignore[import-untyped]

from safetensors_spark.factory._errors import ConfigError
from safetensors_spark.factory._places import parquet_file
from safetensors_spark.factory._stream_shards import is_sum_of_shards
from safetensors_spark.factory._stream_version import version_of_stream
from safetensors_spark.pipeline._source import SourceShard

# Rows that are requested at a time of a stream, whose rows have sizes that are not known.
_ROWS = 256


class InputShard(Protocol):
    """A part of the input, which one task reads from its first row to its last."""

    @property
    def version(self) -> str:
        """Tells its rows from others."""

    def tables(self) -> Iterator[pa.Table]:
        """Its rows in order, some at a time."""


@dataclass(frozen=True)
class Rows:
    """Rows of a `datasets.Dataset`, from one to before another.

    Attributes:
        part: these rows alone, so that no more are sent to a worker.
        step: how many rows a table has.
    """

    part: Any
    version: str
    step: int

    def tables(self) -> Iterator[pa.Table]:
        part = self.part.with_format("arrow")
        for begin in range(0, len(part), self.step):
            yield part[begin : begin + self.step]

    def __fingerprint__(self) -> str:
        return f"{self.version} {self.step}"


@dataclass(frozen=True)
class Stream:
    """One of the shards of a `datasets.IterableDataset`.

    Attributes:
        features: of all of its rows: some of them may not tell the type of a column that is null in them.
        epoch: what the library forgets of a stream when it makes another one of it.
    """

    stream: Any
    version: str
    features: Any
    epoch: int

    def tables(self) -> Iterator[pa.Table]:
        if self.stream._ex_iterable.iter_arrow is not None:
            yield from map(self._as_the_first, self._arrow_tables())
            return
        # The library would make a table of each row, in which the type of a null is not known.
        known = self.stream.features is not None
        stream = self.stream.decode(False) if known else self.stream
        for batch in self._of_epoch(stream).iter(batch_size=_ROWS):
            yield self._table(batch)

    def _of_epoch(self, stream: Any) -> Any:
        stream.set_epoch(self.epoch)
        return stream

    def _arrow_tables(self) -> Iterator[pa.Table]:
        try:
            yield from self._of_epoch(self.stream.with_format("arrow")).iter(batch_size=_ROWS)
        except pa.ArrowInvalid as error:
            # The library joins tables to have so many rows.
            if "Schema at index" not in str(error):
                raise
            told = " ".join(str(error).split())
            raise ConfigError(
                f"later rows of the stream have other types than those before: {told}. Open it with `features=` that "
                "hold for all rows."
            ) from error

    def _as_the_first(self, table: pa.Table) -> pa.Table:
        """The table with the types of the first rows: files of text may tell others for later ones."""
        schema = self.features.arrow_schema
        if table.schema.equals(schema):
            return table
        self._check_names(table.column_names)
        columns = []
        for one in schema:
            found = table.column(one.name) if one.name in table.column_names else pa.nulls(table.num_rows, one.type)
            try:
                columns.append(found if found.type == one.type else found.cast(one.type))
            except pa.ArrowException as error:
                raise ConfigError(
                    f"rows of the stream have `{one.name}` as {found.type}, and the first ones as {one.type}: "
                    f"{str(error).rstrip('.')}. Open it with `features=` that hold for all rows."
                ) from error
        return pa.Table.from_arrays(columns, schema=schema)

    def _check_names(self, names: Iterable[str]) -> None:
        if further := [name for name in names if name not in self.features]:
            raise ConfigError(
                f"rows of the stream have the column {further[0]}, and the first ones have {', '.join(self.features)}. "
                "Give the stream `features`."
            )

    def _table(self, batch: dict[str, list[Any]]) -> pa.Table:
        from datasets.arrow_writer import OptimizedTypedSequence

        self._check_names(batch)
        count = len(next(iter(batch.values()), ()))
        columns = {
            name: pa.array(OptimizedTypedSequence(batch.get(name, [None] * count), col=name, type=feature))
            for name, feature in self.features.items()
        }
        return pa.table(columns)

    def __fingerprint__(self) -> str:
        return self.version


@dataclass(frozen=True)
class StageFile:
    """A file that a stage has written.

    Attributes:
        schema: of its rows; the file has lists where that has lists of some length.
    """

    path: str
    version: str
    schema: pa.Schema

    def tables(self) -> Iterator[pa.Table]:
        with parquet_file(self.path) as file:
            for batch in file.iter_batches(_ROWS * 16):
                yield pa.Table.from_batches([batch]).cast(self.schema)

    def __fingerprint__(self) -> str:
        return self.version


@dataclass(frozen=True)
class ShardSource:
    """Shards of a dataset, each with its number there, as the source of a pipeline."""

    numbered: Sequence[tuple[int, InputShard]]

    def shards(self) -> list[SourceShard]:
        return [SourceShard((one,), one[1].version) for one in self.numbered]

    def __str__(self) -> str:
        return "dataset"


def shards_of(dataset: Any, shard_bytes: int) -> list[InputShard]:
    """The shards of a dataset: of a stream its own, if their rows are the stream's; else ranges of rows of about so
    many bytes.

    Raises `TypeError` for what is not a dataset of Hugging Face's library.
    """
    import datasets

    if isinstance(dataset, datasets.IterableDataset):
        count = dataset.num_shards if is_sum_of_shards(dataset._ex_iterable) else 1
        parts = (dataset.shard(count, number) for number in range(count)) if count > 1 else iter([dataset])
        features = features_of(dataset)
        return [Stream(part, version_of_stream(part, dataset.epoch), features, dataset.epoch) for part in parts]
    if isinstance(dataset, datasets.DatasetDict | datasets.IterableDatasetDict):
        raise TypeError(
            f"a pipeline takes one split of a dataset: name one of {', '.join(dataset)}, `dataset['train']`"
        )
    if not isinstance(dataset, datasets.Dataset):
        raise TypeError(f"a pipeline takes a datasets.Dataset or IterableDataset, not {type(dataset).__name__}")
    if dataset.format["type"] == "custom":
        raise ConfigError(
            "the dataset has a transform, which is applied when rows are accessed and is not part of them. Apply it "
            "with `map`, or remove it with `reset_format`."
        )
    if not len(dataset):
        return []
    row = max(1, dataset.data.nbytes // max(1, dataset.data.num_rows))
    rows, step = max(1, shard_bytes // row), max(1, min(10_000, (8 << 20) // row))
    begins = range(0, len(dataset), rows)
    return [
        Rows(
            dataset.select(range(begin, min(begin + rows, len(dataset)))),
            f"{dataset._fingerprint} {begin} {min(begin + rows, len(dataset))}",
            step,
        )
        for begin in begins
    ]


def features_of(dataset: Any) -> Any:
    """The features of a dataset. Raises `ConfigError` for a stream that does not know its columns, and has no rows."""
    if dataset.features is not None:
        return dataset.features
    try:
        found = dataset._resolve_features().features
    except Exception as error:
        told = f"{type(error).__name__}: {error}".removesuffix(".")
        raise ConfigError(f"the first rows of the dataset cannot be read: {told}.") from error
    if found is None:
        raise ConfigError("the dataset is a stream without features, and without rows that would tell them.")
    return found
