"""A model that is trained on what Spark wrote."""

from collections.abc import Iterator
from pathlib import Path

import pytest
import torch
from pyspark.sql import SparkSession
from sklearn.datasets import load_digits  # type: ignore[import-untyped]
from torch import nn
from torch.utils.data import DataLoader

from safetensors_spark.dataset import open_dataset
from safetensors_spark.functions import arr_to_st
from safetensors_spark.torch import BatchDataset, SampleDataset
from spark_io import local_session

TEST = 360


@pytest.fixture(scope="module")
def spark(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SparkSession]:
    session = local_session(tmp_path_factory.mktemp("warehouse"))
    yield session
    session.stop()


@pytest.fixture(scope="module")
def digits(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """1,797 handwritten digits, sorted by what they show: images in BF16, and labels."""
    found = load_digits()
    rows = zip((found.data / 16).tolist(), found.target.tolist(), range(len(found.data)), strict=True)
    folder = tmp_path_factory.mktemp("digits")
    df = spark.createDataFrame(rows, "image array<double>, label int, id int").orderBy("label", "id")
    for name, part in (("test", df.where(f"id < {TEST}")), ("train", df.where(f"id >= {TEST}"))):
        images = part.select(arr_to_st("image", shape=[1, 8, 8], dtype="BF16").alias("image"), "label")
        images.write.format("safetensors").mode("overwrite").options(batch_size=200).save(str(folder / name))
    return folder


@pytest.mark.parametrize("workers", [0, 2])
def test_digits_are_learned(digits: Path, workers: int) -> None:
    """In an order that is not shuffled well enough, the last labels would be all that the model knows."""
    torch.manual_seed(0)
    model = nn.Sequential(nn.Flatten(), nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 10))
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
    batches = BatchDataset(open_dataset(digits / "train"), 32, shuffle=True, seed=1)
    loader = DataLoader(batches, batch_size=None, num_workers=workers, persistent_workers=workers > 0)
    for epoch in range(12):
        batches.set_epoch(epoch)
        for batch in loader:
            assert batch["image"].dtype == torch.bfloat16
            loss = nn.functional.cross_entropy(model(batch["image"].float()), batch["label"].long())
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
    test = next(iter(BatchDataset(open_dataset(digits / "test"), TEST)))
    right = (model(test["image"].float()).argmax(1) == test["label"]).float().mean()
    assert len(test["label"]) == TEST
    assert float(right) > 0.93


def test_samples_are_the_rows(digits: Path) -> None:
    samples = SampleDataset(open_dataset(digits / "train"))
    labels = [int(samples[number]["label"]) for number in range(len(samples))]
    assert (len(samples), labels) == (1797 - TEST, sorted(labels))
    assert samples[0]["image"].shape == (1, 8, 8)
