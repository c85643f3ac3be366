"""A local directory that is written to."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Iterable
from contextlib import suppress
from io import FileIO
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple, cast

from safetensors_spark._files.storage import LocalFolder


class Status(NamedTuple):
    """Length and time of a file. The time is the file system's, to be compared with itself alone."""

    length: int
    time: object


class LocalTarget:
    """Names are of files in the directory, or in folders of it: `_pending/{id}`."""

    def __init__(self, folder: LocalFolder) -> None:
        self.folder = folder
        self._root = folder.path

    @property
    def location(self) -> str:
        return self.folder.location

    def is_file(self) -> bool:
        """Whether a file has the directory's path."""
        return self._root.is_file()

    def make(self, name: str = "") -> None:
        """Make the directory, or a folder in it, unless it exists."""
        self._at(name).mkdir(parents=True, exist_ok=True)

    def create(self, name: str) -> BinaryIO:
        """A new file. Its bytes are durable when it is closed."""
        path = self._at(name)
        path.parent.mkdir(parents=True, exist_ok=True)
        return cast(BinaryIO, _DurableFile(path, "xb"))

    def create_exclusively(self, name: str, content: bytes) -> bool:
        """Create a file that only one of several writers can create. Returns false if it exists."""
        try:
            with self._at(name).open("xb") as file:
                file.write(content)
        except FileExistsError:
            return False
        return True

    def overwrite(self, name: str, content: bytes) -> None:
        """Write a file in place: readers may see a part of it."""
        self._at(name).write_bytes(content)

    def write_draft(self, draft: str, content: Iterable[bytes]) -> None:
        """Write, durably, the file that is to replace another one."""
        self.make(draft.rpartition("/")[0])
        with _DurableFile(self._at(draft), "wb") as file:
            for part in content:
                file.write(part)

    def replace(self, name: str, draft: str, content: Iterable[bytes], verify: Callable[[], None]) -> None:
        """Replace a file in one step, after `verify`. It fails if another writer has deleted the draft meanwhile."""
        try:
            self.write_draft(draft, content)
            verify()
            self.move([(draft, name)])
        finally:
            self.delete(draft)

    def move(self, names: Iterable[tuple[str, str]]) -> None:
        """Give files other names, durably. What has the new name is replaced."""
        folders = set()
        for name, place in names:
            self._at(name).rename(self._at(place))
            self._checksum(place).unlink(missing_ok=True)
            folders.add(self._at(place).parent)
        for folder in folders:
            sync_folder(folder)

    def delete(self, name: str) -> None:
        """Delete a file, if it is there."""
        self._at(name).unlink(missing_ok=True)
        self._checksum(name).unlink(missing_ok=True)

    def delete_folder(self, name: str) -> None:
        shutil.rmtree(self._at(name), ignore_errors=True)

    def delete_empty(self, name: str) -> None:
        """Delete a folder, unless it has files."""
        with suppress(OSError):
            self._at(name).rmdir()

    def status(self, name: str) -> Status | None:
        """None if there is no such file or folder."""
        try:
            found = self._at(name).stat()
        except FileNotFoundError:
            return None
        return Status(found.st_size, found.st_mtime_ns)

    def read(self, name: str) -> bytes | None:
        """None if there is no such file."""
        try:
            return self.folder.read(name)
        except FileNotFoundError:
            return None

    def names(self, name: str = "") -> list[str]:
        """The names in a folder; none if it does not exist."""
        try:
            return [entry.name for entry in self._at(name).iterdir()]
        except FileNotFoundError:
            return []

    def newest(self, name: str) -> float:
        """When something in it was last written, as `time.time()` counts. A folder without files tells its own time."""
        try:
            files = [path.lstat().st_mtime for path in self._at(name).rglob("*") if not path.is_dir()]
            return max(files) if files else self._at(name).lstat().st_mtime
        except FileNotFoundError:
            return float("inf")

    def _at(self, name: str) -> Path:
        return self._root / name

    def _checksum(self, name: str) -> Path:
        """The checksum that Hadoop keeps of a local file, which is wrong once the file is another one."""
        path = self._at(name)
        return path.with_name(f".{path.name}.crc")


class _DurableFile(FileIO):
    """A file whose bytes are on the disk once it is closed. What an error interrupts is only closed."""

    def __exit__(self, kind: type[BaseException] | None, *rest: Any) -> None:
        try:
            if kind is None:
                os.fsync(self.fileno())
        finally:
            self.close()

    def write(self, content: Any) -> int:
        """Write all of it: a call of the system writes 2 GiB at most."""
        data = memoryview(content).cast("B")
        written = 0
        while written < len(data):
            written += super().write(data[written:]) or 0
        return written


def sync_folder(path: Path) -> None:
    """Make the names in a folder durable. Windows cannot open a folder, and makes them durable itself."""
    if os.name == "nt":
        return
    number = os.open(path, os.O_RDONLY)
    try:
        os.fsync(number)
    finally:
        os.close(number)
