"""Memory is bounded by the plan: neither large shards nor many keys make it grow."""

import shutil
import struct
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.compute as pc  # type: ignore[import-untyped]
import pyarrow.parquet as pq  # type: ignore[import-untyped]
import pytest
from safetensors import safe_open

from application import answer_of
from spark_io import Dataset

MB = 1_000_000


@pytest.fixture
def scratch(tmp_path: Path) -> Iterator[Path]:
    """A directory for gigabytes, which do not stay until pytest deletes old ones."""
    yield tmp_path
    shutil.rmtree(tmp_path)


def settings(scratch: Path, master: str, memory: str, *columns: str, **options: Any) -> dict[str, Any]:
    conf = {"spark.master": master, "spark.driver.memory": memory, "spark.local.dir": str(scratch / "local")}
    return {"conf": conf, "columns": columns, "options": options}


def tensor(shard: Path, name: str) -> "np.ndarray[Any, Any]":
    with safe_open(shard, framework="np") as file:
        found: np.ndarray[Any, Any] = file.get_tensor(name)
    return found


def large_shards(dataset: Dataset) -> list[Path]:
    """The first shards of both tasks; the seconds hold the few rows that are left."""
    assert [shard.name[:10] for shard in dataset.shards] == ["part-00000"] * 2 + ["part-00001"] * 2
    first = dataset.shards[::2]
    assert all(0.8 * 1000 * MB < shard.stat().st_size < 1.2 * 1000 * MB for shard in first)
    return first


def test_two_tasks_write_key_value_shards_of_1000_mb_in_a_heap_of_1_gb(scratch: Path) -> None:
    path = scratch / "dataset"
    columns = "concat('user_', id) AS k", "array_repeat(cast(id AS float), 1024) AS x"
    job = settings(scratch, "local[2]", "1g", *columns, name_col="k", target_shard_size_mb=1000)
    [peak] = answer_of("large_job.py", job | {"writes": {str(path): 500_000}})
    assert peak["resident"] < 2000 * MB
    for shard, begin in zip(large_shards(Dataset(path)), (0, 250_000), strict=True):
        for row in (begin, begin + 1, begin + 200_000):
            assert tensor(shard, f"user_{row}").tolist() == [float(row)] * 1024


def test_two_tasks_fill_shards_of_1000_mb_with_ragged_rows_in_a_heap_of_1_gb(scratch: Path) -> None:
    path = scratch / "dataset"
    columns = "array_repeat(cast(id AS float), 512 + cast(id % 1025 AS int)) AS x", "cast(id AS string) AS t"
    job = settings(scratch, "local[2]", "1g", *columns, batch_size="auto", target_shard_size_mb=1000, ragged="x")
    [peak] = answer_of("large_job.py", job | {"writes": {str(path): 500_000}})
    assert peak["resident"] < 2000 * MB
    for shard, begin in zip(large_shards(Dataset(path)), (0, 250_000), strict=True):
        values, offsets = tensor(shard, "x"), tensor(shard, "x.offsets")
        text, text_offsets = tensor(shard, "t"), tensor(shard, "t.offsets")
        for row in (0, 1, 200_000):
            number = begin + row
            assert values[offsets[row] : offsets[row + 1]].tolist() == [float(number)] * (512 + number % 1025)
            assert text[text_offsets[row] : text_offsets[row + 1]].tobytes() == str(number).encode()


def test_two_tasks_write_batches_of_1000_mb_in_a_heap_of_1_gb(scratch: Path) -> None:
    path = scratch / "dataset"
    job = settings(scratch, "local[2]", "1g", "array_repeat(cast(id AS float), 1024) AS x", batch_size=244_000)
    [peak] = answer_of("large_job.py", job | {"writes": {str(path): 500_000}})
    assert peak["resident"] < 2000 * MB
    for shard, begin in zip(large_shards(Dataset(path)), (0, 250_000), strict=True):
        with safe_open(shard, framework="np") as file:
            rows = file.get_slice("x")
            assert rows.get_shape() == [244_000, 1024]
            for row in (0, 1, 243_999):
                assert rows[row : row + 1].tolist() == [[float(begin + row)] * 1024]


def test_ten_million_keys_with_an_index_do_not_fill_the_driver(scratch: Path) -> None:
    few, many = scratch / "few", scratch / "many"
    columns = "concat('user_', id) AS k", "cast(id AS int) AS x"
    # The executors' heaps are not the driver's.
    job = settings(scratch, "local-cluster[2,1,1024]", "512m", *columns, name_col="k", generate_index="true")
    writes = {str(few): 1_000_000, str(many): 10_000_000}
    peaks = answer_of("large_job.py", job | {"heap": True, "writes": writes})
    # Nine million keys as strings alone would take over 500 MB.
    assert peaks[1]["heap"] - peaks[0]["heap"] < 32 * MB, peaks
    index = many / "_tensor_index.parquet"
    keys = pq.read_table(index, columns=["tensor_key"])["tensor_key"].combine_chunks()
    assert len(keys) == 10_000_000
    assert pc.all(pc.less(keys[:-1], keys[1:])).as_py()
    for row in (0, 4_999_999, 9_999_999):
        [entry] = pq.read_table(index, filters=[("tensor_key", "=", f"user_{row}")]).to_pylist()
        with (many / entry["file_name"]).open("rb") as shard:
            shard.seek(entry["data_start"])
            assert shard.read(entry["data_end"] - entry["data_start"]) == struct.pack("<i", row)
