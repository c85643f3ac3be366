"""The key-value dataset: each digit is a tensor of its own, found by its key through the index."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from safetensors_spark._commands.demo.report import Check, Clock, Part, compare
from safetensors_spark._commands.tables import Table
from safetensors_spark._errors import SafetensorsSparkError

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from safetensors_spark._commands.demo.digits import Digits

LOOKED_UP = (0, 42, 1000, 1796)
"""The digits that are looked up by key."""


def run(spark: SparkSession, truth: Digits, output: Path, clock: Clock) -> Part:
    """Write a tensor for each digit with Spark, and examine what was written."""
    folder = output / "store"
    with clock.step("write by key with Spark"):
        write(spark, truth, folder)
    return examine(folder, truth, clock)


def key(digit: int) -> str:
    """The name of this digit's tensor."""
    return f"digit_{digit:04d}"


def write(spark: SparkSession, truth: Digits, folder: Path) -> None:
    """Write a tensor for each image, named by its key, and the index."""
    rows = [(key(digit), image.ravel().tolist()) for digit, image in enumerate(truth.images)]
    (
        spark.createDataFrame(rows, "key string, image array<short>")
        .write.format("safetensors")
        .option("name_col", "key")
        .option("generate_index", "true")
        .option("shapes", json.dumps({"image": [8, 8]}))
        .option("dtype", "U8")
        .mode("overwrite")
        .save(str(folder.resolve()))
    )


def examine(folder: Path, truth: Digits, clock: Clock) -> Part:
    """Compare every tensor as the official library reads it, and a few that are looked up in the index."""
    manifest = json.loads((folder / "dataset_manifest.json").read_text(encoding="utf-8"))
    with clock.step("read keys with the safetensors library"):
        everything = _with_library(folder, manifest, truth)
    with clock.step("look keys up"):
        found = [_look_up(folder, digit, truth) for digit in LOOKED_UP]
    return Part(
        title=f"Each digit is also a tensor of its own, named {key(0)} and so on: {len(manifest['shards'])} shards.",
        tables=[_table([row for row, _ in found])],
        # A look-up that is equal has its word in the table.
        checks=[*everything, *(check for _, check in found if check.difference)],
        files=[("dataset by key", str(folder))],
    )


def entry_of(folder: Path, name: str) -> dict[str, Any]:
    """What the index says of this tensor."""
    import pyarrow.parquet as pq  # type: ignore[import-untyped]

    manifest = json.loads((folder / "dataset_manifest.json").read_text(encoding="utf-8"))
    parts = [str(folder / part["file"]) for part in manifest["index_parts"]]
    entries: list[dict[str, Any]] = pq.read_table(parts, filters=[("tensor_key", "=", name)]).to_pylist()
    if len(entries) != 1:
        raise SafetensorsSparkError(
            f"The index of {folder} has {len(entries)} entries for the tensor `{name}`, expected 1."
        )
    return entries[0]


def read(folder: Path, entry: dict[str, Any]) -> NDArray[np.uint8]:
    """Read the bytes that the entry names, and no others."""
    with (folder / entry["file_name"]).open("rb", buffering=0) as shard:
        shard.seek(entry["data_start"])
        values = np.frombuffer(shard.read(entry["data_end"] - entry["data_start"]), np.uint8)
    # Bytes that do not fill the shape are a difference for the report to tell.
    return values.reshape(entry["shape"]) if values.size == math.prod(entry["shape"]) else values


def _with_library(folder: Path, manifest: dict[str, Any], truth: Digits) -> list[Check]:
    from safetensors.numpy import load_file

    shards = [load_file(folder / shard["file"]) for shard in manifest["shards"]]
    tensors = sorted((pair for shard in shards for pair in shard.items()), key=lambda pair: pair[0])
    keys, images = zip(*tensors, strict=True)
    reader = "safetensors library"
    return [
        compare(reader, "keys", np.array(keys), np.array([key(digit) for digit in range(len(truth.images))])),
        compare(reader, "pixels", np.stack(images), truth.images),
    ]


def _table(rows: list[tuple[str, ...]]) -> Table:
    return Table("Looked up by the index", ("key", "shard", "bytes read", "label", "equal"), rows)


def _look_up(folder: Path, digit: int, truth: Digits) -> tuple[tuple[str, ...], Check]:
    """A row of the table, and the comparison behind it."""
    entry = entry_of(folder, key(digit))
    pixels = read(folder, entry)
    check = compare("index", key(digit), pixels, truth.images[digit])
    row = (key(digit), entry["file_name"], str(pixels.nbytes), str(truth.labels[digit]), check.difference or "yes")
    return row, check
