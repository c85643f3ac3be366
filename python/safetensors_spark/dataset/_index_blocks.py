"""A file of an index by row groups, each read by its bytes alone."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from io import RawIOBase
from itertools import pairwise
from math import isqrt
from typing import Any

import numpy as np

from safetensors_spark._errors import InvalidIndexError, SafetensorsSparkError
from safetensors_spark._extras import require
from safetensors_spark._files.contents import Contents
from safetensors_spark._files.index import COLUMNS, TensorIndex, columns_of
from safetensors_spark._files.manifest import Shard
from safetensors_spark._files.numpy_dtypes import Array
from safetensors_spark._files.storage import LocalFolder
from safetensors_spark.dataset._block import Block, TensorSpec
from safetensors_spark.dataset._maps import changed
from safetensors_spark.dataset._ranges import read_ranges


class IndexBlocks:
    """The row groups of a part of a dataset's index. Its footer has been read; nothing else is kept."""

    def __init__(self, contents: Contents, name: str) -> None:
        """Raises `InvalidIndexError`, or `MissingExtraError` where pyarrow is not installed."""
        require("arrow", ("pyarrow",))
        self._contents = contents
        self.name = name
        self._path = f"{contents.folder.location}/{name}"
        self._tail = self._footer(contents.names[name])
        self._numbers = {shard.file: number for number, shard in enumerate(contents.shards)}
        try:
            index = TensorIndex(contents.folder, name, self._tail)
            self.commit_id = index.commit_id
            self._metadata = index.metadata
            groups = range(index.metadata.num_row_groups)
            self._groups = [number for number in groups if index.metadata.row_group(number).num_rows]
            self.bounds = self._bounds()
        except InvalidIndexError as error:
            raise changed(contents) or error from None
        # Of what Parquet itself finds, pyarrow says some as such errors.
        except (OSError, ValueError) as error:
            raise self.error(str(error)) from None

    def __len__(self) -> int:
        return int(self._metadata.num_rows)

    def read(self, numbers: Sequence[int]) -> list[Block]:
        """These row groups. Raises `InvalidIndexError`, or `DatasetChangedError`, for what cannot be relied on."""
        ranges = [self._range(self._groups[number]) for number in numbers]
        return [
            self._block(number, _Part(len(self._tail), start, content))
            for number, (start, _), content in zip(numbers, ranges, self._contents_of(ranges), strict=True)
        ]

    def error(self, what: str) -> SafetensorsSparkError:
        """The error for an index that is wrong, or for a dataset that has changed."""
        return changed(self._contents) or InvalidIndexError(self._path, what)

    def _footer(self, length: int) -> _Part:
        """The end of the file, with all of the footer."""
        # The footer has about as many bytes as a row group; what is read in vain takes less time than another request.
        start = max(0, length - max(64 << 10, 26 * isqrt(length)))
        (tail,) = self._bytes([(start, length)])
        begin = length - 8 - int.from_bytes(tail[-8:-4], "little")
        if 0 <= begin < start:
            tail = self._bytes([(begin, start)])[0] + tail
            start = begin
        return _Part(length, start, tail)

    def _contents_of(self, ranges: Sequence[tuple[int, int]]) -> list[bytes]:
        """The bytes of these ranges; what came with the footer is not asked for again."""
        far = iter(self._bytes([one for one in ranges if one[0] < self._tail.start]))
        return [next(far) if one[0] < self._tail.start else self._tail.cut(*one) for one in ranges]

    def _bytes(self, ranges: Sequence[tuple[int, int]]) -> list[bytes]:
        folder = self._contents.folder
        try:
            if isinstance(folder, LocalFolder):
                return [folder.read(self.name, *one) for one in ranges]
            found = read_ranges(folder, [(self.name, *one) for one in ranges])
        except FileNotFoundError:
            raise self.error("it no longer exists") from None
        return [
            content[begin : begin + end - start] for (content, begin), (start, end) in zip(found, ranges, strict=True)
        ]

    def _bounds(self) -> list[str]:
        """For each row group a key that is not greater than its first."""
        keys = self._metadata.schema.names.index(COLUMNS[0])
        bounds: list[str] = []
        for number in self._groups:
            column = self._metadata.row_group(number).column(keys)
            # Asked for the least of what has not the bytes of its type, pyarrow ends the process.
            types = (self._metadata.schema.column(keys).physical_type, column.physical_type)
            if types != ("BYTE_ARRAY", "BYTE_ARRAY"):
                raise self.error(f"its column {COLUMNS[0]} has no strings")
            # Of long keys Parquet tells nothing.
            statistics = column.statistics
            least = statistics.min if statistics is not None and statistics.has_min_max else ""
            bounds.append(max(bounds[-1], str(least)) if bounds else str(least))
        return bounds

    def _range(self, group_number: int) -> tuple[int, int]:
        """The bytes of a row group."""
        group = self._metadata.row_group(group_number)
        columns = [group.column(column) for column in range(group.num_columns)]
        starts = [one.dictionary_page_offset or one.data_page_offset for one in columns]
        ends = [start + one.total_compressed_size for start, one in zip(starts, columns, strict=True)]
        if not 0 <= min(starts) <= max(ends) <= len(self._tail):
            raise self.error(f"its row group {group_number} is not within it")
        return min(starts), max(ends)

    def _block(self, number: int, part: _Part) -> Block:
        import pyarrow as pa  # type: ignore[import-untyped]
        import pyarrow.parquet as pq  # type: ignore[import-untyped]

        try:
            file = pq.ParquetFile(part, metadata=self._metadata, page_checksum_verification=True)
            table = file.read_row_group(self._groups[number], columns=list(COLUMNS), use_threads=False)
            keys, files, shapes, dtypes, starts, ends = columns_of(table)
        except (pa.ArrowException, OSError, ValueError) as error:
            raise self.error(str(error)) from None
        names = keys.to_pylist()
        specs, spec_of = _specs(dtypes.dictionary_encode(), shapes)
        file_of = self._files(files.dictionary_encode(), names)
        entries = _Entries(names, file_of, _numbers(starts), _numbers(ends), specs, spec_of)
        if fault := entries.fault(self._contents.shards) or self._misplaced(number, names):
            raise self.error(fault)
        return entries.block()

    def _files(self, files: Any, keys: list[str]) -> Array:
        """The numbers of the files, by the manifest's order."""
        codes = _numbers(files.indices)
        for code, name in enumerate(files.dictionary.to_pylist()):
            if name not in self._numbers:
                key = keys[int(np.argmax(codes == code))]
                raise self.error(f"its entry for `{key:.200}` is of `{name:.200}`, which is not a shard of the dataset")
        numbers = [self._numbers[name] for name in files.dictionary.to_pylist()]
        return np.array(numbers, np.int32)[codes]

    def _misplaced(self, number: int, keys: list[str]) -> str | None:
        """What is wrong with the row group's keys, by what the footer says of it and of those beside it."""
        if number and keys and keys[0] <= self.bounds[number - 1]:
            return f"its entry for `{keys[0]:.200}` is not after the row group before it"
        if not keys or keys[0] < self.bounds[number]:
            return f"its row group {number} does not begin with the key that its footer says"
        later = [bound for bound in self.bounds[number + 1 : number + 2] if bound > self.bounds[number]]
        if later and keys[-1] >= later[0]:
            return f"its entry for `{keys[-1]:.200}` is not before the next row group"
        return None


