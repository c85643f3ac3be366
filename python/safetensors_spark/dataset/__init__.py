"""Datasets that Spark wrote, read without Spark and without Java: NumPy alone, and fsspec where they are remote.

    from safetensors_spark.dataset import open_dataset

    points = open_dataset("points")       # written with `batch_size`: rows in their order
    points[7]["x"]                        # an array that looks at the mapped file
    for batch in points.batches(1024):    # across the borders of shards
        batch["x"], batch["y"]

Errors are those of `safetensors_spark`.
"""

from safetensors_spark.dataset._dataset import Dataset, open_dataset

__all__ = ["Dataset", "open_dataset"]
