"""`safetensors-spark convert` of folders named `key=value`: the keys are columns, there and back."""

import datetime
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa  # type: ignore[import-untyped]
import pyarrow.dataset as ds  # type: ignore[import-untyped]
import pyarrow.parquet as pq  # type: ignore[import-untyped]
import pytest

from command import run
from safetensors_spark import InvalidWriteError
from safetensors_spark._convert.convert import convert, source_of
from safetensors_spark._convert.to_parquet import to_parquet
from safetensors_spark.dataset import Dataset, open_dataset, write_dataset


def converted(source: Path, path: Path, *columns: str) -> Dataset:
    convert(source_of(source, columns or None), path, 1, {"batch_size": "auto"})
    return open_dataset(path)


def rows_of(dataset: Dataset) -> dict[str, list[Any]]:
    return {column.name: [row[column.name] for row in dataset] for column in dataset.columns}


def test_partition_columns_of_parquet(tmp_path: Path) -> None:
    table = pa.table(
        {"x": np.arange(6), "year": [2025, 2025, 2026, 2026, 2026, 2026], "lang": ["en", "de", "en", "en", "de", "de"]}
    )
    ds.write_dataset(table, tmp_path / "t", format="parquet", partitioning=["year", "lang"], partitioning_flavor="hive")
    expected = ds.dataset(tmp_path / "t", partitioning="hive").to_table().to_pydict()
    dataset = converted(tmp_path / "t", tmp_path / "dataset")
    assert [(column.name, column.dtype, column.kind) for column in dataset.columns] == [
        ("x", "I64", "fixed"),
        ("year", "I32", "fixed"),
        ("lang", "U8", "text"),
    ]
    assert rows_of(dataset) == expected
    assert rows_of(converted(tmp_path / "t", tmp_path / "some", "lang", "x")) == {
        "x": expected["x"],
        "lang": expected["lang"],
    }
    assert rows_of(converted(tmp_path / "t", tmp_path / "one", "year")) == {"year": expected["year"]}


def test_values_of_partitions(tmp_path: Path) -> None:
    folders = ["_day=2026-01-02/at=2026-01-02 03%3A04%3A05.5/w=1.5", "_day=2026-01-03/at=2026-01-02 00%3A00%3A00/w=2.0"]
    for folder in folders:
        (tmp_path / "t" / folder).mkdir(parents=True)
        # As Spark has it, the folder's value takes the place of the file's.
        pq.write_table(pa.table({"x": [1], "w": ["not this"]}), tmp_path / "t" / folder / "a.parquet")
    dataset = converted(tmp_path / "t", tmp_path / "dataset")
    day = datetime.date(2026, 1, 2)
    first = dataset[0]
    assert (first["_day"].item(), first["w"], int(first["x"])) == (day, 1.5, 1)
    assert first["at"].item() == datetime.datetime(2026, 1, 2, 3, 4, 5, 500000)
    assert [column.kind for column in dataset.columns] == ["fixed", "date", "timestamp_ntz", "fixed"]


@pytest.mark.parametrize(
    ("folders", "words"),
    [
        (["a=1", ""], "different partition columns: none for .*, and a for"),
        (["a=1", "b=1"], "different partition columns: a for .*, and b for"),
        (["a=1/A=2"], "name a partition column twice: a, A"),
        (["a=1", "a=__HIVE_DEFAULT_PARTITION__"], "a.parquet is in the folder of rows without a `a`"),
    ],
)
def test_partitions_that_do_not_fit(tmp_path: Path, folders: list[str], words: str) -> None:
    for folder in folders:
        (tmp_path / "t" / folder).mkdir(parents=True, exist_ok=True)
        pq.write_table(pa.table({"x": [1]}), tmp_path / "t" / folder / "a.parquet")
    with pytest.raises(InvalidWriteError, match=words):
        converted(tmp_path / "t", tmp_path / "dataset")


def test_a_folder_of_partitions_becomes_parquet(tmp_path: Path) -> None:
    for year, lang in ((2025, "en"), (2026, "de")):
        batch = {"x": np.arange(3) + year, "t": ["a", "", "é"]}
        write_dataset(batch, tmp_path / "parts" / f"year={year}" / f"lang={lang}", batch_size=2)
    done = run("convert", str(tmp_path / "parts"), str(tmp_path / "back"), "--processes", "2")
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout == f"{tmp_path}/back: 6 rows in Parquet.\n"
    found = pq.read_table(tmp_path / "back")
    assert found.to_pydict() == {
        "x": [2025, 2026, 2027, 2026, 2027, 2028],
        "t": ["a", "", "é"] * 2,
        "year": [2025] * 3 + [2026] * 3,
        "lang": ["en"] * 3 + ["de"] * 3,
    }
    to_parquet(tmp_path / "parts", tmp_path / "some", 1, columns=["lang"])
    assert pq.read_table(tmp_path / "some").to_pydict() == {"lang": ["en"] * 3 + ["de"] * 3}
