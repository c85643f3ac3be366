"""Datasets, read and written without Spark and Java, with NumPy; remote ones with fsspec.

    from safetensors_spark.dataset import inspect, open_dataset, open_store, verify

    points = open_dataset("points")       # written with `batch_size`: rows in their order
    points[7]["x"]                        # an array that you may change
    for batch in points.batches(1024):    # across shards
        batch["x"], batch["y"]

    mixed = mix([(points, 0.7), (others, 0.3)], seed=1)    # taken by batches, too

    vectors = open_store("vectors")       # written with `name_col`: tensors by key
    vectors["a"], vectors.get_many(["a", "b"])

    write_dataset(batches, "points", batch_size=1024)    # what Spark writes for the same rows
    with DatasetWriter("points", batch_size=1024) as writer:
        writer.write({"x": array, "text": ["a", "b"]})

    inspect("points").columns             # of a dataset, a checkpoint, a folder or a file
    verify("points").faults

Errors are those of `safetensors_spark`.
"""

from safetensors_spark._files.commit.written import WriteRecord
from safetensors_spark._files.inspect import DtypeTotal, Inspection, Tensor, inspect
from safetensors_spark._files.manifest import Column, IndexPart, KeyBucket, Manifest, Shard
from safetensors_spark._files.numpy_dtypes import Array
from safetensors_spark._files.verify import Fault, Report, verify
from safetensors_spark.dataset._arrays import Batch
from safetensors_spark.dataset._batches import Batches
from safetensors_spark.dataset._blocks import Blocks
from safetensors_spark.dataset._curriculum import Curriculum
from safetensors_spark.dataset._dataset import Dataset, Sample, open_dataset
from safetensors_spark.dataset._mix import Mix, mix
from safetensors_spark.dataset._pack import Packs
from safetensors_spark.dataset._ragged import Packed, Padded, Ragged
from safetensors_spark.dataset._samples import Samples
from safetensors_spark.dataset._store import Store, open_store
from safetensors_spark.dataset._write_dataset import write_dataset
from safetensors_spark.dataset._writer import DatasetWriter

__all__ = [
    "Array",
    "Batch",
    "Batches",
    "Blocks",
    "Column",
    "Curriculum",
    "Dataset",
    "DatasetWriter",
    "DtypeTotal",
    "Fault",
    "IndexPart",
    "Inspection",
    "KeyBucket",
    "Manifest",
    "Mix",
    "Packed",
    "Packs",
    "Padded",
    "Ragged",
    "Report",
    "Sample",
    "Samples",
    "Shard",
    "Store",
    "Tensor",
    "WriteRecord",
    "inspect",
    "mix",
    "open_dataset",
    "open_store",
    "verify",
    "write_dataset",
]
