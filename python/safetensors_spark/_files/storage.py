"""Folders of files, on this machine or wherever fsspec reaches: their names, lengths, and parts of their bytes."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from errno import ELOOP, ENOENT
from pathlib import Path
from typing import Any, BinaryIO, TypeAlias
from urllib.parse import unquote, urlsplit

from safetensors_spark._errors import MissingExtraError, SafetensorsSparkError
from safetensors_spark._extras import require
from safetensors_spark._files.remote import RemoteFolder
from safetensors_spark._files.secrets import without_secrets

StorageOptions = Mapping[str, Any]


def is_plain_name(name: str) -> bool:
    """Whether a name stays in its folder: a manifest or an index must not lead a reader elsewhere."""
    return name not in ("", ".", "..") and not re.search(r"[/\\\0]", name)


def open_folder(path: str | os.PathLike[str], storage_options: StorageOptions | None = None) -> Folder:
    """The folder at a path of this machine, or at a URL of fsspec, which `storage_options` are for.

    Raises `MissingExtraError` for a URL where fsspec, or the package for its protocol, is not installed.
    """
    if not isinstance(storage_options, Mapping | None):
        raise TypeError(f"storage_options is a {type(storage_options).__name__}, expected a dictionary")
    text = os.fspath(path)
    parts = urlsplit(text)
    if parts.scheme == "file":
        return LocalFolder(Path(unquote(parts.path)))
    # `c:\data` is a path too.
    if len(parts.scheme) < 2:
        return LocalFolder(Path(text))
    require("remote", ("fsspec",))
    from fsspec.core import url_to_fs

    try:
        filesystem, root = url_to_fs(text, **(storage_options or {}))
    except ImportError as error:
        raise MissingExtraError(f"{without_secrets(text)}: {error}") from None
    except ValueError as error:
        raise SafetensorsSparkError(without_secrets(f"{text} cannot be opened: {error}")) from None
    return RemoteFolder(filesystem, root)


class LocalFolder:
    """A folder of this machine. What is not there raises `FileNotFoundError`, as in one behind fsspec."""

    def __init__(self, path: Path) -> None:
        self.path = path.absolute()

    @property
    def location(self) -> str:
        """What errors and reports call it: an absolute path, or a URL."""
        return str(self.path)

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

    def is_file(self, name: str) -> bool:
        """Whether there is a file by this name."""
        return (self.path / name).is_file()

    def size(self, name: str) -> int:
        """How many bytes the file has."""
        return (self.path / name).stat().st_size

    def read(self, name: str, start: int = 0, end: int | None = None) -> bytes:
        """The file's bytes from `start` to before `end`, fewer where it is shorter."""
        with (self.path / name).open("rb") as file:
            file.seek(start)
            return file.read(-1 if end is None else max(0, end - start))

    def open(self, name: str) -> BinaryIO:
        """The file as one that may be read anywhere."""
        return (self.path / name).open("rb")


Folder: TypeAlias = LocalFolder | RemoteFolder
