"""Datasets in MLflow's tracking: what a run has read, and the way back to it. Needs the extra `mlflow`, and no Spark.

    with mlflow.start_run():
        log_dataset("points")

MLflow finds this module by itself: `mlflow.data.from_safetensors(path)` makes the dataset, and
`mlflow.data.get_source(run.inputs.dataset_inputs[0]).load()` brings it back. Paths may be URLs of fsspec, with the
extra `remote`. Nothing is scanned: all that is logged stands in the manifest.
"""

# No `from __future__ import annotations`: MLflow drops a constructor whose return type is a string.
import json
import os
from typing import TYPE_CHECKING, Any, cast

from safetensors_spark import _extras
from safetensors_spark._manifest import Manifest, read_manifest
from safetensors_spark._storage import StorageOptions, open_folder

_extras.require("mlflow", ("mlflow",))

import mlflow  # noqa: E402
from mlflow.data.dataset import Dataset  # noqa: E402
from mlflow.entities import DatasetInput, InputTag  # noqa: E402

from safetensors_spark import _mlflow_schema  # noqa: E402
from safetensors_spark._mlflow_source import SafetensorsDatasetSource, StoredDataset, source_of  # noqa: E402

if TYPE_CHECKING:
    from mlflow.data.schema import TensorDatasetSchema

__all__ = ["SafetensorsDataset", "SafetensorsDatasetSource", "StoredDataset", "from_safetensors", "log_dataset"]

# MLflow's limits: of a digest, and of a schema as JSON.
_DIGEST_CHARACTERS = 36
_SCHEMA_CHARACTERS = 1_048_575


class SafetensorsDataset(Dataset):
    """A dataset as MLflow logs it. Its digest is the id of the commit that wrote it, and new with every write."""

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
        return _mlflow_schema.tensors(self._manifest.columns)

    def to_dict(self) -> dict[str, Any]:
        tensors = self.schema.to_dict() if self.schema else {}
        schema = json.dumps(_mlflow_schema.table(self._manifest.columns) | tensors)
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
    """The dataset at a path, or at a URL of fsspec, which `storage_options` are for; they are not logged.

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
        path: a folder that Spark wrote, or its URL of fsspec.
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
