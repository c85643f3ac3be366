"""A staging directory: a local folder, on a network mount too, or an fsspec URL.

Nothing else touches its files. Each of them appears whole.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from typing import BinaryIO, Protocol

from safetensors_spark._errors import InvalidWriteError, printable
from safetensors_spark._files.commit.local_target import LocalTarget
from safetensors_spark._files.commit.target import open_target
from safetensors_spark._files.manifest import MANIFEST
from safetensors_spark.publish._local_staging import LocalStaging
from safetensors_spark.publish._remote_staging import RemoteStaging

PENDING_DIRNAME, SYNCED_DIRNAME, FAILED_DIRNAME = "pending", "synced", "failed"
FOLDERS = (PENDING_DIRNAME, SYNCED_DIRNAME, FAILED_DIRNAME)


class Staging(Protocol):
    """Names are of files in the directory: `pending/{body}`."""

    @property
    def location(self) -> str:
        """What errors call it: an absolute path, or a URL without secrets."""

    def path(self, name: str) -> Path | str:
        """Where a file is: a local path, or a URL."""

    def make(self, folder: str) -> None:
        """Make the directory and a folder in it, unless they exist."""

    def names(self, folder: str) -> list[str]:
        """The names of the files in a folder; none if it does not exist."""

    def exists(self, name: str) -> bool: ...

    def size(self, name: str) -> int:
        """The length of a file. Raises `FileNotFoundError`."""

    def read(self, name: str) -> bytes | None:
        """A file's bytes; None if there is no such file."""

    def open(self, name: str) -> BinaryIO:
        """A file as one that may be read anywhere. Raises `FileNotFoundError`."""

    def age(self, name: str) -> float:
        """The seconds since a file was written or got its name; -inf if it does not exist or the store has no time."""

    def put(self, name: str, content: bytes) -> None:
        """Write a file, which replaces one that is there."""

    def create(self, name: str, content: bytes) -> bool:
        """Write a file that only one of several writers can create. Returns false if it exists."""

    def draft(self, name: str) -> Path:
        """A local path for the bytes that are to be `name`. Give it to `discard` in any case."""

    def publish(self, draft: Path, name: str) -> bool:
        """Make the draft the file, if there is none. Returns whether the file is the draft."""

    def discard(self, draft: Path) -> None:
        """Delete a draft, if it is there."""

    def is_alive(self, name: str) -> bool:
        """Whether a temporary file is of a process of this machine that lives."""

    def move(self, name: str, place: str) -> None:
        """Give a file another name, or have it so already. Raises `FileNotFoundError` if it has neither."""

    def delete(self, name: str) -> None:
        """Delete a file, if it is there."""


def open_staging(staging_dir: str | os.PathLike[str]) -> Staging:
    """The staging directory at a local path, or at an fsspec URL. Nothing is made there yet."""
    if str(staging_dir).startswith("hf://"):
        raise InvalidWriteError(
            f"{printable(str(staging_dir))} is on the Hub, where nothing is staged: name a folder or a store that "
            "workers and the syncer share."
        )
    target = open_target(staging_dir)
    return LocalStaging(target) if isinstance(target, LocalTarget) else RemoteStaging(target)


def make_layout(staging: Staging) -> None:
    """Make the staging directory and its folders, unless they exist. Raises `NotADirectoryError` for a dataset."""
    root = staging.path("")
    if isinstance(root, Path) and (root / MANIFEST).is_file():
        raise NotADirectoryError(f"{staging.location} is a dataset, in which nothing is staged. Name another folder.")
    for folder in FOLDERS:
        staging.make(folder)


def check_staging(staging: Staging, *, must_exist: bool = False) -> None:
    """Raise `NotADirectoryError` for a file or a folder of something else, which is to be left alone.

    Raises `FileNotFoundError` for what does not exist, if it must be. Of a store, only its files can be seen.
    """
    root = staging.path("")
    if not isinstance(root, Path) or any((root / folder).is_dir() for folder in FOLDERS):
        return
    if not root.exists():
        if must_exist:
            raise FileNotFoundError(
                f"{staging.location} does not exist. Check its name: the first worker, or `ensure_staging_layout`, "
                "makes it."
            )
        return
    if root.is_dir() and not any(root.iterdir()):
        return
    is_dataset = (root / MANIFEST).is_file()
    advice = "It is a dataset: `safetensors-spark publish dataset` publishes it." if is_dataset else "Check its name."
    raise NotADirectoryError(f"{staging.location} is not a staging directory: it has no `{PENDING_DIRNAME}`. {advice}")


@contextmanager
def drafted(staging: Staging, name: str) -> Iterator[Path]:
    """A draft of a file, which is gone at the end."""
    draft = staging.draft(name)
    try:
        yield draft
    finally:
        staging.discard(draft)


@dataclass(frozen=True)
class Digest:
    """Length and SHA-256 of a file."""

    bytes: int
    sha256: str


def digest(file: BinaryIO) -> Digest:
    """Read a file to its end."""
    size, found = 0, sha256()
    while chunk := file.read(1 << 20):
        found.update(chunk)
        size += len(chunk)
    return Digest(size, found.hexdigest())
