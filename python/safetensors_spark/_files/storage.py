"""Folders of files, on this machine or wherever fsspec reaches: their names, lengths, and parts of their bytes."""

from __future__ import annotations

import os
import re
import stat
from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from errno import ELOOP, ENOENT
from pathlib import Path
from typing import Any, BinaryIO, TypeAlias
from urllib.parse import unquote, urlsplit

from safetensors_spark._errors import MissingExtraError, SafetensorsSparkError, printable
from safetensors_spark._extras import require
from safetensors_spark._files.remote import RemoteFolder
from safetensors_spark._files.secrets import without_secrets

StorageOptions = Mapping[str, Any]

# What an entry of a folder may be that is not a file.
FOLDER, LINK, NOT_REGULAR = "a folder", "a broken link", "not a regular file"

_LONGEST_NAME = 255
# Of what is read in whole, such as manifests. Java's arrays have no more either.
_LARGEST_WHOLE = (2 << 30) - 1


def is_plain_name(name: str) -> bool:
    """Whether a name stays in its folder: a manifest or an index must not lead a reader elsewhere.

    File systems have no longer names, and say it with an error of their own.
    """
    return name not in ("", ".", "..") and not re.search(r"[/\\\0]", name) and len(name.encode()) <= _LONGEST_NAME


def open_folder(path: str | os.PathLike[str], storage_options: StorageOptions | None = None) -> Folder:
    """The folder at a local path, or at an fsspec URL, which `storage_options` are for.

    Raises `MissingExtraError` for a URL where fsspec, or the package for its protocol, is not installed.
    """
    if not isinstance(storage_options, Mapping | None):
        raise TypeError(f"storage_options is a {type(storage_options).__name__}, expected a dictionary")
    text = checked_path(path)
    parts = urlsplit(text)
    if parts.scheme == "file":
        if parts.netloc not in ("", "localhost"):
            raise SafetensorsSparkError(
                f"{text} is on another machine, `{parts.netloc}`: write file:///path, or the path alone."
            )
        return LocalFolder(Path(unquote(parts.path)))
    # `c:\data` is a path too.
    if len(parts.scheme) < 2:
        return LocalFolder(Path(text))
    if parts.scheme == "hf":
        require("publish", ("fsspec", "huggingface_hub"))
    require("remote", ("fsspec",))
    if parts.scheme == "https" and parts.netloc == "huggingface.co" and "/resolve/" not in parts.path:
        root = re.split("/(?:tree|blob)/", parts.path)[0]
        raise SafetensorsSparkError(
            f"{without_secrets(text)} is a page of the Hub. Its data are at hf:/{root}; a branch, tag or commit stands "
            "after `@`."
        )
    from fsspec.core import url_to_fs

    try:
        filesystem, root = url_to_fs(text, **(storage_options or {}))
    except ImportError as error:
        raise MissingExtraError(f"{without_secrets(text)}: {error}") from None
    except IsADirectoryError:
        raise SafetensorsSparkError(
            without_secrets(f"{text} names no archive: it comes after `::`, as in tar://folder::file.tar.")
        ) from None
    except (AttributeError, LookupError, TypeError, ValueError) as error:
        what = f"{text} cannot be opened: {error}"
        raise SafetensorsSparkError(without_secrets(what)) from None
    return RemoteFolder(filesystem, root)


@dataclass(frozen=True, eq=False)
class FileVersion:
    """Tells a file from another one that takes its place, or that is written to: they are not equal.

    Times are in nanoseconds. A backup gives a file another time of change, and some mounts give it another inode.
    """

    modified: int
    inode: int
    changed: int

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, FileVersion) or self.modified != other.modified:
            return False
        return self.inode == other.inode or self.changed == other.changed

    @staticmethod
    def of(found: os.stat_result) -> FileVersion:
        return FileVersion(found.st_mtime_ns, found.st_ino, found.st_ctime_ns)


def checked_path(path: str | os.PathLike[str]) -> str:
    """The path as text, with the user's home directory for `~`. Raises `SafetensorsSparkError` for an empty one."""
    text = os.fspath(path)
    if not text:
        raise SafetensorsSparkError("the path is empty: give a folder, a file or a URL; `.` is the working directory.")
    return str(Path(text).expanduser()) if re.match(r"~(?![^/\\])", text) else text


