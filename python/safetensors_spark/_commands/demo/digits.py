"""The batch-mode dataset: scikit-learn's digits, 1,797 images of handwritten digits with their labels."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from safetensors_spark import functions as st
from safetensors_spark._commands.demo import sheet
from safetensors_spark._commands.demo.report import Check, Clock, Part, compare
from safetensors_spark._commands.tables import Table

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

ROWS_PER_SHARD = 256
_LIBRARY, _SPARK = "safetensors library", "Spark"


@dataclass(frozen=True)
class Digits:
    """Images [n, 8, 8] of 0 to 16, and labels [n]: U8 in the files, floats out of `st_to_array`."""

    images: NDArray[Any]
    labels: NDArray[Any]

    def against(self, reader: str, truth: Digits) -> list[Check]:
        """Compare every pixel and label with the truth."""
        return [
            compare(reader, "pixels", self.images, truth.images),
            compare(reader, "labels", self.labels, truth.labels),
        ]


def run(spark: SparkSession, truth: Digits, output: Path, clock: Clock) -> Part:
    """Write the digits with Spark, read them with the official library and with Spark, compare, and draw."""
    folder, picture = output / "digits", output / "digits.png"
    with clock.step("write batches with Spark"):
        write(spark, truth, folder)
    manifest = json.loads((folder / "dataset_manifest.json").read_text(encoding="utf-8"))
    with clock.step("read batches with the safetensors library"):
        written = read_with_library(folder, manifest)
    with clock.step("read batches with Spark"):
        back = read_with_spark(spark, folder)
    with clock.step("draw the contact sheet"):
        _draw(written, len(manifest["shards"]), picture)
    return Part(
        title=f"{len(truth.labels):,} digits of scikit-learn went through Spark into {len(manifest['shards'])} shards.",
        tables=_tables(folder, manifest),
        checks=written.against(_LIBRARY, truth) + back.against(_SPARK, truth),
        files=[("dataset in batches", str(folder)), ("contact sheet", str(picture))],
    )


def load() -> Digits:
    """The images and labels as scikit-learn has them."""
    from sklearn.datasets import load_digits  # type: ignore[import-untyped]

    bunch = load_digits()
    return Digits(bunch.images.astype(np.uint8), bunch.target.astype(np.uint8))


def write(spark: SparkSession, digits: Digits, folder: Path) -> None:
    """Write a row per image: the pixels as an array of numbers, the label as a number."""
    rows = [(image.ravel().tolist(), int(label)) for image, label in zip(digits.images, digits.labels, strict=True)]
    (
        spark.createDataFrame(rows, "image array<short>, label short")
        .write.format("safetensors")
        .option("batch_size", ROWS_PER_SHARD)
        .option("shapes", json.dumps({"image": [8, 8]}))
        .option("dtype", json.dumps({"image": "U8", "label": "U8"}))
        .mode("overwrite")
        .save(str(folder.resolve()))
    )


def read_with_library(folder: Path, manifest: dict[str, Any]) -> Digits:
    """What the official library finds in the shards that the manifest names, in their order."""
    from safetensors.numpy import load_file

    shards = [load_file(folder / shard["file"]) for shard in manifest["shards"]]
    return Digits(
        np.concatenate([shard["image"] for shard in shards]), np.concatenate([shard["label"] for shard in shards])
    )


def read_with_spark(spark: SparkSession, folder: Path) -> Digits:
    """What Spark finds in the dataset, a row per shard."""
    shards = (
        spark.read.format("safetensors")
        .option("inferSchema", "true")
        .load(str(folder.resolve()))
        .select(st.st_to_array("image").alias("image"), "image.shape", st.st_to_array("label").alias("label"))
        .collect()
    )
    images = [np.array(shard.image).reshape(shard.shape) for shard in shards]
    labels = [np.array(shard.label) for shard in shards]
    return Digits(np.concatenate(images), np.concatenate(labels))


def _draw(digits: Digits, shards: int, picture: Path) -> None:
    captions = [str(label) for label in digits.labels]
    note = f"images, {shards} shards; labels in orange"
    title = "Digits out of safetensors shards"
    sheet.draw(captions, 8, lambda index: sheet.of_pixels(digits.images[index]), title, note, picture)


def _tables(folder: Path, manifest: dict[str, Any]) -> list[Table]:
    from safetensors import safe_open

    shards = [(str(s["file"]), f"{s['samples_count']:,}", f"{s['bytes']:,}") for s in manifest["shards"]]
    shards.append(("total", f"{manifest['total_samples']:,}", f"{manifest['total_bytes']:,}"))
    with safe_open(folder / manifest["shards"][0]["file"], framework="np") as first:
        names = first.keys()
        slices = [first.get_slice(name) for name in names]
        tensors = [(n, s.get_dtype(), str(s.get_shape())) for n, s in zip(names, slices, strict=True)]
    return [
        Table("Shards", ("file", "samples", "bytes"), shards),
        Table("Tensors of the first shard", ("name", "dtype", "shape"), tensors),
    ]
