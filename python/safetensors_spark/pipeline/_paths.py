"""Paths as all workers name them, and the file systems that they are of."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from safetensors_spark._files.storage import checked_path

# Folders beside what a run writes: its own, and that of rows that it keeps apart.
FOLDER, QUARANTINE = "_pipeline", "_quarantine"


def absolute(path: str) -> str:
    """The path as workers in other folders name it."""
    return path if "://" in path else str(Path(path).expanduser().absolute())


def identity(path: str) -> str:
    """One text for all paths of the same file: through links, with `..`, or with a slash at the end."""
    return path.rstrip("/") if "://" in path else os.path.realpath(Path(path).expanduser())


def files_of(path: str) -> tuple[Any, str]:
    """The file system of fsspec that a path or URL names, and the path in it."""
    from fsspec import available_protocols
    from fsspec.core import url_to_fs
    from fsspec.implementations.local import LocalFileSystem

    text = checked_path(path)
    first, chained, _ = text.partition("::")
    if chained and "://" not in text and first not in available_protocols():
        # `::` is a part of a name of this machine.
        return LocalFileSystem(), str(Path(text).absolute())
    found: tuple[Any, str] = url_to_fs(text)
    return found


def url_of(files: Any, name: str, pattern: str) -> str:
    """What a glob has found, as `files_of` takes it: with the rest of a chain, such as `zip://a::b.zip`.

    Args:
        pattern: of the glob.
    """
    first, chained, rest = pattern.partition("::")
    if is_local(files):
        return name
    if not chained:
        return str(files.unstrip_protocol(name))
    protocol, has_path, _ = first.partition("://")
    # A cache has the path of what it caches.
    return f"{protocol}://{name}::{rest}" if has_path else f"{first}::{url_of(files.fs, name, rest)}"


def is_local(files: Any) -> bool:
    return "file" in ((files.protocol,) if isinstance(files.protocol, str) else files.protocol)


def own_name(path: str) -> str:
    """The part of a chain of URLs that has the file's own name, and so the suffix that tells its format."""
    first, chained, rest = path.partition("::")
    return own_name(rest) if chained and "://" not in first else first
