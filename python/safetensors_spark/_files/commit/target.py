"""The directory that a write goes to, wherever it is."""

from __future__ import annotations

import os
from typing import TypeAlias

from safetensors_spark._files.commit.local_target import LocalTarget
from safetensors_spark._files.commit.remote_target import RemoteTarget
from safetensors_spark._files.storage import LocalFolder, StorageOptions, open_folder

Target: TypeAlias = LocalTarget | RemoteTarget


def open_target(path: str | os.PathLike[str], storage_options: StorageOptions | None = None) -> Target:
    """The directory at a local path, or at an fsspec URL. Nothing is made there yet."""
    folder = open_folder(path, storage_options)
    return LocalTarget(folder) if isinstance(folder, LocalFolder) else RemoteTarget(folder)
