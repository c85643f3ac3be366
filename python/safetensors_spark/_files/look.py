"""Finds what a path holds: a dataset, a model checkpoint, a folder of files or of partitions, or one file."""

from __future__ import annotations

import logging
import os
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from urllib.parse import unquote

from safetensors_spark._errors import DatasetChangedError, printable
from safetensors_spark._files.checkpoint import index_among, is_index, read_weights
from safetensors_spark._files.contents import Contents
from safetensors_spark._files.manifest import MANIFEST, Manifest, Shard, read_manifest
from safetensors_spark._files.partitions import joined, leaves
from safetensors_spark._files.remote import RemoteFolder
from safetensors_spark._files.storage import (
    NOT_REGULAR,
    Folder,
    LocalFolder,
    StorageOptions,
    checked_path,
    open_folder,
)

_LOGGER = logging.getLogger("safetensors_spark")

SUFFIX = ".safetensors"

# A writer may commit between the reading of the manifest and the listing. Each retry takes another commit.
_ATTEMPTS = 5


def look(path: str | os.PathLike[str], storage_options: StorageOptions | None = None) -> Contents:
    """List a local path or an fsspec URL. Of data files only names and lengths are read.

    Raises:
        FileNotFoundError: nothing is there, or no safetensors file.
        SafetensorsSparkError: the path is empty, or what is there is no regular file.
        InvalidManifestError, InvalidCheckpointError: the manifest or the checkpoint's index is not valid.
        DatasetChangedError: writers commit faster than the dataset can be listed.
    """
    text = checked_path(path)
    parent, name = _split(text)
    if name == MANIFEST or name.endswith(SUFFIX) or is_index(name) or Path(text).is_file():
        folder = _now(open_folder(parent, storage_options))
        if folder.is_file(name):
            return _of_file(folder, name)
    folder = _now(open_folder(text, storage_options))
    try:
        if isinstance(folder, LocalFolder):
            folder.check()
        return _of_folder(folder)
    except FileNotFoundError as error:
        if not re.search(r"[*?\[]", name):
            raise
        raise FileNotFoundError(f"{error}: patterns are not expanded, give the folder or one file") from None


def _now(folder: Folder) -> Folder:
    return folder.pinned() if isinstance(folder, RemoteFolder) else folder


def _split(path: str) -> tuple[str, str]:
    """The folder above, and the last name. A query, which signs the URL of a file, becomes the folder's."""
    if re.match(r"https?://", path):
        url, mark, query = path.partition("?")
        parent, _, name = url.rpartition("/")
        return f"{parent}{mark}{query}", unquote(name)
    parent, name = re.fullmatch(r"(.*?)[/\\]*([^/\\]*)", path, re.DOTALL).groups()  # type: ignore[union-attr]
    return parent or ("/" if path.startswith("/") else "."), name


def _of_file(folder: Folder, name: str) -> Contents:
    """What the path of a file stands for."""
    if name == MANIFEST:
        return _of_folder(folder)
    if is_index(name):
        return _checkpoint(folder, name)
    length = folder.size(name)
    return Contents(folder, "file", (Shard(name, length),), {name: length})


def _of_folder(folder: Folder) -> Contents:
    found = leaves(folder, _directly_in)
    if not found:
        raise FileNotFoundError(f"{folder.location} has no {MANIFEST}, no checkpoint's index, and no *{SUFFIX} files")
    return found.get("") or joined(folder, found)


def _directly_in(folder: Folder) -> Contents | None:
    """What the folder itself has; None if there are no safetensors files in it, and no dataset."""
    manifest, names = _listed(folder)
    if manifest:
        return Contents(folder, "dataset", manifest.shards, names, manifest=manifest)
    if index := index_among(names, folder.location):
        return _checkpoint(folder, index)
    if isinstance(folder, LocalFolder):
        _check_left_out(folder)
    shards = tuple(Shard(name, names[name]) for name in sorted(names) if _is_data(name))
    return Contents(folder, "folder", shards, names) if shards else None


def _is_data(name: str) -> bool:
    return name.endswith(SUFFIX) and name[0] not in "_."


def _check_left_out(folder: LocalFolder) -> None:
    """Warn of what has the name of a data file and is none. Raises `SafetensorsSparkError` for a pipe and the like."""
    for name, what in sorted(folder.left_out().items()):
        if not _is_data(name):
            continue
        if what == NOT_REGULAR:
            raise folder.not_regular(name)
        _LOGGER.warning("%s is left out: it is %s", printable(f"{folder.location}/{name}"), what)


def _checkpoint(folder: Folder, index: str) -> Contents:
    weights = read_weights(folder, index)
    wanted = sorted(set(weights.values()))
    names = _names(folder, wanted)
    shards = tuple(Shard(name, names.get(name)) for name in wanted)
    return Contents(folder, "checkpoint", shards, names, weights=weights)


def _listed(folder: Folder) -> tuple[Manifest | None, Mapping[str, int]]:
    """The manifest, if there is one, and the lengths of all files, listed after the manifest was read."""
    before = None
    for _ in range(_ATTEMPTS):
        manifest = _manifest(folder)
        names = _names(folder, _files_of(manifest))
        if manifest is None:
            if MANIFEST not in names:
                return None, names
        # The same manifest was read before the last listing too: what this listing lacks is lost.
        elif _has_all(names, manifest) or (before and before.commit_id == manifest.commit_id):
            return manifest, names
        before = manifest
    raise DatasetChangedError(f"{folder.location} changes faster than it can be listed: open it again.")


def _names(folder: Folder, wanted: Sequence[str]) -> Mapping[str, int]:
    """The lengths of all files; at an HTTP server, which may not list them, of those that are wanted."""
    return folder.lengths(wanted) if wanted and isinstance(folder, RemoteFolder) and folder.is_http else folder.names()


def _files_of(manifest: Manifest | None) -> list[str]:
    if manifest is None:
        return []
    return [*(shard.file for shard in manifest.shards), *(part.file for part in manifest.index_parts)]


def _manifest(folder: Folder) -> Manifest | None:
    try:
        return read_manifest(folder)
    except FileNotFoundError:
        return None


def _has_all(names: Mapping[str, int], manifest: Manifest) -> bool:
    shards = all(names.get(shard.file) == shard.bytes for shard in manifest.shards)
    return shards and all(part.file in names for part in manifest.index_parts)