class LocalFolder:
    """A local folder. What does not exist raises `FileNotFoundError`, as in one behind fsspec."""

    def __init__(self, path: Path) -> None:
        self.path = path.absolute()

    @property
    def location(self) -> str:
        """What errors and reports call it: an absolute path, or a URL."""
        return str(self.path)

    def check(self) -> None:
        """Raises `FileNotFoundError`, or `SafetensorsSparkError` for what is not a folder."""
        if self.path.is_dir():
            return
        if self.path.exists():
            raise self.not_regular("")
        what = f"is {LINK}" if self.path.is_symlink() else "does not exist"
        raise FileNotFoundError(printable(f"{self.path} {what}"))

    def not_regular(self, name: str) -> SafetensorsSparkError:
        """What to say of a pipe, a socket or a device, as Spark does."""
        return SafetensorsSparkError(f"{self.path / name} is {NOT_REGULAR}. Remove it, or read another path.")

    def names(self) -> dict[str, int]:
        """The files directly in it, and their lengths."""
        lengths = {}
        with os.scandir(self.path) as entries:
            for entry in entries:
                try:
                    if entry.is_file():
                        lengths[entry.name] = entry.stat().st_size
                except OSError as error:
                    # A running writer deletes its lock and its temporary files. A link may lead to itself.
                    if error.errno not in (ENOENT, ELOOP):
                        raise
        return lengths

    def folders(self) -> list[str]:
        """The names of the folders directly in it."""
        with os.scandir(self.path) as entries:
            return [entry.name for entry in entries if _no_file(entry) == FOLDER]

    def below(self, name: str) -> LocalFolder:
        """The folder by this name in it."""
        return LocalFolder(self.path / name)

    def left_out(self) -> dict[str, str]:
        """What is directly in it and is neither a file nor absent by now: what it is, by name.

        A file that is not regular, such as a pipe, is none.
        """
        found = {}
        with os.scandir(self.path) as entries:
            for entry in entries:
                if what := _no_file(entry):
                    found[entry.name] = what
        return found

    def versions(self, names: Iterable[str]) -> dict[str, FileVersion]:
        """The versions of those of these files that are there."""
        found = {}
        for name in names:
            with suppress(FileNotFoundError):
                found[name] = FileVersion.of(self._stat(name))
        return found

    def _stat(self, name: str) -> os.stat_result:
        """Of a link that leads to itself as of one that leads nowhere: raises `FileNotFoundError`."""
        path = self.path / name
        try:
            return path.stat()
        except OSError as error:
            if error.errno == ELOOP:
                raise FileNotFoundError(printable(f"{path} is {LINK}")) from None
            raise

    def is_file(self, name: str) -> bool:
        """Whether there is a file by this name."""
        return (self.path / name).is_file()

    def size(self, name: str) -> int:
        """How many bytes the file has."""
        return self._stat(name).st_size

    def read(self, name: str, start: int = 0, end: int | None = None) -> bytes:
        """The file's bytes from `start` to before `end`, fewer where it is shorter.

        Raises as `open`, and `SafetensorsSparkError` for all bytes of a file that is too large to be of ours.
        """
        with self.open(name) as file:
            if end is None:
                self._check_small(name, os.fstat(file.fileno()).st_size)
            file.seek(start)
            return file.read(-1 if end is None else max(0, end - start))

    def _check_small(self, name: str, length: int) -> None:
        if length > _LARGEST_WHOLE:
            raise SafetensorsSparkError(
                f"{self.path / name} has {length:,} bytes, and at most {_LARGEST_WHOLE:,} are read. Remove it, or read "
                "another path."
            )

    def open(self, name: str) -> BinaryIO:
        """The file as one that may be read anywhere. Raises `SafetensorsSparkError` for what is no regular file."""
        path = self.path / name
        try:
            file = open(path, "rb", opener=_without_waiting)  # noqa: SIM115 - it is returned
        except IsADirectoryError:
            raise self.not_regular(name) from None
        except OSError as error:
            if error.errno == ELOOP:
                raise FileNotFoundError(printable(f"{path} is {LINK}")) from None
            raise
        if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
            file.close()
            raise self.not_regular(name)
        return file


def _without_waiting(path: str, flags: int) -> int:
    """To open a pipe would wait for a writer."""
    return os.open(path, flags | getattr(os, "O_NONBLOCK", 0))


def _no_file(entry: os.DirEntry[str]) -> str | None:
    try:
        mode = entry.stat().st_mode
    except OSError as error:
        if entry.is_symlink() and error.errno in (ENOENT, ELOOP):
            return LINK
        return None
    return None if stat.S_ISREG(mode) else FOLDER if stat.S_ISDIR(mode) else NOT_REGULAR


Folder: TypeAlias = LocalFolder | RemoteFolder
