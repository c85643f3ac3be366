"""Where rows come from: files by name, or items. Each becomes a shard."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from glob import escape
from pathlib import Path
from typing import Any, Protocol
from uuid import uuid4

from safetensors_spark._errors import PipelineError, counted
from safetensors_spark._files.manifest import MANIFEST
from safetensors_spark._files.remote import version_of
from safetensors_spark._files.secrets import without_secrets
from safetensors_spark._files.storage import checked_path
from safetensors_spark.pipeline._failures import ChangedFileError
from safetensors_spark.pipeline._fingerprint import fingerprint
from safetensors_spark.pipeline._paths import FOLDER, QUARANTINE, files_of, is_local, url_of

# Files that are asked for their sizes at the same time.
_THREADS = 16


@dataclass(frozen=True)
class SourceShard:
    """The first rows of a shard: mostly one, a path or an item.

    Attributes:
        version: tells the files that the rows name from others of the same name; empty for items.
        bytes: of these files.
    """

    rows: tuple[Any, ...]
    version: str = ""
    bytes: int = 0


@dataclass(frozen=True)
class FilePart:
    """A part of a file, which is the row of a path where files are divided.

    Attributes:
        start, end: from one to before another, in what the format divides a file by: row groups, or bytes.
        version: of the file that was divided; another one has other parts.
    """

    path: str
    start: int
    end: int
    version: str = ""

    def check(self) -> None:
        """Raises `ChangedFileError` if the file is no longer the one that was divided."""
        if shard_of_file(self.path, about_file(self.path)).version != self.version:
            raise ChangedFileError(
                f"{without_secrets(self.path)} has changed since the plan divided it, so its parts are not those of "
                "one file. Run the pipeline again when nobody writes it."
            )


class Source(Protocol):
    def shards(self) -> list[SourceShard]: ...


@dataclass(frozen=True)
class ItemSource:
    items: tuple[Any, ...]

    def shards(self) -> list[SourceShard]:
        return [SourceShard((item,)) for item in self.items]

    def __str__(self) -> str:
        return counted(len(self.items), "item")


@dataclass(frozen=True)
class FileSource:
    path: str
    pattern: str | None = None
    empty_glob_ok: bool = False

    def shards(self) -> list[SourceShard]:
        found = {path: about for pattern in self._globs() for path, about in _glob(pattern)}
        if not found and not self.empty_glob_ok:
            raise FileNotFoundError(f"no file matches {without_secrets(self.glob)}; `empty_glob_ok=True` allows that")
        return [shard_of_file(path, about) for path, about in sorted(found.items())]

    def _globs(self) -> list[str]:
        text = checked_path(self.path)
        if self.pattern is None:
            files, place = files_of(text)
            # A name may look like a pattern.
            return [escape(text)] if is_local(files) and Path(place).is_file() else expand_braces(text)
        return [f"{escape(text).rstrip('/')}/{one.lstrip('/')}" for one in expand_braces(self.pattern)]

    @property
    def glob(self) -> str:
        return self.path if self.pattern is None else f"{self.path.rstrip('/')}/{self.pattern.lstrip('/')}"

    def __str__(self) -> str:
        return f"files {without_secrets(self.glob)}"


@dataclass(frozen=True)
class SampleRange:
    """Samples of a safetensors dataset, from one to before another."""

    dataset: Any
    start: int
    end: int


@dataclass(frozen=True)
class DatasetSource:
    """The samples of a safetensors dataset: those of a file are a shard."""

    dataset: Any

    def shards(self) -> list[SourceShard]:
        samples = self.dataset.samples
        ends = [*samples.begins[1:].tolist(), len(samples)]
        return [
            SourceShard((SampleRange(self.dataset, begin, end),), samples.fingerprint, shard.bytes or 0)
            for shard, begin, end in zip(samples.shards, samples.begins.tolist(), ends, strict=True)
        ]

    def __str__(self) -> str:
        return f"dataset {self.dataset.samples.location}"


@dataclass(frozen=True)
class FramePartition:
    """A partition of a Spark DataFrame, whose rows are on Spark's executors: only the driver has the frame."""

    frame: Any
    number: int

    def __reduce__(self) -> tuple[Any, ...]:
        return FramePartition, (None, self.number)


