"""A dataset by key that Spark writes, and what a store of it must have."""

from pathlib import Path

import fsspec
from pyspark.sql import SparkSession

from official import NUMPY_TYPES, load
from safetensors_spark.dataset import Store
from spark_io import Dataset, write
from test_index import KEYS, keyed

EVERY = sorted(f"{key}__{column}" for key in KEYS for column in ("n", "x"))


def write_store(spark: SparkSession, path: Path) -> Dataset:
    """Two columns in three shards, with an index."""
    return write(keyed(spark, *KEYS, partitions=3), path, name_col="k", generate_index="true")


def assert_is(store: Store, dataset: Dataset) -> None:
    """The store has what the official library finds in the shards, and nothing else; later shards go before earlier."""
    expected = {key: tensor for shard in dataset.shards for key, tensor in load(shard).items()}
    assert list(store) == sorted(expected)
    assert len(store) == len(expected)
    for key, array in zip(store, store.get_many(store), strict=True):
        tensor = expected[key]
        assert (array.dtype, array.shape, array.tobytes()) == (NUMPY_TYPES[tensor.dtype], tensor.shape, tensor.data)
        assert store[key].tobytes() == tensor.data
        assert not array.flags.writeable


def uploaded(path: Path, url: str = "") -> str:
    """A copy of the folder in fsspec's memory."""
    url = url or f"memory://{path.parent.name}/{path.name}"
    fsspec.filesystem("memory").put(f"{path}/", url.removeprefix("memory:/") + "/", recursive=True)
    return url
