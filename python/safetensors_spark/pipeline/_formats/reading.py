"""What readers of all formats have in common."""

from __future__ import annotations

import bz2
import io
import lzma
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import PurePath
from typing import Any, BinaryIO, cast

from safetensors_spark._errors import PipelineError
from safetensors_spark._files.secrets import without_secrets
from safetensors_spark.pipeline._paths import files_of, own_name

# What a reader calls with a record that cannot be read, and why. It raises, or keeps the record apart.
Bad = Callable[[Any, Exception], None]

# What libraries raise for files that are cut off, or are not of their format.
_DAMAGE = (EOFError, LookupError, NotImplementedError, ValueError, lzma.LZMAError)

_SUFFIXES = {
    ".jsonl": "jsonl",
    ".ndjson": "jsonl",
    ".json": "jsonl",
    ".parquet": "parquet",
    ".vortex": "vortex",
    ".safetensors": "safetensors",
}
# Bytes that are read at a time.
_AT_ONCE = 128 << 10
_COMPRESSED = (".gz", ".gzip", ".zst", ".zstd", ".xz", ".bz2")


def raise_error(_: Any, error: Exception) -> None:
    raise error


def format_of(path: str) -> str:
    """The format that a path's suffix tells. Raises `PipelineError` if it tells none."""
    name = own_name(path).lower()
    for suffix in _COMPRESSED:
        name = name.removesuffix(suffix)
    found = _SUFFIXES.get(PurePath(name).suffix)
    if found is None:
        raise PipelineError(
            f"{without_secrets(path)} has no suffix that tells its format: {', '.join(_SUFFIXES)}. Name the format: "
            "load_jsonl, load_parquet, load_vortex or load_safetensors."
        )
    return found


def is_compressed(path: str) -> bool:
    return own_name(path).lower().endswith(_COMPRESSED)


@contextmanager
def opened(path: str) -> Iterator[BinaryIO]:
    """The file's bytes, without the compression that its name tells."""
    files, place = files_of(path)
    with files.open(place, "rb") as file, decompressed(path, file) as content:
        yield content


@contextmanager
def decompressed(path: str, file: BinaryIO) -> Iterator[BinaryIO]:
    name = own_name(path).lower()
    if name.endswith(_COMPRESSED):
        # Not all libraries say so.
        if not file.read(1):
            raise EOFError("it has no bytes, and compressed files are never empty")
        file.seek(0)
    if name.endswith((".gz", ".gzip")):
        from isal.igzip import IGzipFile
        from isal.igzip_lib import IsalError

        # It takes a third of the time of Python's.
        try:
            with IGzipFile(fileobj=file, mode="rb") as content:  # type: ignore[no-untyped-call]
                yield cast(BinaryIO, content)
        except IsalError as error:  # type: ignore[misc]
            raise ValueError(str(error)) from None
    elif name.endswith((".zst", ".zstd")):
        yield cast(BinaryIO, io.BufferedReader(_Zstandard(file), _AT_ONCE))
    elif name.endswith(".xz"):
        with lzma.open(file, "rb") as content:
            yield cast(BinaryIO, content)
    elif name.endswith(".bz2"):
        with bz2.open(file, "rb") as content:
            yield cast(BinaryIO, content)
    else:
        yield file


class _Zstandard(io.RawIOBase):
    """Frames of Zstandard, one after the other. The library's own reader does not tell that a file is truncated."""

    def __init__(self, file: BinaryIO) -> None:
        import zstandard

        self._file, self._library = file, zstandard.ZstdDecompressor()
        self._error: type[Exception] = zstandard.ZstdError
        self._frame: Any = None
        self._left = b""

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        while not self._left:
            content = self._next()
            if content is None:
                return 0
            self._left = content
        count = min(len(buffer), len(self._left))
        buffer[:count], self._left = self._left[:count], self._left[count:]
        return count

    def _next(self) -> bytes | None:
        found = b"" if self._frame is None else self._frame.unused_data
        if self._frame is not None and self._frame.eof:
            self._frame = None
        found = found or self._file.read(_AT_ONCE)
        if not found:
            if self._frame is not None:
                raise EOFError("it ends within a frame of Zstandard")
            return None
        self._frame = self._frame or self._library.decompressobj()
        try:
            content: bytes = self._frame.decompress(found)
        except self._error as error:
            raise ValueError(str(error)) from None
        return content


@contextmanager
def explained(path: str, *damage: type[Exception]) -> Iterator[None]:
    """Raises `PipelineError`, which names the file, for what libraries raise of its content, `damage` too."""
    try:
        yield
    except PipelineError:
        raise
    except (OSError, *_DAMAGE, *damage) as error:  # type: ignore[misc]
        if isinstance(error, OSError) and (
            error.errno is not None or isinstance(error, ConnectionError | TimeoutError)
        ):
            raise
        # Libraries written in Rust add where they were.
        what = " ".join(str(error).partition("Backtrace:")[0].split()).rstrip(".") or type(error).__name__
        raise PipelineError(
            f"{without_secrets(path)} cannot be read: {what}. Copy it again, or leave it out."
        ) from error
