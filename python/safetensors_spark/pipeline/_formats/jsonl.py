"""JSON, a record on each line."""

from __future__ import annotations

import bz2
import json
import lzma
import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import Any, BinaryIO, cast

from safetensors_spark._errors import PipelineError
from safetensors_spark._files.secrets import without_secrets
from safetensors_spark.pipeline._formats.lines import count_lines, lines_of
from safetensors_spark.pipeline._formats.reading import Bad, explained, opened
from safetensors_spark.pipeline._formats.selecting import loaded
from safetensors_spark.pipeline._operations import Load
from safetensors_spark.pipeline._source import FilePart

# Lines that are written at a time, and their bytes.
_LINES, _BYTES = 512, 4 << 20
# Of ISA-L, whose highest is 3: a tenth of the time of zlib's level 6, and a fifteenth more bytes.
_LEVEL = 3


def read(path: str, load: Load, bad: Bad, part: FilePart | None = None) -> Iterator[Any]:
    """The records of a file, which errors tell by their lines, or those of a part of its bytes."""
    return loaded(_records(path, bad, part or FilePart(path, 0, sys.maxsize)), load, bad)


def _records(path: str, bad: Bad, part: FilePart) -> Iterator[Any]:
    from orjson import JSONDecodeError, loads

    count = 0
    with explained(path), opened(path) as file:
        for lines in lines_of(file, part.start, part.end):
            try:
                records = list(map(loads, lines))
            except JSONDecodeError:
                yield from _one_by_one(path, lines, part, count, bad)
            else:
                yield from records
            count += len(lines)


def _one_by_one(path: str, lines: list[bytes], part: FilePart, before: int, bad: Bad) -> Iterator[Any]:
    """The records of lines some of which orjson does not take."""
    from orjson import JSONDecodeError, loads

    for number, line in enumerate(lines, before + 1):
        try:
            record = loads(line)
        except JSONDecodeError:
            if not line.strip():
                continue
            try:
                # It takes what orjson does not: NaN and long integers.
                record = json.loads(line, parse_int=_whole)
            except (ValueError, RecursionError) as error:
                place = _lines_before(part) + number
                bad(line, PipelineError(f"{without_secrets(path)}, line {place} is not JSON: {error}"))
                continue
        yield record


def _whole(text: str) -> int | float:
    """An integer, as orjson takes it."""
    number = int(text)
    return number if -(2**63) <= number < 2**64 else float(text)


def _lines_before(part: FilePart) -> int:
    if not part.start:
        return 0
    with opened(part.path) as file:
        return count_lines(file, part.start)


def write(rows: Iterable[Any], file: BinaryIO, name: str, options: dict[str, Any]) -> int:
    """A line for each row. Returns how many there are."""
    from orjson import OPT_APPEND_NEWLINE, OPT_SERIALIZE_NUMPY, dumps

    option = OPT_APPEND_NEWLINE | OPT_SERIALIZE_NUMPY
    count = size = 0
    lines: list[bytes] = []
    with _compressed(name.lower(), file) as content:
        for row in rows:
            try:
                lines.append(dumps(row, None, option))
            except TypeError as error:
                raise _unfit(name, row, count + len(lines), lambda value: dumps(value, None, option), error) from None
            size += len(lines[-1])
            if len(lines) == _LINES or size >= _BYTES:
                content.write(b"".join(lines))
                count += len(lines)
                lines.clear()
                size = 0
        content.write(b"".join(lines))
    return count + len(lines)


@contextmanager
def _compressed(name: str, file: BinaryIO) -> Iterator[BinaryIO]:
    if name.endswith((".gz", ".gzip")):
        from isal.igzip import IGzipFile

        # Without name and time, so that the same rows are the same bytes.
        with IGzipFile("", "wb", _LEVEL, file, 0) as content:  # type: ignore[no-untyped-call]
            yield cast(BinaryIO, content)
    elif name.endswith((".zst", ".zstd")):
        import zstandard

        with zstandard.ZstdCompressor().stream_writer(file, closefd=False) as content:
            yield cast(BinaryIO, content)
    elif name.endswith(".xz"):
        with lzma.open(file, "wb") as content:
            yield cast(BinaryIO, content)
    elif name.endswith(".bz2"):
        with bz2.open(file, "wb") as content:
            yield cast(BinaryIO, content)
    else:
        yield file


def _unfit(name: str, row: Any, number: int, dumps: Callable[[Any], object], error: Exception) -> PipelineError:
    """The error that names the value that JSON does not have."""
    path, value, why = _culprit(row, dumps, error)
    what = path.removeprefix(".") or "it"
    return PipelineError(
        f"{without_secrets(name)}: row {number} of the shard cannot be a line of JSON: {what} is "
        f"{value!r:.200}, of type {type(value).__name__} ({why}). Make it text or a number in a `map` before, or write "
        "Parquet."
    )


def _culprit(value: Any, dumps: Callable[[Any], object], error: Exception) -> tuple[str, Any, Exception]:
    """The innermost value that is not written, with the path to it."""
    if isinstance(value, dict):
        parts = [(f".{key}", one) for key, one in value.items()]
    elif isinstance(value, list | tuple):
        parts = [(f"[{place}]", one) for place, one in enumerate(value)]
    else:
        parts = []
    for step, one in parts:
        try:
            dumps(one)
        except TypeError as inner:
            path, found, why = _culprit(one, dumps, inner)
            return f"{step}{path}", found, why
    return "", value, error
