"""A staging directory of this machine, or on a mount that it shares with others."""

from __future__ import annotations

import errno
import os
import shutil
import socket
import stat
import time
import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from hashlib import sha256
from pathlib import Path
from typing import BinaryIO, TypeVar

from safetensors_spark._files.commit.local_target import LocalTarget, sync_folder

DRAFT_SUFFIX = ".tmp"

# No room on the disk, in the user's quota, or in a file. Windows has no quota.
_FULL = (errno.ENOSPC, getattr(errno, "EDQUOT", errno.ENOSPC), errno.EFBIG)
# What file systems without hard links say.
_NO_LINKS = (errno.EPERM, errno.EOPNOTSUPP, errno.ENOSYS, errno.EMLINK)
_ATTEMPTS = 5

_T = TypeVar("_T")


class LocalStaging:
    """As `Staging` says."""

    def __init__(self, target: LocalTarget) -> None:
        self._target = target
        self._root = target.folder.path

    @property
    def location(self) -> str:
        return self._target.location

    def path(self, name: str) -> Path:
        return self._root / name

    def make(self, folder: str) -> None:
        self._target.make(folder)

    def names(self, folder: str) -> list[str]:
        return _steady(lambda: _files(self.path(folder)))

    def exists(self, name: str) -> bool:
        try:
            return stat.S_ISREG(_steady(lambda: self.path(name).stat()).st_mode)
        except FileNotFoundError:
            return False

    def size(self, name: str) -> int:
        return _steady(lambda: self._target.folder.size(name))

    def read(self, name: str) -> bytes | None:
        return _steady(lambda: self._target.read(name))

    def open(self, name: str) -> BinaryIO:
        return _steady(lambda: self._target.folder.open(name))

    def age(self, name: str) -> float:
        try:
            found = self.path(name).stat()
        except FileNotFoundError:
            return float("-inf")
        # A new link to an old file is new.
        return time.time() - max(found.st_mtime, found.st_ctime)

    def put(self, name: str, content: bytes) -> None:
        with self._written(name, content) as draft:
            self._target.move([(self._name(draft), name)])

    def create(self, name: str, content: bytes) -> bool:
        with self._written(name, content) as draft:
            return self.publish(draft, name)

    @contextmanager
    def _written(self, name: str, content: bytes) -> Iterator[Path]:
        draft = self.draft(name)
        try:
            with explained(self.path(name)), self._target.create(self._name(draft)) as file:
                file.write(content)
            yield draft
        finally:
            self.discard(draft)

    def _name(self, draft: Path) -> str:
        return draft.relative_to(self._root).as_posix()

    def draft(self, name: str) -> Path:
        path = self.path(name)
        path.parent.mkdir(parents=True, exist_ok=True)
        return path.with_name(f"{path.name}.{_host()}-{os.getpid()}-{uuid.uuid4().hex[:12]}{DRAFT_SUFFIX}")

    def publish(self, draft: Path, name: str) -> bool:
        place = self.path(name)
        try:
            # Unlike a renaming, it replaces nothing.
            os.link(draft, place)
        except FileExistsError:
            # A mount that lost the answer to its request asks again, and finds its own link.
            return _steady(lambda: _is_same(draft, place))
        except OSError as error:
            if error.errno not in _NO_LINKS:
                raise
            if place.exists():
                return False
            draft.rename(place)
        sync_folder(place.parent)
        return True

    def discard(self, draft: Path) -> None:
        draft.unlink(missing_ok=True)

    def is_alive(self, name: str) -> bool:
        host, process, *_ = f"{name.removesuffix(DRAFT_SUFFIX).rpartition('.')[2]}--".split("-")
        if host != _host() or not process.isdecimal():
            return False
        # Signal 0 only asks. On Windows it would end the process.
        if os.name != "nt":
            try:
                os.kill(int(process), 0)
            except (ProcessLookupError, OverflowError):
                return False
            except PermissionError:
                pass
        return True

    def move(self, name: str, place: str) -> None:
        try:
            self._target.move([(name, place)])
        except FileNotFoundError:
            # Another process finished the same move, or a mount lost the answer to its first request.
            if not self.exists(place):
                raise
        except OSError as error:
            if error.errno != errno.EXDEV:
                raise
            self._move_across(name, place)

    def _move_across(self, name: str, place: str) -> None:
        """Move a file to a folder that is on another file system. It appears there whole."""
        draft = self.draft(place)
        try:
            with explained(self.path(place)), self.open(name) as source, self._target.create(self._name(draft)) as file:
                shutil.copyfileobj(source, file, 1 << 20)
            self._target.move([(self._name(draft), place)])
        finally:
            self.discard(draft)
        self.delete(name)

    def delete(self, name: str) -> None:
        self._target.delete(name)


@contextmanager
def explained(place: Path | str) -> Iterator[None]:
    """Say of a full disk what could not be written."""
    try:
        yield
    except OSError as error:
        if error.errno not in _FULL:
            raise
        raise OSError(
            error.errno,
            f"{place} cannot be written: {error.strerror or error}. The partial file is removed. Make room, and do "
            "this again.",
        ) from error


def _files(folder: Path) -> list[str]:
    """The names of files. Folders, such as file systems and file browsers make, are none of ours."""
    try:
        with os.scandir(folder) as entries:
            return [entry.name for entry in entries if entry.is_file()]
    except FileNotFoundError:
        return []


def _host() -> str:
    """Tells machines apart that share a mount, in a form that any file name may have."""
    return sha256(socket.gethostname().encode()).hexdigest()[:8]


def _is_same(draft: Path, place: Path) -> bool:
    try:
        return draft.samefile(place)
    except FileNotFoundError:
        return False


def _steady(call: Callable[[], _T]) -> _T:
    """What the call returns, again if a network mount's file was replaced between its look-up and its use."""
    for attempt in range(1, _ATTEMPTS):
        try:
            return call()
        except OSError as error:
            if error.errno != errno.ESTALE:
                raise
            time.sleep(0.02 * attempt)
    return call()
