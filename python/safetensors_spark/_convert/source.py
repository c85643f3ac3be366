"""What all formats have in common: rows that processes read part by part."""

from __future__ import annotations

import tarfile
import zlib
from abc import ABC, abstractmethod
from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
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


@dataclass(frozen=True)
class Rows:
    """Some rows of a file.

    Attributes:
        first: the number that the first of them has in the file.
        batch: as `DatasetWriter.write` takes them.
    """

    file: Path
    first: int
    batch: Any


@dataclass(frozen=True)
class Part(ABC):
    """Rows that one process reads. It is sent there: it has paths and numbers, no data.

    Attributes:
        size: about how many bytes the rows have.
    """

    size: int

    @abstractmethod
    def rows(self) -> Iterator[Rows]:
        """The rows, some megabytes at a time."""


class Source(ABC):
    """A dataset of another format."""

    @abstractmethod
    def parts(self, count: int) -> Sequence[Part]:
        """All rows, in order, in about so many parts of about the same size."""

    def ragged(self) -> Collection[str]:
        """The columns whose rows differ in their first dimension, as far as the format or the first rows tell."""
        return ()


@dataclass(frozen=True)
class Parts(Part):
    """Parts that follow each other, read by one process."""

    parts: tuple[Part, ...]

    def rows(self) -> Iterator[Rows]:
        for part in self.parts:
            yield from part.rows()


def together(parts: Sequence[Part]) -> Parts:
    """Parts that follow each other, as one."""
    return Parts(sum(part.size for part in parts), tuple(parts))


def joined(parts: Sequence[Part], size: int) -> list[Part]:
    """The same rows in fewer parts: those that follow each other together, as many as have so many bytes."""
    found: list[list[Part]] = []
    filled = size
    for part in parts:
        if filled + part.size > size:
            found.append([])
            filled = 0
        found[-1].append(part)
        filled += part.size
    return [together(some) for some in found]


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
            f"{path} cannot be read: {what}. Copy it again if it is truncated or damaged; else write it again, as its "
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
    return sorted(one for one in found if not any(map(_is_hidden, one.relative_to(path).parts)))


def _is_hidden(name: str) -> bool:
    # As Spark has it, `_key=value` is a partition.
    return name[0] == "." or (name[0] == "_" and "=" not in name)
