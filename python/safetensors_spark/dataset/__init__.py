"""Datasets that Spark wrote, read without Spark and without Java, by NumPy; by fsspec where they are remote.

    from safetensors_spark.dataset import open_dataset, open_store

    points = open_dataset("points")       # written with `batch_size`: rows in their order
    points[7]["x"]                        # an array that looks at the mapped file
    for batch in points.batches(1024):    # across the borders of shards
        batch["x"], batch["y"]

    vectors = open_store("vectors")       # written with `name_col`: tensors by key
    vectors["a"], vectors.get_many(["a", "b"])

Errors are those of `safetensors_spark`.
"""

from safetensors_spark.dataset._dataset import Dataset, open_dataset
from safetensors_spark.dataset._store import Store, open_store

__all__ = ["Dataset", "Store", "open_dataset", "open_store"]
