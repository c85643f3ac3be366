"""WebDataset: tar files whose members `key.extension` are the columns of a sample."""

from __future__ import annotations

import io
import tarfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from safetensors_spark._convert.source import Part, Source, files_in
from safetensors_spark._errors import InvalidWriteError

_BYTES = 32 << 20
_TEXT = ("txt", "text", "json", "transcript")
_NUMBERS = ("cls", "cls2", "class", "count", "index", "inx", "id")


@dataclass(frozen=True)
class _Tar(Part):
    path: Path
    columns: tuple[str, ...] | None

    def batches(self) -> Iterator[Any]:
        waiting: list[dict[str, Any]] = []
        size = 0
        for sample, length in self._samples():
            waiting.append(sample)
            size += length
            if size >= _BYTES:
                yield self._stacked(waiting)
                waiting, size = [], 0
        if waiting:
            yield self._stacked(waiting)

    def _samples(self) -> Iterator[tuple[dict[str, Any], int]]:
        """Samples, each with its bytes. The members of one follow each other."""
        sample: dict[str, Any] = {}
        size = 0
        with tarfile.open(self.path) as tar:
            for member in tar:
                folder, _, name = member.name.rpartition("/")
                stem, _, extension = name.partition(".")
                if not member.isfile() or not stem or not extension:
                    continue
                key = f"{folder}/{stem}" if folder else stem
                if sample and sample["__key__"] != key:
                    yield sample, size
                    sample, size = {}, 0
                sample["__key__"] = key
                column = extension.lower()
                if self.columns is None or column in self.columns:
                    content = tar.extractfile(member)
                    sample[column] = self._value(member.name, column, content.read() if content else b"")
                    size += member.size
        if sample:
            yield sample, size

    def _value(self, member: str, column: str, content: bytes) -> Any:
        last = column.rpartition(".")[2]
        try:
            if last in _TEXT:
                return content.decode()
            if last in _NUMBERS:
                return int(content)
            if last == "npy":
                return np.load(io.BytesIO(content))
        except ValueError as error:
            raise InvalidWriteError(f"{self.path}: {member} is no .{last} ({error}).") from None
        return content

    def _stacked(self, samples: list[dict[str, Any]]) -> dict[str, list[Any]]:
        names = samples[0].keys()
        for sample in samples:
            if sample.keys() != names:
                raise InvalidWriteError(
                    f"{self.path}: sample `{sample['__key__']}` has {', '.join(sorted(sample))}, but others have "
                    f"{', '.join(sorted(names))}. Choose columns that all have with `--columns`."
                )
        return {name: [sample[name] for sample in samples] for name in names}


@dataclass(frozen=True)
class WebDatasetSource(Source):
    files: tuple[Path, ...]
    columns: tuple[str, ...] | None

    def parts(self, count: int) -> Sequence[Part]:
        """One of each file: a tar file tells nothing of its members but in order."""
        return [_Tar(path, self.columns) for path in self.files]


def find(path: Path, columns: tuple[str, ...] | None) -> Source | None:
    files = files_in(path, ".tar", ".tar.gz", ".tgz")
    return WebDatasetSource(tuple(files), columns) if files else None
