"""A staging directory behind fsspec, whose files are written on this machine first."""

from __future__ import annotations

import shutil
import tempfile
import time
from pathlib import Path
from typing import BinaryIO

from safetensors_spark._files.commit.remote_target import RemoteTarget


class RemoteStaging:
    """As `Staging` says. The store must show a file when all of it is written, as object stores do."""

    def __init__(self, target: RemoteTarget) -> None:
        self._target = target

    @property
    def location(self) -> str:
        return self._target.location

    def path(self, name: str) -> str:
        return f"{self.location}/{name}"

    def make(self, folder: str) -> None:
        self._target.make(folder)

    def names(self, folder: str) -> list[str]:
        return self._target.names(folder)

    def exists(self, name: str) -> bool:
        return self._target.status(name) is not None

    def size(self, name: str) -> int:
        return self._target.folder.size(name)

    def read(self, name: str) -> bytes | None:
        return self._target.read(name)

    def open(self, name: str) -> BinaryIO:
        return self._target.folder.open(name)

    def age(self, name: str) -> float:
        try:
            return time.time() - self._target.newest(name)
        except FileNotFoundError:
            return float("-inf")

    def put(self, name: str, content: bytes) -> None:
        self._target.overwrite(name, content)

    def create(self, name: str, content: bytes) -> bool:
        return self._target.create_exclusively(name, content)

    def draft(self, name: str) -> Path:
        return Path(tempfile.mkdtemp(prefix="safetensors-spark-")) / "body"

    def publish(self, draft: Path, name: str) -> bool:
        return self._target.upload(draft, name)

    def discard(self, draft: Path) -> None:
        shutil.rmtree(draft.parent, ignore_errors=True)

    def is_alive(self, name: str) -> bool:
        return False

    def move(self, name: str, place: str) -> None:
        try:
            self._target.move([(name, place)])
        except FileNotFoundError:
            if not self.exists(place):
                raise

    def delete(self, name: str) -> None:
        self._target.delete(name)
