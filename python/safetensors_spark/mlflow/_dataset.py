"""A dataset as MLflow logs it."""

# No `from __future__ import annotations`: MLflow drops a constructor whose return type is a string.
import json
import os
from typing import TYPE_CHECKING, Any, cast

import mlflow
from mlflow.data.dataset import Dataset
from mlflow.entities import DatasetInput, InputTag

from safetensors_spark._files.manifest import Manifest, read_manifest
from safetensors_spark._files.storage import StorageOptions, open_folder
from safetensors_spark.mlflow import _schema
from safetensors_spark.mlflow._source import SafetensorsDatasetSource, source_of

if TYPE_CHECKING:
    from mlflow.data.schema import TensorDatasetSchema

# MLflow's limits: of a digest, and of a schema as JSON.
_DIGEST_CHARACTERS = 36
_SCHEMA_CHARACTERS = 1_048_575


class SafetensorsDataset(Dataset):
    """A dataset as MLflow logs it. Its digest is the id of the commit that wrote it, and changes with every write."""

    def __init__(
        self,
        manifest: Manifest,
        source: SafetensorsDatasetSource,
        name: str | None = None,
        digest: str | None = None,
    ) -> None:
        self._manifest = manifest
        super().__init__(source, name, digest)

    @property
    def source(self) -> SafetensorsDatasetSource:
        return cast(SafetensorsDatasetSource, super().source)

    @property
    def profile(self) -> dict[str, Any]:
        """Rows, the shards' length in bytes, their number, and how rows were put into them."""
        manifest = self._manifest
        return {
            "samples": manifest.samples,
            "bytes": manifest.bytes,
            "shards": len(manifest.shards),
            "mode": manifest.mode,
        }

    @property
    def schema(self) -> "TensorDatasetSchema | None":
        """The columns as MLflow's tensors, a batch's dimension first. None where one has no shape or dtype of NumPy."""
        return _schema.tensors(self._manifest.columns)

    def to_dict(self) -> dict[str, Any]:
        tensors = self.schema.to_dict() if self.schema else {}
        schema = json.dumps(_schema.table(self._manifest.columns) | tensors)
        shown = schema if len(schema) <= _SCHEMA_CHARACTERS else None
        return super().to_dict() | {"schema": shown, "profile": json.dumps(self.profile)}

    def _compute_digest(self) -> str:
        return self._manifest.commit_id[:_DIGEST_CHARACTERS]


def from_safetensors(
    path: str | os.PathLike[str],
    name: str | None = None,
    digest: str | None = None,
    *,
    storage_options: StorageOptions | None = None,
) -> SafetensorsDataset:
    """The dataset at a path, or at an fsspec URL, which `storage_options` are for; they are not logged.

    Raises:
        FileNotFoundError: the path has no manifest.
        InvalidManifestError: its manifest cannot be relied on.
    """
    folder = open_folder(path, storage_options)
    manifest = read_manifest(folder)
    return SafetensorsDataset(manifest, source_of(folder, manifest), name, digest)


def log_dataset(
    path: str | os.PathLike[str],
    run_id: str | None = None,
    name: str = "safetensors_dataset",
    *,
    context: str | None = None,
    storage_options: StorageOptions | None = None,
) -> None:
    """Log the dataset at `path` as an input of a run.

    Args:
        path: a folder that Spark wrote, or its fsspec URL.
        run_id: the run, which need not be active. Without it the active one, or else a new one, as MLflow begins it.
        name: what MLflow calls the dataset.
        context: what it is used for, such as `training`.
        storage_options: of the URL's file system; they are not logged.

    Raises:
        FileNotFoundError: the path has no manifest.
        InvalidManifestError: its manifest cannot be relied on.
    """
    dataset = from_safetensors(path, name, storage_options=storage_options)
    if run_id is None:
        mlflow.log_input(dataset, context)
    else:
        tags = [] if context is None else [InputTag("mlflow.data.context", context)]
        mlflow.MlflowClient().log_inputs(run_id, [DatasetInput(dataset._to_mlflow_entity(), tags)])
