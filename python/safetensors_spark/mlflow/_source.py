"""Where a dataset is that MLflow knows of, and the way back to it."""

from __future__ import annotations

import json
import os
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import Any

from mlflow.data.dataset_source import DatasetSource

from safetensors_spark._errors import DatasetChangedError
from safetensors_spark._files.manifest import MANIFEST, Manifest, read_manifest
from safetensors_spark._files.storage import Folder, LocalFolder, StorageOptions, open_folder


@dataclass(frozen=True)
class StoredDataset:
    """A dataset where it is stored: its folder, as a path or a URL, and what the manifest says of it.

    `open_dataset` or `open_store` of `safetensors_spark.dataset`, and Spark, read the location.
    """

    location: str
    manifest: Manifest

    @property
    def files(self) -> list[str]:
        """The shards in row order, as paths or URLs: plain safetensors files, for any reader of these."""
        return [f"{self.location}/{shard.file}" for shard in self.manifest.shards]


@dataclass(frozen=True)
class SafetensorsDatasetSource(DatasetSource):
    """Where a dataset is, and what it was when it was logged.

    `uri` is the manifest's, `shards` their number. The connector's class of the same name gives the same JSON.
    """

    uri: str
    commit_id: str
    total_samples: int
    total_bytes: int
    shards: int

    def load(self, storage_options: StorageOptions | None = None) -> StoredDataset:
        """The dataset that was logged.

        Raises:
            FileNotFoundError: it no longer exists.
            DatasetChangedError: it was written to since.
            InvalidManifestError: its manifest cannot be relied on.
        """
        folder = open_folder(self.uri.rpartition("/")[0], storage_options)
        manifest = read_manifest(folder)
        if manifest.commit_id != self.commit_id:
            raise DatasetChangedError(
                f"{folder.location} was logged at commit {self.commit_id}, and has been written again since, at commit "
                f"{manifest.commit_id}. Read what is there now by its path, or log it again."
            )
        return StoredDataset(folder.location, manifest)

    def to_dict(self) -> dict[str, Any]:
        return asdict(self)

    @classmethod
    def from_dict(cls, source_dict: dict[Any, Any]) -> SafetensorsDatasetSource:
        return cls(**{field.name: source_dict[field.name] for field in fields(cls)})

    def to_json(self) -> str:
        """One line without spaces, as the connector writes it."""
        return json.dumps(self.to_dict(), ensure_ascii=False, separators=(",", ":"))

    @staticmethod
    def _get_source_type() -> str:
        return "safetensors"

    @staticmethod
    def _can_resolve(raw_source: Any) -> bool:
        """Whether it is the path of a dataset here. MLflow asks this of every source, so URLs are not looked at."""
        if not isinstance(raw_source, str | os.PathLike) or "://" in os.fspath(raw_source):
            return False
        return Path(raw_source, MANIFEST).is_file()

    @classmethod
    def _resolve(cls, raw_source: Any) -> SafetensorsDatasetSource:
        folder = open_folder(raw_source)
        return source_of(folder, read_manifest(folder))


def source_of(folder: Folder, manifest: Manifest) -> SafetensorsDatasetSource:
    """The source of the dataset in `folder`."""
    return SafetensorsDatasetSource(
        uri=_uri(folder),
        commit_id=manifest.commit_id,
        total_samples=manifest.samples,
        total_bytes=manifest.bytes,
        shards=len(manifest.shards),
    )


def _uri(folder: Folder) -> str:
    """The manifest's, as the connector writes it: of paths here a `file` URI, percent-encoded; others as they are."""
    if isinstance(folder, LocalFolder):
        return Path(os.path.normpath(folder.path), MANIFEST).as_uri()
    return f"{folder.location}/{MANIFEST}"
