"""Random rows of every kind of column in one table: a schema, what of it is ragged, and the rows."""

import datetime
import json
import math
from dataclasses import dataclass
from typing import Any

from hypothesis import strategies as st
from pyspark.ml.linalg import Vectors, VectorUDT
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import DataType, StructField, StructType, _parse_datatype_string

from official import BITS
from spark_io import TENSOR_STRUCT

NUMBERS: dict[str, st.SearchStrategy[Any]] = {
    "boolean": st.booleans(),
    "tinyint": st.integers(-(1 << 7), (1 << 7) - 1),
    "smallint": st.integers(-(1 << 15), (1 << 15) - 1),
    "int": st.integers(-(1 << 31), (1 << 31) - 1),
    "bigint": st.integers(-(1 << 63), (1 << 63) - 1),
    "float": st.floats(width=32, allow_nan=False),
    "double": st.floats(allow_nan=False),
}

TIMES = st.datetimes(datetime.datetime(1900, 1, 1), datetime.datetime(2200, 1, 1))

SINGLES = NUMBERS | {
    "string": st.text(st.characters(exclude_categories=["Cs"]), max_size=8),
    "binary": st.binary(max_size=9).map(bytearray),
    "date": st.dates(),
    "timestamp_ntz": TIMES,
    # Python's local time skips and repeats hours. Its zones had other offsets before 1970.
    "timestamp": st.integers(0, 1 << 52).map(lambda us: datetime.datetime.fromtimestamp(us // 1_000_000)),
}


@dataclass(frozen=True)
class Column:
    type: DataType
    is_ragged: bool
    values: list[Any]


@dataclass(frozen=True)
class Rows:
    """A table of columns `c0`, `c1` and so on."""

    schema: StructType
    ragged: list[str]
    rows: list[tuple[Any, ...]]

    def frame(self, spark: SparkSession) -> DataFrame:
        """In one partition, so that the order of rows is certain."""
        return spark.createDataFrame(self.rows, self.schema).coalesce(1)

    @property
    def options(self) -> dict[str, str]:
        return {"ragged": json.dumps(self.ragged)} if self.ragged else {}


def _lengths(draw: st.DrawFn, rows: int, is_ragged: bool) -> list[list[int]]:
    """The first dimension of each row of a ragged column."""
    return [[draw(st.integers(0, 4))] if is_ragged else [] for _ in range(rows)]


@st.composite
def singles(draw: st.DrawFn, rows: int) -> Column:
    kind = draw(st.sampled_from(sorted(SINGLES)))
    values = draw(st.lists(SINGLES[kind], min_size=rows, max_size=rows))
    return Column(_parse_datatype_string(kind), False, values)


@st.composite
def arrays(draw: st.DrawFn, rows: int) -> Column:
    number, is_ragged = draw(st.sampled_from(sorted(NUMBERS))), draw(st.booleans())
    shape = draw(st.lists(st.integers(1, 3), min_size=0 if is_ragged else 1, max_size=2))

    def array(dims: list[int]) -> Any:
        return draw(NUMBERS[number]) if not dims else [array(dims[1:]) for _ in range(dims[0])]

    depth = len(shape) + is_ragged
    values = [array(length + shape) for length in _lengths(draw, rows, is_ragged)]
    return Column(_parse_datatype_string("array<" * depth + number + ">" * depth), is_ragged, values)


@st.composite
def tensors(draw: st.DrawFn, rows: int) -> Column:
    """Tensor Structs. The last dimension fills whole bytes of every dtype."""
    dtype, is_ragged = draw(st.sampled_from(sorted(BITS))), draw(st.booleans())
    shape = [*draw(st.lists(st.integers(1, 3), max_size=1)), 4]

    def tensor(dims: list[int]) -> tuple[bytearray, list[int], str]:
        size = math.prod(dims) * BITS[dtype] // 8
        return bytearray(draw(st.binary(min_size=size, max_size=size))), dims, dtype

    values = [tensor(length + shape) for length in _lengths(draw, rows, is_ragged)]
    return Column(TENSOR_STRUCT, is_ragged, values)


@st.composite
def vectors(draw: st.DrawFn, rows: int) -> Column:
    length = draw(st.integers(1, 4))
    numbers = st.lists(NUMBERS["double"], min_size=length, max_size=length)
    return Column(VectorUDT(), False, [Vectors.dense(draw(numbers)) for _ in range(rows)])


@st.composite
def tables(draw: st.DrawFn, has_vectors: bool = True) -> Rows:
    rows = draw(st.integers(1, 5))
    kinds = [singles, arrays, tensors, *([vectors] if has_vectors else [])]
    found = draw(st.lists(st.one_of([kind(rows) for kind in kinds]), min_size=1, max_size=6))
    names = [f"c{number}" for number in range(len(found))]
    schema = StructType([StructField(name, column.type) for name, column in zip(names, found, strict=True)])
    ragged = [name for name, column in zip(names, found, strict=True) if column.is_ragged]
    return Rows(schema, ragged, list(zip(*(column.values for column in found), strict=True)))
