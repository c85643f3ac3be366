"""WebDataset: tar files whose members `key.extension` are the columns of a sample."""

from __future__ import annotations

import io
import tarfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from safetensors_spark._convert.source import Part, Rows, Source, files_in, reading
from safetensors_spark._errors import InvalidWriteError

if TYPE_CHECKING:
    from typing_extensions import Self

_BYTES = 32 << 20
# Of a sample: no value of Spark has more.
_MOST = (1 << 31) - 1
_TEXT = ("txt", "text", "json", "transcript")
_NUMBERS = ("cls", "cls2", "class", "count", "index", "inx", "id")


class _Member(tarfile.TarInfo):
    """A member. Without this, files would end at a damaged header, and where they are cut off, as if that were all."""

    @classmethod
    def frombuf(cls, buf: bytes | bytearray, encoding: str, errors: str) -> Self:
        if len(buf) < tarfile.BLOCKSIZE:
            raise tarfile.ReadError(
                "it is truncated, or has no end of 1,024 zero bytes, which may be added if nothing is missing"
            )
        try:
            return super().frombuf(buf, encoding, errors)
        except tarfile.HeaderError as error:
            if any(buf):
                raise tarfile.ReadError(f"a header is damaged ({error})") from None
            raise


def _check_end(tar: tarfile.TarFile) -> None:
    """Raise `ReadError` if something follows the end of the archive, such as another one."""
    file = tar.fileobj
    assert file is not None
    file.seek(tar.offset)
    while chunk := file.read(_BYTES):
        if any(chunk):
            raise tarfile.ReadError("something follows its end, such as another tar file: keep them apart")


@dataclass(frozen=True)
class _Tar(Part):
    path: Path
    columns: tuple[str, ...] | None

    def rows(self) -> Iterator[Rows]:
        waiting: list[dict[str, Any]] = []
        first = size = 0
        for sample, length in self._samples():
            waiting.append(sample)
            size += length
            if size >= _BYTES:
                yield self._stacked(first, waiting)
                first, waiting, size = first + len(waiting), [], 0
        if waiting:
            yield self._stacked(first, waiting)

    def _samples(self) -> Iterator[tuple[dict[str, Any], int]]:
        """Samples, each with its bytes. The members of one follow each other."""
        sample: dict[str, Any] = {}
        size = 0
        with reading(self.path), tarfile.open(self.path, tarinfo=_Member) as tar:
            for member in tar:
                folder, _, name = member.name.rpartition("/")
                stem, _, extension = name.partition(".")
                if not (member.isfile() or member.islnk() or member.issym()) or not stem or not extension:
                    continue
                key = f"{folder}/{stem}" if folder else stem
                if sample and sample["__key__"] != key:
                    yield sample, size
                    sample, size = {}, 0
                sample["__key__"] = key
                column = extension.lower()
                if column in sample:
                    what = (
                        "has a name that samples have"
                        if column == "__key__"
                        else f"is the second `{column}` of `{key}`"
                    )
                    raise InvalidWriteError(f"{self.path}: {member.name} {what}. Write the file again without it.")
                if self.columns is None or column in self.columns:
                    content = self._content(tar, member, _MOST - size)
                    sample[column] = self._value(member.name, column, content)
                    size += len(content)
            _check_end(tar)
        if sample:
            yield sample, size

    def _content(self, tar: tarfile.TarFile, member: tarfile.TarInfo, room: int) -> bytes:
        file = tar.extractfile(member)
        content = file.read(room + 1) if file and member.size <= room else b""
        if max(len(content), member.size) > room:
            raise InvalidWriteError(
                f"{self.path}: the sample of {member.name} has more than {_MOST:,} bytes, and each is held in memory. "
                "Leave columns out with `--columns`."
            )
        return content

    def _value(self, member: str, column: str, content: bytes) -> Any:
        last = column.rpartition(".")[2]
        try:
            if last in _TEXT:
                return content.decode()
            if last in _NUMBERS:
                return int(content)
            if last == "npy":
                return np.load(io.BytesIO(content))
        except (ValueError, MemoryError) as error:
            raise InvalidWriteError(f"{self.path}: {member} is no .{last} ({error}).") from None
        return content

    def _stacked(self, first: int, samples: list[dict[str, Any]]) -> Rows:
        names = samples[0].keys()
        for sample in samples:
            if sample.keys() != names:
                raise InvalidWriteError(
                    f"{self.path}: sample `{sample['__key__']}` has {', '.join(sorted(sample))}, but others have "
                    f"{', '.join(sorted(names))}. Choose columns that all have with `--columns`."
                )
        return Rows(self.path, first, {name: [sample[name] for sample in samples] for name in names})


@dataclass(frozen=True)
class WebDatasetSource(Source):
    files: tuple[Path, ...]
    columns: tuple[str, ...] | None

    def parts(self, count: int) -> Sequence[Part]:
        """One of each file: a tar file tells nothing of its members but in order."""
        return [_Tar(path.stat().st_size, path, self.columns) for path in self.files]


def find(path: Path, columns: tuple[str, ...] | None) -> Source | None:
    files = files_in(path, ".tar", ".tar.gz", ".tgz")
    return WebDatasetSource(tuple(files), columns) if files else None
