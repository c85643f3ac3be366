"""Eight-bit floats of Spark, beside those of PyTorch."""

from collections.abc import Iterator
from pathlib import Path
from typing import Literal

import numpy as np
import pytest
import torch
from pyspark.sql import SparkSession
from safetensors.torch import load_file

from safetensors_spark.dataset import open_dataset
from safetensors_spark.functions import arr_to_st
from spark_io import local_session

FLOAT8: dict[Literal["F8_E4M3", "F8_E5M2"], torch.dtype] = {
    "F8_E4M3": torch.float8_e4m3fn,
    "F8_E5M2": torch.float8_e5m2,
}


@pytest.fixture(scope="module")
def spark(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SparkSession]:
    session = local_session(tmp_path_factory.mktemp("warehouse"))
    yield session
    session.stop()


def floats() -> torch.Tensor:
    """The numbers of all bits of BF16, and of many more of F32: random ones, and those around what F8 rounds at."""
    bf16 = np.arange(1 << 16, dtype=np.uint32) << 16
    near = np.add.outer(np.arange(0, 1 << 32, 1 << 19, dtype=np.uint32), np.arange(-2, 3).astype(np.uint32))
    random = np.random.default_rng(8).integers(0, 1 << 32, 1 << 17, dtype=np.uint32)
    bits = np.concatenate([bf16, near.ravel(), random])
    return torch.from_numpy(bits[: len(bits) // 4096 * 4096].view(np.float32).reshape(-1, 4096))


def same(found: torch.Tensor, values: torch.Tensor) -> bool:
    """The bits that PyTorch makes of the numbers; NaN may have lost its sign."""
    expected = values.to(found.dtype).view(torch.uint8)
    differing = found.view(torch.uint8) != expected
    return bool(values[differing].isnan().all() and (found[differing].float().isnan()).all())


@pytest.mark.parametrize("dtype", FLOAT8)
def test_numbers_become_what_pytorch_makes_of_them(
    spark: SparkSession, tmp_path: Path, dtype: Literal["F8_E4M3", "F8_E5M2"]
) -> None:
    values = floats()
    rows = [(number, row) for number, row in enumerate(values.numpy().tolist())]
    df = spark.createDataFrame(rows, "n int, x array<float>").coalesce(1).orderBy("n")
    tensors = df.select("x", arr_to_st("x", [4096], dtype).alias("function"))
    tensors.write.format("safetensors").mode("append").options(batch_size=len(rows), dtype=f'{{"x": "{dtype}"}}').save(
        str(tmp_path / "dataset")
    )
    [shard] = open_dataset(tmp_path / "dataset").shards
    loaded = load_file(tmp_path / "dataset" / shard.file)
    assert loaded["x"].dtype == loaded["function"].dtype == FLOAT8[dtype]
    assert same(loaded["x"], values)
    assert same(loaded["function"], values)