@dataclass(frozen=True)
class _Entries:
    """The entries of a row group, as columns: keys, files, bytes, and which of the specs each is."""

    keys: list[str]
    files: Array
    starts: Array
    ends: Array
    specs: list[TensorSpec]
    spec_of: Array

    def fault(self, shards: Sequence[Shard]) -> str | None:
        """What is wrong with them, for one of the keys."""
        for earlier, later in pairwise(self.keys):
            if earlier >= later:
                return f"its entry for `{later:.200}` does not come after the one for `{earlier:.200}`"
        first = np.array([shard.header_bytes or 0 for shard in shards], np.int64)
        length = np.array([shard.bytes or 0 for shard in shards], np.int64)
        size = np.array([-1 if spec.bytes is None else min(spec.bytes, 1 << 62) for spec in self.specs], np.int64)
        outside = (self.starts < first[self.files]) | (self.ends > length[self.files])
        wrong = np.flatnonzero(outside | (self.ends - self.starts != size[self.spec_of]))
        if not len(wrong):
            return None
        at = int(wrong[0])
        spec, shard = self.specs[self.spec_of[at]], shards[self.files[at]]
        return (
            f"its entry for `{self.keys[at]:.200}` says that {spec.dtype} {list(spec.shape)} is at the bytes "
            f"{self.starts[at]} to {self.ends[at]} of {shard.file}, which cannot be: that has {shard.bytes} "
            f"bytes, and such a tensor {'does not exist' if spec.bytes is None else f'has {spec.bytes}'}"
        )

    def block(self) -> Block:
        pairs, which = np.unique(self.files.astype(np.int64) * len(self.specs) + self.spec_of, return_inverse=True)
        specs = [(pair // len(self.specs), self.specs[pair % len(self.specs)]) for pair in pairs.tolist()]
        return Block(self.keys, self.starts, which, specs)


def _numbers(column: Any) -> Array:
    """The integers, in their own memory. (pyarrow's `to_numpy` begins with an import of pandas.)"""
    dtype = np.dtype(f"i{column.type.bit_width // 8}")
    if not len(column):
        return np.empty(0, dtype)
    return np.frombuffer(column.buffers()[1], dtype, len(column), column.offset * dtype.itemsize)


def _specs(dtypes: Any, shapes: Any) -> tuple[list[TensorSpec], Array]:
    """The specs of tensors there are, and which of them each one is."""
    ranks = np.diff(_numbers(shapes.offsets))
    # A row for each tensor: its dtype's number, its rank, its dimensions, and -1 behind them.
    table = np.full((len(ranks), 2 + max(ranks, default=0)), -1, np.int64)
    table[:, 0], table[:, 1] = _numbers(dtypes.indices), ranks
    table[:, 2:][np.arange(table.shape[1] - 2) < ranks[:, None]] = _numbers(shapes.flatten())
    same = len(table) > 0 and bool((table == table[0]).all())
    rows, spec_of = (
        (table[:1], np.zeros(len(table), np.int32)) if same else np.unique(table, axis=0, return_inverse=True)
    )
    names = dtypes.dictionary.to_pylist()
    return [TensorSpec(names[row[0]], tuple(row[2 : 2 + row[1]])) for row in rows.tolist()], spec_of.reshape(-1)


class _Part(RawIOBase):
    """A file of which only some bytes are there, those from `start` on."""

    def __init__(self, length: int, start: int, content: bytes) -> None:
        super().__init__()
        self.start = start
        self._length, self._content, self._at = length, content, 0

    def __len__(self) -> int:
        return self._length

    def cut(self, start: int, end: int) -> bytes:
        return self._content[start - self.start : end - self.start]

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def seek(self, offset: int, whence: int = 0) -> int:
        self._at = offset + (0, self._at, self._length)[whence]
        return self._at

    def tell(self) -> int:
        return self._at

    def read(self, size: int = -1) -> bytes:
        end = self._length if size < 0 else self._at + size
        if self._at < self.start:
            raise OSError(f"its bytes {self._at} to {end} are not where its footer says")
        found = self.cut(self._at, end)
        self._at += len(found)
        return found
