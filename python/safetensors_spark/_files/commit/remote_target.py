"""A directory behind fsspec that is written to."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from datetime import datetime
from pathlib import Path
from typing import Any, BinaryIO, cast

from safetensors_spark._files.commit.local_target import Status
from safetensors_spark._files.remote import RemoteFolder

# Files that are moved or deleted at the same time.
_THREADS = 16


class RemoteTarget:
    """As `LocalTarget`. The store must show a file when all of it is written, as object stores do."""

    def __init__(self, folder: RemoteFolder) -> None:
        self.folder = folder
        if folder.is_http:
            raise PermissionError(f"{folder.location} is behind HTTP, which is only read. Name a place to write to.")
        if folder.is_archive:
            raise PermissionError(
                f"{folder.location} is in an archive, in which no file can be replaced. Write to a folder, and pack "
                "that."
            )

    @property
    def location(self) -> str:
        return self.folder.location

    def is_file(self) -> bool:
        return self.folder.is_file("")

    def make(self, name: str = "") -> None:
        """Object stores have no folders. Others need them before a file."""
        self.folder.call(name, lambda: self._files.makedirs(self._at(name), exist_ok=True), "written")

    def create(self, name: str) -> BinaryIO:
        self.make(name.rpartition("/")[0])
        return cast(BinaryIO, self.folder.call(name, lambda: self._files.open(self._at(name), "wb"), "written"))

    def create_exclusively(self, name: str, content: bytes) -> bool:
        """A store that cannot do this takes one writer at a time."""
        try:
            self._create(name, content)
        except FileExistsError:
            # A request may have succeeded although it seemed to fail, so that its repetition failed.
            return self.read(name) == content
        except (TypeError, ValueError, NotImplementedError):
            if self.status(name):
                return False
            self.overwrite(name, content)
            return self.read(name) == content
        return True

    def _create(self, name: str, content: bytes) -> None:
        try:
            self._files.pipe_file(self._at(name), content, mode="create")
        except OSError as error:
            # Stores tell in their own ways that a condition does not hold.
            if self.status(name):
                raise FileExistsError(name) from None
            raise error
        finally:
            self._forget(name)

    def upload(self, source: Path, name: str) -> bool:
        """Create a file of the bytes of one of this machine. Returns false if it exists, as `create_exclusively`."""

        def attempt() -> bool:
            try:
                self._files.put_file(str(source), self._at(name), mode="create")
            except FileExistsError:
                return False
            except (TypeError, ValueError, NotImplementedError):
                if self.status(name):
                    return False
                self._files.put_file(str(source), self._at(name))
            except OSError:
                if self.status(name):
                    return False
                raise
            return True

        try:
            return self.folder.call(name, attempt, "written")
        finally:
            self._forget(name)

    def put(self, source: Path, name: str) -> None:
        """Create or replace a file, of the bytes of one of this machine."""
        self.folder.call(name, lambda: self._files.put_file(str(source), self._at(name)))
        self._forget(name)

    def overwrite(self, name: str, content: bytes) -> None:
        self.folder.call(name, lambda: self._files.pipe_file(self._at(name), content), "written")
        self._forget(name)

    def replace(self, name: str, draft: str, content: Iterable[bytes], verify: Callable[[], None]) -> None:
        """Replace a file, which the store shows when all of it is there. Nothing stops a writer that paused."""
        whole = b"".join(content)
        verify()
        self.overwrite(name, whole)

    def write_draft(self, draft: str, content: Iterable[bytes]) -> None:
        self.make(draft.rpartition("/")[0])
        self.overwrite(draft, b"".join(content))

    def move(self, names: Iterable[tuple[str, str]]) -> None:
        """A copy within the store, and then a deletion."""
        with ThreadPoolExecutor(_THREADS) as threads:
            for _ in threads.map(lambda pair: self._move(*pair), list(names)):
                pass

    def _move(self, name: str, place: str) -> None:
        self.folder.call(name, lambda: self._files.cp_file(self._at(name), self._at(place)), "written")
        self._forget(place)
        self.delete(name)

    def delete(self, name: str) -> None:
        try:
            self.folder.call(name, lambda: self._files.rm_file(self._at(name)), "deleted")
        except FileNotFoundError:
            pass
        finally:
            self._forget(name)

    def delete_folder(self, name: str) -> None:
        try:
            self.folder.call(name, lambda: self._files.rm(self._at(name), recursive=True), "deleted")
        except FileNotFoundError:
            pass
        finally:
            self._forget(name)

    def delete_empty(self, name: str) -> None:
        """An empty folder is nothing in an object store, and harmless elsewhere."""

    def status(self, name: str) -> Status | None:
        try:
            self._forget(name)
            found = self.folder.call(name, lambda: self._files.info(self._at(name)))
        except FileNotFoundError:
            return None
        return Status(int(found.get("size") or 0), _time_of(found))

    def read(self, name: str) -> bytes | None:
        try:
            return self.folder.read(name)
        except FileNotFoundError:
            return None

    def names(self, name: str = "") -> list[str]:
        return [str(one["name"]).rstrip("/").rsplit("/", 1)[-1] for one in self._list(name)]

    def newest(self, name: str) -> float:
        """A store that tells no time keeps what is there: it may be of a writer that lives."""
        self._forget(name)
        found = self.folder.call(name, lambda: self._files.find(self._at(name), detail=True))
        times = [_seconds(_time_of(one)) for one in found.values()]
        return max(times) if times else float("inf")

    def _list(self, name: str) -> list[dict[str, Any]]:
        self._forget(name)
        try:
            found = self.folder.call(name, lambda: self._files.ls(self._at(name), detail=True))
        except FileNotFoundError:
            return []
        own = self._at(name).rstrip("/")
        return [one for one in found if str(one["name"]).rstrip("/") != own]

    @property
    def _files(self) -> Any:
        return self.folder.filesystem

    def _at(self, name: str) -> str:
        return self.folder.path_of(name).rstrip("/")

    def _forget(self, name: str) -> None:
        # Some file systems remember what they have listed.
        self._files.invalidate_cache()


def _time_of(found: dict[str, Any]) -> object:
    return next(
        (found[name] for name in ("LastModified", "last_modified", "mtime", "updated", "created") if name in found),
        None,
    )


def _seconds(time: object) -> float:
    if isinstance(time, datetime):
        return time.timestamp()
    return float(time) if isinstance(time, int | float) else float("inf")
