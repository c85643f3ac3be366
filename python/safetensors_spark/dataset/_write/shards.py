"""The shards of one writer: written out of sight, until a commit."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from uuid import uuid4

import numpy as np

from safetensors_spark._files.commit.target import Target
from safetensors_spark._files.commit.written import STAGING
from safetensors_spark._files.header_writer import order
from safetensors_spark._files.manifest import Shard
from safetensors_spark._files.numpy_dtypes import Array
from safetensors_spark._files.shard_file import ShardNames, write_shard
from safetensors_spark._files.tensors import TensorInfo


def rows_that_fit(sizes: Array, filled: int, last: int, limit: int) -> int:
    """How many rows of these sizes go into a shard: mostly a row is as large as the one before.

    Args:
        filled: bytes of the shard so far; a shard without any takes one row at least.
        last: bytes of the row before.
    """
    before = filled + np.cumsum(sizes) - sizes
    is_full = before + np.concatenate([[last], sizes[:-1]]) > limit
    if not filled:
        is_full[0] = False
    return int(is_full.argmax()) if is_full.any() else len(sizes)


@dataclass
class Payload:
    """A tensor of a shard: its bytes are those of the parts, one after the other."""

    name: str
    dtype: str
    shape: tuple[int, ...]
    parts: Sequence[Array]


@dataclass
class Shards:
    """Writes shards to a folder of their own, and keeps their records in row order."""

    target: Target
    partition: int
    metadata: Mapping[str, str]
    write_id: str | None = None
    folder: str = field(default_factory=lambda: f"{STAGING}/{uuid4()}")
    records: list[Shard] = field(default_factory=list)

    def __post_init__(self) -> None:
        self._names = ShardNames(self.partition, self.write_id)

    def write_tensors(self, tensors: Iterable[Payload], samples: int, metadata: Mapping[str, str]) -> None:
        """Write a shard of these tensors, in the order that the format wants."""
        infos, payload, begin = [], list[Array](), 0
        for one in sorted(tensors, key=lambda one: order(one.dtype, one.name)):
            end = begin + sum(part.nbytes for part in one.parts)
            infos.append(TensorInfo(one.name, one.dtype, one.shape, begin, end))
            payload += one.parts
            begin = end
        self.write(infos, payload, samples, metadata)

    def write(
        self, tensors: Sequence[TensorInfo], payload: Iterable[Array], samples: int, metadata: Mapping[str, str]
    ) -> None:
        name = self._names.next()

        def place(file: str) -> str:
            return f"{self.folder}/{file}"

        try:
            shard = write_shard(lambda file: self.target.create(place(file)), name, metadata, tensors, payload, samples)
        except OSError as error:
            where, why = f"{self.target.location}/{place(name)}", error.strerror or error
            raise OSError(
                error.errno,
                f"{where} cannot be written: {why}. Nothing was added to the dataset. Make room, or write elsewhere.",
            ) from error
        self.records.append(shard)

    def discard(self) -> None:
        """Delete what was written."""
        self.target.delete_folder(self.folder)
        self.target.delete_empty(STAGING)
        self.records.clear()
