"""Rows of any length: the name of each digit as text, and the strokes that draw its outline."""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from safetensors_spark._commands.demo import sheet
from safetensors_spark._commands.demo.digits import ROWS_PER_SHARD
from safetensors_spark._commands.demo.outline import strokes_of
from safetensors_spark._commands.demo.report import Check, Clock, Part, compare
from safetensors_spark._commands.tables import Table

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from safetensors_spark._commands.demo.digits import Digits

NAMES = ("zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine")
SHOWN = 7
"""The digit that the report shows."""


@dataclass(frozen=True)
class Strokes:
    """Names, and the points of each digit, F32 [n, 3]: x, y, and 1 where a stroke begins."""

    names: list[str]
    points: list[NDArray[np.float32]]

    def against(self, reader: str, truth: Strokes) -> list[Check]:
        """Compare every name, length and point with the truth."""
        pairs = (self, truth)
        return [
            compare(reader, "names", *(np.array(one.names) for one in pairs)),
            compare(reader, "lengths", *(np.array([len(points) for points in one.points]) for one in pairs)),
            compare(reader, "points", *(np.concatenate(one.points) for one in pairs)),
        ]


def run(spark: SparkSession, digits: Digits, output: Path, clock: Clock) -> Part:
    """Write names and strokes with Spark, read them with Spark and without it, compare, and draw."""
    folder, picture = output / "strokes", output / "strokes.png"
    truth = of_digits(digits)
    with clock.step("write rows of any length with Spark"):
        write(spark, truth, folder)
    with clock.step("read rows of any length with Spark"):
        back = read_with_spark(spark, folder)
    with clock.step("read rows of any length without Spark"):
        loaded = read_with_loader(folder)
    with clock.step("draw the strokes"):
        _draw(loaded, picture)
    lengths = [len(points) for points in truth.points]
    return Part(
        title=f"Digits are also names and strokes: rows of {min(lengths)} to {max(lengths)} points.",
        tables=[_tensors(folder), _sample(loaded)],
        checks=back.against("Spark", truth) + loaded.against("open_dataset", truth),
        files=[("rows of any length", str(folder)), ("strokes", str(picture))],
        truth="what was written",
    )


def of_digits(digits: Digits) -> Strokes:
    """The names and outlines of the images."""
    return Strokes([NAMES[label] for label in digits.labels], [strokes_of(image) for image in digits.images])


def write(spark: SparkSession, strokes: Strokes, folder: Path) -> None:
    """Write a row for each digit: the name as a string, the points as an array of arrays."""
    rows = [(name, points.tolist()) for name, points in zip(strokes.names, strokes.points, strict=True)]
    (
        spark.createDataFrame(rows, "name string, strokes array<array<float>>")
        .write.format("safetensors")
        .option("batch_size", ROWS_PER_SHARD)
        .option("ragged", "strokes")
        .mode("overwrite")
        .save(str(folder.resolve()))
    )


def read_with_spark(spark: SparkSession, folder: Path) -> Strokes:
    """The rows as Spark decodes them: strings, and arrays of arrays."""
    reader = spark.read.format("safetensors").option("layout", "rows").option("decode", "true")
    rows = reader.load(str(folder.resolve())).collect()
    return _strokes((row["name"], row["strokes"]) for row in rows)


def read_with_loader(folder: Path) -> Strokes:
    """The samples as `open_dataset` gives them."""
    from safetensors_spark.dataset import open_dataset

    return _strokes((sample["name"], sample["strokes"]) for sample in open_dataset(folder))


def _strokes(rows: Iterable[tuple[str, Any]]) -> Strokes:
    names, points = zip(*rows, strict=True)
    return Strokes(list(names), [np.array(one, np.float32).reshape(-1, 3) for one in points])


def _lines(points: NDArray[np.float32]) -> list[NDArray[np.float32]]:
    return np.split(points[:, :2], np.flatnonzero(points[:, 2])[1:])


def _draw(strokes: Strokes, picture: Path) -> None:
    def tile(index: int) -> Any:
        return sheet.of_lines(_lines(strokes.points[index]), 8)

    sheet.draw(strokes.names, 8, tile, "Strokes out of safetensors shards", "rows; names in orange", picture)


def _tensors(folder: Path) -> Table:
    from safetensors import safe_open

    manifest = json.loads((folder / "dataset_manifest.json").read_text(encoding="utf-8"))
    with safe_open(folder / manifest["shards"][0]["file"], framework="np") as first:
        slices = [(name, first.get_slice(name)) for name in first.keys()]  # noqa: SIM118 (it is no dictionary)
        rows = [(name, part.get_dtype(), str(part.get_shape())) for name, part in slices]
    return Table("Tensors of the first shard", ("name", "dtype", "shape"), rows)


def _sample(strokes: Strokes) -> Table:
    points = strokes.points[SHOWN]
    begins = ", ".join(f"[{x:.2f}, {y:.2f}, {begin:.0f}]" for x, y, begin in points[:3].tolist())
    rows = [("name", repr(strokes.names[SHOWN])), ("strokes", f"{len(points)} points: {begins}, ...")]
    return Table(f"Sample {SHOWN}, by open_dataset", ("column", "value"), rows)
