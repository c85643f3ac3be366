"""Writes shards: the header, then the bytes of the tensors, with their length and checksum."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, BinaryIO, cast
from uuid import UUID, uuid4

from crc32c import crc32c

from safetensors_spark._files.header_writer import header_bytes
from safetensors_spark._files.manifest import Shard
from safetensors_spark._files.numpy_dtypes import Array
from safetensors_spark._files.tensors import TensorInfo

# Small enough to stay in the processor's cache between checksum and write.
_CHUNK = 1 << 20


class ShardNames:
    """The names of a writer's shards, `part-{partition:05d}-{uuid}.safetensors`.

    Each writer has its own UUID, so that no two write the same file. The last four hex digits count the shards. The
    first 16 are those of `write_id`, if there is one.
    """

    def __init__(self, partition: int, write_id: str | None = None) -> None:
        self._partition = partition
        random = uuid4().int & ~0xFFFF
        self._first = random if write_id is None else int(write_id, 16) << 64 | random & (1 << 64) - 1
        self._count = 0

    def next(self) -> str:
        name = f"part-{self._partition:05d}-{UUID(int=self._first + self._count)}.safetensors"
        self._count += 1
        return name

    @staticmethod
    def have(write_id: str, name: str) -> bool:
        """Whether this is the name of a shard that was written with this `write_id`."""
        return name.partition("-")[2].partition("-")[2].replace("-", "").startswith(write_id)


def write_shard(
    create: Callable[[str], BinaryIO],
    name: str,
    metadata: Mapping[str, str],
    tensors: Sequence[TensorInfo],
    payload: Iterable[Array],
    samples: int,
) -> Shard:
    """Write a shard, and return its record.

    Args:
        create: opens a new file by its name; closing it makes it durable.
        tensors: in the order of their bytes.
        payload: the bytes of the tensors, in the same order, as contiguous arrays.
    """
    header = header_bytes(metadata, tensors)
    with create(name) as file:
        checksum = crc32c(header)
        file.write(header)
        length = len(header)
        for array in payload:
            checksum = _write(file, array, checksum)
            length += array.nbytes
    return Shard(name, length, samples, len(header), f"{checksum:08x}")


def _write(file: BinaryIO, array: Array, checksum: int) -> int:
    data = bytes_of(array)
    for start in range(0, len(data), _CHUNK):
        chunk = data[start : start + _CHUNK]
        checksum = crc32c(chunk, checksum)
        file.write(chunk)
    return checksum


def bytes_of(array: Array) -> memoryview:
    """The bytes of a contiguous array, without a copy."""
    # A memory view does not take arrays of all types, nor empty ones.
    return memoryview(cast(Any, array.reshape(-1).view("u1"))) if array.size else memoryview(b"")
