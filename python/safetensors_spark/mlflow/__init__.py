"""Datasets in MLflow: log the dataset that a run reads, and open it again. Needs the extra `mlflow`, not Spark.

    with mlflow.start_run():
        log_dataset("points")

MLflow finds this package automatically: `mlflow.data.from_safetensors(path)` makes the dataset, and
`mlflow.data.get_source(run.inputs.dataset_inputs[0]).load()` loads it again. Paths may be fsspec URLs, with the
extra `remote`. Nothing is scanned: everything that is logged comes from the manifest.
"""

from safetensors_spark._extras import require

require("mlflow", ("mlflow",))

# MLflow loads the entry points while it is imported, which needs modules of ours that are not half imported.
import mlflow.data  # noqa: E402, F401

from safetensors_spark._files.manifest import Column, IndexPart, Manifest, Shard  # noqa: E402
from safetensors_spark.mlflow._dataset import SafetensorsDataset, from_safetensors, log_dataset  # noqa: E402
from safetensors_spark.mlflow._source import SafetensorsDatasetSource, StoredDataset  # noqa: E402

__all__ = [
    "Column",
    "IndexPart",
    "Manifest",
    "SafetensorsDataset",
    "SafetensorsDatasetSource",
    "Shard",
    "StoredDataset",
    "from_safetensors",
    "log_dataset",
]