@dataclass(frozen=True)
class FrameSource:
    """The rows of a Spark DataFrame: those of a partition are a shard."""

    frame: Any

    def shards(self) -> list[SourceShard]:
        if type(self.frame).__module__.startswith("pyspark.sql.connect"):
            raise PipelineError(
                "a DataFrame of Spark Connect has no partitions that tasks could read. Write it to Parquet, and begin "
                "with `from_files`."
            )
        # Nobody knows whether it has the same rows again, so nothing that was made of it before counts.
        version = uuid4().hex
        partitions = range(self.frame.rdd.getNumPartitions())
        return [SourceShard((FramePartition(self.frame, number),), version) for number in partitions]

    def __str__(self) -> str:
        return f"DataFrame of {', '.join(self.frame.columns)}"


def shard_of_file(path: str, about: dict[str, Any]) -> SourceShard:
    """The shard of a file that a listing tells of."""
    size = int(about.get("size") or 0)
    return SourceShard((path,), f"{size} {about.get('ino', '')} {version_of(about)}", size)


def with_versions(shards: list[SourceShard]) -> list[SourceShard]:
    """The same shards, whose rows are paths of files, with the files' versions.

    Raises `FileNotFoundError` for a file that does not exist.
    """
    with ThreadPoolExecutor(_THREADS) as threads:
        return list(threads.map(_with_version, shards))


def _with_version(shard: SourceShard) -> SourceShard:
    if shard.version or not all(isinstance(row, str | os.PathLike) for row in shard.rows):
        return shard
    found = list(map(_shard_at, map(os.fspath, shard.rows)))
    return SourceShard(shard.rows, " ".join(one.version for one in found), sum(one.bytes for one in found))


def _shard_at(path: str) -> SourceShard:
    """The shard of a file; or of a folder, such as that of a dataset, whose own size and time tell nothing."""
    about = about_file(path)
    if about["type"] != "directory":
        return shard_of_file(path, about)
    files, place = files_of(path)
    manifest = f"{place.rstrip('/')}/{MANIFEST}"
    if files.exists(manifest):
        return SourceShard((path,), shard_of_file(manifest, files.info(manifest)).version)
    found = [shard_of_file(*one) for one in sorted(files.find(place, detail=True).items())]
    return SourceShard(
        (path,), fingerprint([(one.rows, one.version) for one in found]), sum(one.bytes for one in found)
    )


def about_file(path: str) -> dict[str, Any]:
    """What its file system says of a file."""
    files, place = files_of(path)
    # What another program has written since it was listed here.
    files.invalidate_cache(place)
    try:
        found: dict[str, Any] = files.info(place)
    except FileNotFoundError:
        raise FileNotFoundError(f"{without_secrets(path)} does not exist") from None
    return found


def version_of_file(path: str) -> str:
    """Tells a file from what has taken its place since; empty if it does not exist."""
    try:
        return _shard_at(path).version
    except FileNotFoundError:
        return ""


def _glob(pattern: str) -> Iterator[tuple[str, dict[str, Any]]]:
    files, place = files_of(pattern)
    place = re.sub(r"(?<!:)//+", "/", place)
    if not re.search(r"[*?[]", place):
        files.invalidate_cache(place)
        found = {place: files.info(place)} if files.exists(place) else {}
    elif is_local(files):
        from safetensors_spark.pipeline._local_glob import LocalGlob

        found = LocalGlob().glob(place, detail=True)
    else:
        files.invalidate_cache()
        found = files.glob(place, detail=True)
    for name, about in found.items():
        if _is_hidden(str(name), place):
            continue
        # A glob does not tell what a link leads to.
        is_link = about["type"] == "other" and about.get("islink")
        known = files.info(name) if is_link else about
        if known["type"] == "file":
            yield url_of(files, str(name), pattern), known


def _is_hidden(name: str, pattern: str) -> bool:
    """Whether a wildcard found something in a folder of ours, such as `_pipeline`, or of other tools' leftovers."""
    *folders, file = Path(name).parts
    hidden = [part for part in folders if part in (FOLDER, QUARANTINE)]
    hidden += [part for part in (*folders, file) if part.startswith(".")]
    known = Path(pattern).parts
    return any(part not in known and escape(part) not in known for part in hidden)


def expand_braces(pattern: str) -> list[str]:
    """`a{b,c}` as `ab` and `ac`; braces may be nested. Others stay as they are."""
    found = re.search(r"\{([^{}]*,[^{}]*)\}", pattern)
    if found is None:
        return [pattern]
    before, after = pattern[: found.start()], pattern[found.end() :]
    return [one for choice in found[1].split(",") for one in expand_braces(before + choice + after)]
