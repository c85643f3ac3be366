"""What all formats have in common: rows that processes read part by part."""

from __future__ import annotations

import tarfile
import zlib
from abc import ABC, abstractmethod
from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager
from itertools import pairwise
from pathlib import Path
from typing import Any

from safetensors_spark._errors import InvalidWriteError, SafetensorsSparkError

# What libraries raise for files that are not of their format; those of Arrow are among them.
_DAMAGE = (
    ArithmeticError,
    EOFError,
    LookupError,
    NotImplementedError,
    OSError,
    ValueError,
    tarfile.TarError,
    zlib.error,
)


class Part(ABC):
    """Rows that one process reads. It is sent there: it has paths and numbers, no data."""

    @abstractmethod
    def batches(self) -> Iterator[Any]:
        """The rows, some megabytes at a time, as `DatasetWriter.write` takes them."""


class Source(ABC):
    """A dataset of another format."""

    @abstractmethod
    def parts(self, count: int) -> Sequence[Part]:
        """All rows, in order, in about so many parts of about the same size."""

    def ragged(self) -> Collection[str]:
        """The columns whose rows differ in their first dimension, as far as the format or the first rows tell."""
        return ()


@contextmanager
def reading(path: Path) -> Iterator[None]:
    """Raises `InvalidWriteError`, which names the file, for what libraries raise of its content."""
    try:
        yield
    except SafetensorsSparkError:
        raise
    except _DAMAGE as error:
        # Of the file system: it names the file, and nothing is wrong with its content.
        if isinstance(error, OSError) and error.errno is not None:
            raise
        what = " ".join(str(error).split()).rstrip(".") or type(error).__name__
        raise InvalidWriteError(
            f"{path} cannot be read: {what}. Copy it again if it is cut off or damaged; else write it again, as its "
            "format has it."
        ) from error


def split(total: int, count: int) -> list[tuple[int, int]]:
    """The numbers below `total` as so many ranges, or fewer, of about the same length."""
    bounds = [total * number // count for number in range(count + 1)]
    return [(start, end) for start, end in pairwise(bounds) if start < end]


def files_in(path: Path, *suffixes: str) -> list[Path]:
    """The file itself, or the files of a folder that have one of the suffixes, by name; hidden ones left out."""
    if path.is_file():
        return [path] if path.name.endswith(suffixes) else []
    if not path.is_dir():
        return []
    found = (one for one in path.rglob("*") if one.name.endswith(suffixes) and one.is_file())
    return sorted(one for one in found if not any(part[0] in "._" for part in one.relative_to(path).parts))
