"""Rows that `write_shard` takes of other libraries, and what is no rows."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd  # type: ignore[import-untyped]
import pyarrow as pa  # type: ignore[import-untyped]
import pyarrow.parquet as pq  # type: ignore[import-untyped]
import pytest

from safetensors_spark import InvalidShardError
from safetensors_spark.dataset import write_dataset
from safetensors_spark.publish import ShardSchema, StagedShard, stage_dataset, write_shard
from staging_samples import files

SCHEMA = ShardSchema(columns={"x": pa.int64()})


def table(first: int = 0, rows: int = 3) -> pa.Table:
    return pa.table({"x": list(range(first, first + rows))})


def stage(folder: Path, rows: Any = None, run_id: str = "run", schema: Any = SCHEMA) -> StagedShard:
    return write_shard(table() if rows is None else rows, staging_dir=folder, run_id=run_id, schema=schema)


def read(shard: StagedShard) -> pa.Table:
    return pq.read_table(shard.parquet_path)


class _Stream:
    """What frames of other libraries are to Arrow, such as those of polars."""

    def __init__(self, rows: pa.Table) -> None:
        self._rows = rows

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        return self._rows.__arrow_c_stream__(requested_schema)

    def __iter__(self) -> Iterator[Any]:
        return iter(self._rows.columns)


def test_frames_of_other_libraries_are_rows_by_arrows_interface(tmp_path: Path) -> None:
    assert read(stage(tmp_path, _Stream(table())))["x"].to_pylist() == [0, 1, 2]
    parts = iter([_Stream(table()), _Stream(table(3))])
    assert read(stage(tmp_path, parts, run_id="parts"))["x"].to_pylist() == [0, 1, 2, 3, 4, 5]


def test_texts_of_other_libraries_are_those_that_readers_of_parquet_know(tmp_path: Path) -> None:
    text = pa.array(["a", "b"], pa.string_view())
    code = pa.DictionaryArray.from_arrays(pa.array([0, 1], pa.uint32()), text)
    binary, lists = pa.array([b"1", b"2"]).cast(pa.binary_view()), pa.array([["a"], ["b"]], pa.list_(pa.string_view()))
    rows = pa.table({"x": [0, 1], "text": text, "code": code, "binary": binary, "lists": lists})
    found = stage(tmp_path, _Stream(rows))
    assert stage(tmp_path, _Stream(rows)) == found
    kinds = {one.name: one.type for one in read(found).schema}
    assert kinds["text"] == kinds["lists"].value_type == pa.large_string()
    assert kinds["code"].value_type == pa.string()
    assert kinds["binary"] == pa.large_binary()


def test_tensors_are_the_same_when_they_are_written_again(tmp_path: Path) -> None:
    numbers = np.arange(8.0).reshape(2, 2, 2)
    rows = table().slice(0, 2).append_column("tensor", pa.FixedShapeTensorArray.from_numpy_ndarray(numbers))
    assert stage(tmp_path, rows) == stage(tmp_path, rows)
    other = rows.set_column(1, "tensor", pa.FixedShapeTensorArray.from_numpy_ndarray(numbers + 1))
    with pytest.raises(InvalidShardError, match="has other rows"):
        stage(tmp_path, other)


def test_a_type_that_parquet_has_not_is_named(tmp_path: Path) -> None:
    interval = pa.array([(1, 2, 3)] * 3, pa.month_day_nano_interval())
    with pytest.raises(InvalidShardError, match=r"Parquet does not take .*month_day_nano_interval"):
        stage(tmp_path, table().append_column("gap", interval))
    assert files(tmp_path) == {"failed": [], "pending": [], "synced": []}


def test_no_shard_is_staged_in_a_dataset(tmp_path: Path) -> None:
    write_dataset({"x": np.arange(4)}, tmp_path / "points", batch_size=2)
    before = sorted((tmp_path / "points").iterdir())
    with pytest.raises(NotADirectoryError, match=r"points is a dataset, .* another folder"):
        stage(tmp_path / "points")
    with pytest.raises(NotADirectoryError, match=r"points is a dataset, .* another folder"):
        stage_dataset(tmp_path / "points", staging_dir=tmp_path / "points")
    assert sorted((tmp_path / "points").iterdir()) == before


def test_rows_without_columns_are_named(tmp_path: Path) -> None:
    with pytest.raises(InvalidShardError, match="the ChunkedArray cannot become Arrow's columns"):
        stage(tmp_path, table()["x"])


def test_what_is_no_schema_is_named(tmp_path: Path) -> None:
    with pytest.raises(InvalidShardError, match="schema is a dict, expected a ShardSchema"):
        stage(tmp_path, schema={"x": pa.int64()})
    for kind in (float, "list<float>", None):
        with pytest.raises(InvalidShardError, match=r"column `x` .*, expected a type of Arrow, such as pa.float32\(\)"):
            ShardSchema(columns={"x": kind})
    with pytest.raises(InvalidShardError, match=r"columns is \['x'\], expected the types of columns by their names"):
        ShardSchema(columns=["x"])
    assert list(tmp_path.iterdir()) == []


def test_rows_that_are_no_columns_are_named_as_what_they_are(tmp_path: Path) -> None:
    with pytest.raises(InvalidShardError, match="an item of the rows is a dict, expected"):
        stage(tmp_path, [{"x": 1}])
    with pytest.raises(InvalidShardError, match="the rows are a str, expected"):
        stage(tmp_path, "rows.parquet")
    mixed = pd.DataFrame({"x": [1, "a"]})
    with pytest.raises(InvalidShardError, match=r"Arrow's columns: [^(].*Conversion failed for column x"):
        stage(tmp_path, mixed)
