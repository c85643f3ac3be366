"""Rows of every kind that Spark writes are what the Python reader gives."""

import datetime as dt
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from pyspark.sql import SparkSession

from safetensors_spark.dataset import open_dataset, verify

SCHEMA = (
    "n bigint, tokens array<int>, boxes array<array<double>>, caption string, image binary, is_new boolean, day date, "
    "at timestamp, local timestamp_ntz, x array<float>"
)
COUNT = 120


def row(n: int, random: np.random.Generator) -> tuple[Any, ...]:
    length = int(random.choice([0, 1, 5, 40]))
    points = random.choice([0x20, 0xE0, 0x3042, 0x1F600], length) + random.integers(0, 60, length)
    time = dt.datetime(1965, 1, 1, tzinfo=dt.timezone.utc) + dt.timedelta(
        days=int(random.integers(40_000)), microseconds=int(random.integers(10**11))
    )
    return (
        n,
        random.integers(-(2**31), 2**31, length).tolist(),
        random.random((length % 4, 2)).tolist(),
        "".join(map(chr, points)),
        random.bytes(length),
        bool(random.integers(2)),
        time.date(),
        time,
        time.replace(tzinfo=None),
        random.random(3, np.float32).tolist(),
    )


@pytest.mark.parametrize("seed", range(2))
def test_rows_come_back_as_they_were(spark: SparkSession, tmp_path: Path, seed: int) -> None:
    random = np.random.default_rng(seed)
    rows = [row(n, random) for n in range(COUNT)]
    frame = spark.createDataFrame(rows, SCHEMA).repartition(3)
    writer = frame.write.format("safetensors").option("batch_size", 17).option("ragged", "tokens,boxes")
    writer.option("tail_strategy", "pad" if seed else "write").mode("overwrite").save(str(tmp_path / "rows"))
    ds = open_dataset(tmp_path / "rows")
    assert len(ds) == COUNT
    assert verify(tmp_path / "rows").faults == []
    for found in ds:
        n, tokens, boxes, caption, image, is_new, day, at, local, x = rows[int(found["n"])]
        assert (found["tokens"].tolist(), found["boxes"].tolist()) == (tokens, boxes)
        assert (found["caption"], found["image"], bool(found["is_new"])) == (caption, image, is_new)
        assert (found["day"].item(), found["at"].item()) == (day, at.replace(tzinfo=None))
        assert (found["local"].item(), found["x"].tolist()) == (local, x)
        assert (found["tokens"].dtype, found["boxes"].dtype, found["n"].dtype) == (np.int32, np.float64, np.int64)
    batches = list(ds.batches(10, shuffle=True, seed=seed))
    assert sorted(int(n) for batch in batches for n in batch["n"]) == list(range(COUNT))
    for batch in batches:
        for place, n in enumerate(batch["n"]):
            assert batch["tokens"][place].tolist() == rows[n][1]
            assert batch["boxes"][place].tolist() == rows[n][2]
            assert (batch["caption"][place], batch["image"][place]) == rows[n][3:5]
