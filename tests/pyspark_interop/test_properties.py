"""What holds of any tensors: generated ones, written by Spark and by the official library, and read by the other.

Each example is a whole table of many columns or rows, so that a few of them try much. They are the same in every run.
"""

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import ArrayType, StringType, StructField, StructType, _parse_datatype_string
from safetensors.numpy import save

from official import BITS, NUMPY_TYPES, Tensor, load
from spark_io import TENSOR_STRUCT, read, write

examples = settings(
    max_examples=8,
    deadline=None,
    derandomize=True,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow, HealthCheck.data_too_large],
)

Array = np.ndarray[Any, Any]

DTYPES = sorted(NUMPY_TYPES)
# Spark's own types of numbers, and their dtypes.
NUMBERS = {"F32": "float", "F64": "double", "I8": "tinyint", "I16": "smallint", "I32": "int", "I64": "bigint"}

# Names that Spark can tell apart by its rule for case, of all that UTF-8 has.
names = st.text(max_size=6).filter(lambda name: name != "__metadata__")
shapes = st.lists(st.sampled_from([0, 1, 2, 3, 5, 7]), max_size=3).map(tuple)
seeds = st.integers(0, 2**32 - 1)


def fold(name: str) -> str:
    return name.upper().lower()


def array_of(dtype: str, shape: tuple[int, ...], seed: int, bits: bool = True) -> Array:
    """An array of any bits, NaNs and all; or of small numbers, which Python's numbers hold as they are."""
    generator = np.random.default_rng(seed)
    numpy_type = NUMPY_TYPES[dtype]
    if not bits:
        return generator.integers(-100, 100, shape).astype(numpy_type)
    if dtype == "BOOL":
        return generator.integers(0, 2, shape).astype(numpy_type)
    return np.frombuffer(generator.bytes(int(np.prod(shape)) * numpy_type.itemsize), numpy_type).reshape(shape)


@dataclass(frozen=True)
class Column:
    """A column of a table: as Tensor Structs, or as Spark's arrays with the option `shapes`."""

    name: str
    dtype: str
    shape: tuple[int, ...]
    seed: int
    as_arrays: bool

    @property
    def is_array(self) -> bool:
        return self.as_arrays and self.dtype in NUMBERS

    def stacked(self, rows: int) -> Array:
        return array_of(self.dtype, (rows, *self.shape), self.seed, bits=not self.is_array)

    @property
    def field(self) -> StructField:
        element = _parse_datatype_string(NUMBERS[self.dtype]) if self.is_array else None
        return StructField(self.name, ArrayType(element) if element else TENSOR_STRUCT, False)

    def cell(self, sample: Array) -> Any:
        return sample.ravel().tolist() if self.is_array else (sample.tobytes(), list(self.shape), self.dtype)


columns = st.builds(Column, names, st.sampled_from(DTYPES), shapes, seeds, st.booleans())
tables = st.lists(columns, min_size=1, max_size=24, unique_by=lambda column: fold(column.name))
metadata = st.dictionaries(st.text(max_size=6), st.text(max_size=6), max_size=1)


def table_of(spark: SparkSession, table: list[Column], arrays: dict[str, Array]) -> DataFrame:
    schema = StructType([column.field for column in table])
    rows = len(next(iter(arrays.values())))
    cells = [tuple(column.cell(arrays[column.name][row]) for column in table) for row in range(rows)]
    return spark.createDataFrame(cells, schema).coalesce(1)


@examples
@given(table=tables, rows=st.integers(1, 5), told=metadata)
def test_any_table_becomes_the_official_library_s_bytes(
    spark: SparkSession, tmp_path_factory: pytest.TempPathFactory, table: list[Column], rows: int, told: dict[str, str]
) -> None:
    arrays = {column.name: column.stacked(rows) for column in table}
    options: dict[str, Any] = {
        "batch_size": rows,
        "shapes": json.dumps({column.name: column.shape for column in table if column.is_array}),
        "metadata": json.dumps(told),
    }
    path = tmp_path_factory.mktemp("batch") / "dataset"
    written = write(table_of(spark, table, arrays), path, **options).shard.read_bytes()
    assert written == save(arrays, metadata=told or None)


def offsets(shard: Path) -> dict[str, int]:
    """Where each tensor begins in the file."""
    content = shard.read_bytes()
    length = 8 + int.from_bytes(content[:8], "little")
    header = json.loads(content[8:length])
    return {name: length + value["data_offsets"][0] for name, value in header.items() if name != "__metadata__"}


def tensor_of(dtype: str, shape: tuple[int, ...], seed: int) -> Tensor:
    return Tensor(dtype, shape, array_of(dtype, shape, seed).tobytes())


any_tensors = st.builds(tensor_of, st.sampled_from(DTYPES), shapes, seeds)
keyed_rows = st.dictionaries(names, st.tuples(any_tensors, any_tensors), min_size=1, max_size=40)


@examples
@given(rows=keyed_rows, separator=st.text(max_size=3), several=st.booleans())
def test_any_tensors_by_key_are_aligned_as_they_were_and_the_same_bytes_again(
    spark: SparkSession,
    tmp_path_factory: pytest.TempPathFactory,
    rows: dict[str, tuple[Tensor, Tensor]],
    separator: str,
    several: bool,
) -> None:
    schema = StructType([StructField(name, TENSOR_STRUCT) for name in ("a", "b")]).add("k", StringType())
    cells = [(*((t.data, list(t.shape), t.dtype) for t in tensors), key) for key, tensors in rows.items()]
    df = spark.createDataFrame(cells, schema).coalesce(1)
    options: dict[str, Any] = {"name_col": "k", "kv_separator": separator, "columns": "b,a" if several else "a"}
    path = tmp_path_factory.mktemp("keyed")
    first, second = (write(df, path / name, **options).shard for name in ("first", "second"))
    if several:
        wanted = {
            f"{key}{separator}{name}": t for key, pair in rows.items() for name, t in zip("ab", pair, strict=True)
        }
    else:
        wanted = {key: pair[0] for key, pair in rows.items()}
    loaded = load(first)
    assert loaded == wanted
    assert [name for name, at in offsets(first).items() if at * 8 % BITS[loaded[name].dtype]] == []
    assert first.read_bytes() == second.read_bytes()


files_of_tensors = st.dictionaries(names, any_tensors, min_size=1, max_size=24).filter(
    lambda tensors: len({fold(name) for name in tensors}) == len(tensors)
)


@examples
@given(tensors=files_of_tensors)
def test_any_file_of_the_official_library_passes_through_spark(
    spark: SparkSession, tmp_path_factory: pytest.TempPathFactory, tensors: dict[str, Tensor]
) -> None:
    path = tmp_path_factory.mktemp("official")
    file = path / "from.safetensors"
    file.write_bytes(save({name: tensor.array for name, tensor in tensors.items()}))
    df = read(spark, file)
    [row] = df.collect()
    found = {name: Tensor(cell.dtype, tuple(cell.shape), bytes(cell.data)) for name, cell in row.asDict().items()}
    assert found == tensors
    # A batch of one row: the same tensors, with a first dimension of 1.
    written = write(df, path / "dataset", batch_size=1).shard.read_bytes()
    assert written == save({name: tensor.array[None] for name, tensor in tensors.items()}, metadata={"format": "pt"})
