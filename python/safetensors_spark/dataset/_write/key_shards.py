"""Names tensors by their rows' keys: each row of a column becomes a tensor of its own."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Literal

import numpy as np

from safetensors_spark._errors import InvalidWriteError
from safetensors_spark._files.header_writer import name_bytes, order
from safetensors_spark._files.numpy_dtypes import Array
from safetensors_spark._files.tensors import TensorInfo
from safetensors_spark.dataset._write.keyed_rows import KeyedRows
from safetensors_spark.dataset._write.shards import Shards, rows_that_fit

Duplicates = Literal["fail", "lastWin"]

# Hosted services read headers up to 25 MB.
_MAX_HEADER_BYTES = 24_000_000
# Quotes, field names, dtype and two offsets of up to 10 digits; and of each dimension.
_ENTRY_BYTES, _DIMENSION_BYTES = 75, 5


@dataclass
class _Section:
    """The tensors of one dtype, in row order. Equal names are of tensors of which the last one counts."""

    names: list[str] = field(default_factory=list)
    shapes: list[tuple[int, ...]] = field(default_factory=list)
    sizes: list[int] = field(default_factory=list)
    parts: list[Array] = field(default_factory=list)
    copied: int = 0


@dataclass
class KeyShards:
    """Rows to shards of about `shard_bytes`. Rows that fill no shard wait for more."""

    shards: Shards
    shard_bytes: int
    separator: str
    duplicates: Duplicates

    def __post_init__(self) -> None:
        self._reset()

    def _reset(self) -> None:
        self._sections: dict[str, _Section] = {}
        # The section of each tensor, its place there, and its column.
        self._places: dict[str, tuple[str, int, str]] = {}
        self._replaced: set[tuple[str, int]] = set()
        self._rows, self._bytes, self._header, self._last = 0, 0, 0, 0

    def write(self, keys: Sequence[str], columns: Sequence[KeyedRows]) -> None:
        """Write rows: their keys, and their tensors of each column."""
        names = [column.columns[0].name for column in columns]
        tensor_names = [keys if len(names) == 1 else [key + self.separator + name for key in keys] for name in names]
        headers, sizes = np.zeros(len(keys), np.int64), np.zeros(len(keys), np.int64)
        for named, column in zip(tensor_names, columns, strict=True):
            headers += _header_bytes(named, column)
            sizes += column.sizes
        start = 0
        while start < len(keys):
            end = self._end(start, sizes, headers)
            if end > start:
                self._add(start, end, tensor_names, columns)
                self._rows += end - start
                self._bytes += int(sizes[start:end].sum())
                self._header += int(headers[start:end].sum())
                self._last = int(sizes[end - 1] + headers[end - 1])
                start = end
            if start < len(keys):
                self._close(len(columns))
        self._own()

    def _end(self, start: int, sizes: Array, headers: Array) -> int:
        """The first row that belongs to the next shard."""
        fit = rows_that_fit((sizes + headers)[start:], self._bytes + self._header, self._last, self.shard_bytes)
        of_header = np.cumsum(headers[start:]) - headers[start:]
        return start + min(fit, int(np.searchsorted(of_header, _MAX_HEADER_BYTES - self._header, "right")))

    def _add(self, start: int, end: int, tensor_names: Sequence[Sequence[str]], columns: Sequence[KeyedRows]) -> None:
        for row in range(start, end):
            for names, column in zip(tensor_names, columns, strict=True):
                self._note(names[row], column, row)
        by_dtype: dict[str, list[KeyedRows]] = {}
        if not all(column.is_alike for column in columns):
            for row in range(start, end):
                for column in columns:
                    self._section(str(column.column(row).dtype)).parts.append(column.bytes_of(row))
            return
        for column in columns:
            by_dtype.setdefault(str(column.columns[0].dtype), []).append(column)
        for dtype, alike in by_dtype.items():
            tables = [column.table(start, end) for column in alike]
            self._section(dtype).parts.append(tables[0] if len(tables) == 1 else np.concatenate(tables, axis=1))

    def _note(self, name: str, column: KeyedRows, row: int) -> None:
        known = column.column(row)
        dtype = str(known.dtype)
        section = self._section(dtype)
        before = self._places.get(name)
        if before is not None:
            self._replace(name, known.name, before)
        self._places[name] = (dtype, len(section.names), known.name)
        section.names.append(name)
        section.shapes.append(known.shape or ())
        section.sizes.append(int(column.sizes[row]))

    def _section(self, dtype: str) -> _Section:
        return self._sections.setdefault(dtype, _Section())

    def _replace(self, name: str, column: str, before: tuple[str, int, str]) -> None:
        if before[2] != column:
            pairs = " and ".join(
                f"key `{name[: len(name) - len(self.separator) - len(one)]}` of column `{one}`"
                for one in (before[2], column)
            )
            raise InvalidWriteError(
                f"The tensor name `{name}` stands for two tensors, {pairs}. Rename a column, or set `kv_separator` to "
                "a text that neither keys nor columns contain."
            )
        if self.duplicates == "fail":
            raise InvalidWriteError(
                f"Column `{column}`: the key `{name}` occurs twice in one shard. Make keys unique, or set "
                "`duplicates_strategy` to `lastWin`."
            )
        self._replaced.add(before[:2])

    def _own(self) -> None:
        """Copy what waits: the caller may change its arrays."""
        for section in self._sections.values():
            if len(section.parts) - section.copied > 1:
                section.parts[section.copied :] = [
                    np.concatenate([one.reshape(-1) for one in section.parts[section.copied :]])
                ]
            elif len(section.parts) > section.copied:
                section.parts[-1] = section.parts[-1].copy()
            section.copied = len(section.parts)

    def finish(self) -> None:
        """Write the rows that wait."""
        if self._rows:
            self._close(len({column for _, _, column in self._places.values()}))

    def _close(self, columns: int) -> None:
        infos: list[TensorInfo] = []
        payload: list[Array] = []
        begin = 0
        for dtype in sorted(self._sections, key=lambda dtype: order(dtype, "")):
            section = self._sections[dtype]
            replaced = {place for of, place in self._replaced if of == dtype}
            payload += _without(section, replaced) if replaced else section.parts
            for place, (name, shape, size) in enumerate(zip(section.names, section.shapes, section.sizes, strict=True)):
                if place not in replaced:
                    infos.append(TensorInfo(name, dtype, shape, begin, begin + size))
                    begin += size
        self.shards.write(infos, payload, len(self._places) // columns, self.shards.metadata)
        self._reset()


def _header_bytes(names: Sequence[str], column: KeyedRows) -> Array:
    dims = [len(one.shape or ()) for one in column.columns]
    of_dims = np.array(dims if len(dims) > 1 else dims * len(names), np.int64) * _DIMENSION_BYTES
    lengths: Array = np.fromiter((name_bytes(name) for name in names), np.int64, len(names))
    return lengths + _ENTRY_BYTES + of_dims


def _without(section: _Section, replaced: set[int]) -> list[Array]:
    """The bytes of the tensors that were not replaced."""
    whole = np.concatenate([part.reshape(-1) for part in section.parts])
    ends = np.cumsum(section.sizes)
    return [
        whole[end - size : end]
        for place, (end, size) in enumerate(zip(ends.tolist(), section.sizes, strict=True))
        if place not in replaced
    ]
