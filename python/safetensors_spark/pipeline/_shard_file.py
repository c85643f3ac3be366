"""What a stage has made of a shard: one file of frames, in partitions for the stage after it, and a footer.

    magic, frames, footer (JSON), CRC-32 of the footer (4 bytes), its length (8 bytes), magic

A file that does not end like that is none: a machine stopped while it was written.
"""

from __future__ import annotations

import json
import struct
import zlib
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, BinaryIO

from safetensors_spark._errors import PipelineError
from safetensors_spark._files.commit.target import Target
from safetensors_spark.pipeline._frames import decode, encode, weight

_MAGIC = b"STSPIPE1"
_END = struct.Struct("<IQ8s")
# What pickled rows have of classes that the script itself defines: by name, or by value.
_OF_SCRIPT = (b"\x8c\x08__main__", b"\x8c\x17cloudpickle.cloudpickle")
# Rows of a frame.
_FRAME_ROWS = 2048


@dataclass(frozen=True)
class Frame:
    """Where rows of a partition are in the file. Rows of one run are sorted."""

    partition: int
    run: int
    offset: int
    length: int
    rows: int
    crc32: int


@dataclass
class Footer:
    """What is known of a shard.

    Attributes:
        rows: how many it has become.
        read: how many rows it was made of.
        bytes: of the file that it has written, if it has.
        counters: by the names that functions gave them.
        seconds: what it took.
        files: those that rows have named and an operation has read, with their versions.
        is_skipped: what it would write was there, and was kept.
        is_bound: to the process of the user's script, whose classes its rows have: another process has others.
    """

    rows: int = 0
    read: int = 0
    bytes: int = 0
    quarantined: int = 0
    seconds: float = 0.0
    counters: dict[str, int] = field(default_factory=dict)
    version: str = ""
    files: dict[str, str] = field(default_factory=dict)
    is_skipped: bool = False
    is_bound: bool = False


class FrameWriter:
    """Writes frames, and then the footer."""

    def __init__(self, file: BinaryIO, frame_bytes: int) -> None:
        self._file, self._frame_bytes = file, frame_bytes
        self._frames: list[Frame] = []
        self._offset = file.write(_MAGIC)
        self._is_bound = False

    def write(self, rows: Iterable[Any], partition: int = 0, run: int = 0) -> int:
        """Write rows of one partition and run. Returns how many there are."""
        count = total = 0
        pending: list[Any] = []
        for row in rows:
            pending.append(row)
            total += weight(row)
            if total >= self._frame_bytes or len(pending) == _FRAME_ROWS:
                count += self._write(pending, partition, run)
                pending, total = [], 0
        return count + self._write(pending, partition, run)

    def _write(self, rows: list[Any], partition: int, run: int) -> int:
        if rows:
            self.add(encode(rows), len(rows), partition, run)
        return len(rows)

    def add(self, content: bytes, rows: int, partition: int = 0, run: int = 0) -> None:
        """Write a frame of which the bytes are known."""
        self._file.write(content)
        self._is_bound = self._is_bound or any(one in content for one in _OF_SCRIPT)
        self._frames.append(Frame(partition, run, self._offset, len(content), rows, zlib.crc32(content)))
        self._offset += len(content)

    def finish(self, footer: Footer, order: Sequence[int] | None = None) -> None:
        """Write the footer.

        Args:
            order: of the frames, by their numbers, where it is not that in which they were written.
        """
        frames = [list(vars(self._frames[at]).values()) for at in order or range(len(self._frames))]
        footer.is_bound = self._is_bound
        content = json.dumps(vars(footer) | {"frames": frames}).encode()
        self._file.write(content)
        self._file.write(_END.pack(zlib.crc32(content), len(content), _MAGIC))


def _footer(content: bytes, size: int) -> tuple[Footer, list[Frame]]:
    """What the JSON at the end of a file of this size says. Raises ValueError and others where it is not ours."""
    found: dict[str, Any] = json.loads(content)
    frames = [Frame(*one) for one in found.pop("frames")]
    for frame in frames:
        numbers = list(vars(frame).values())
        if any(type(one) is not int or one < 0 for one in numbers) or frame.offset + frame.length > size:
            raise ValueError(frame)
    footer = Footer(**found)
    if any(
        type(one) is not type(wanted)
        for one, wanted in zip(vars(footer).values(), vars(Footer()).values(), strict=True)
    ):
        raise ValueError(footer)
    return footer, frames


class ShardFile:
    """Reads what a stage has made of a shard."""

    def __init__(self, target: Target, name: str) -> None:
        self._target, self._name = target, name
        self.footer, self.frames = self._read_footer()

    def _read_footer(self) -> tuple[Footer, list[Frame]]:
        size = self._target.folder.size(self._name)
        tail = self._target.folder.read(self._name, max(0, size - 65_536), size)
        if len(tail) < _END.size:
            raise self._damaged()
        crc32, length, magic = _END.unpack(tail[-_END.size :])
        if magic != _MAGIC or length + _END.size > size:
            raise self._damaged()
        if length + _END.size > len(tail):
            tail = self._target.folder.read(self._name, size - length - _END.size, size)
        content = tail[-_END.size - length : -_END.size]
        if zlib.crc32(content) != crc32:
            raise self._damaged()
        try:
            return _footer(content, size)
        except (ValueError, LookupError, TypeError, AttributeError, RecursionError):
            raise self._damaged() from None

    @property
    def rows_inside(self) -> int:
        """How many rows the file has: of a shard that was written elsewhere, its path."""
        return sum(frame.rows for frame in self.frames)

    def rows(self, frames: Iterable[Frame] | None = None) -> Iterator[Any]:
        """The rows of these frames, or of all, one frame in memory at a time."""
        for frame in self.frames if frames is None else frames:
            yield from self.read(frame)

    def read(self, frame: Frame) -> list[Any]:
        return decode(self.content(frame))

    def content(self, frame: Frame) -> bytes:
        content = self._target.folder.read(self._name, frame.offset, frame.offset + frame.length)
        if zlib.crc32(content) != frame.crc32:
            raise self._damaged()
        return content

    def _damaged(self) -> PipelineError:
        return PipelineError(
            f"{self._target.location}/{self._name} is not what a stage has written: its end is missing, or bytes have "
            "changed. Delete it, and run the pipeline again."
        )
