"""Datasets of a newer format version: readers and writers refuse them by name, and leave them as they are."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa  # type: ignore[import-untyped]
import pyarrow.parquet as pq  # type: ignore[import-untyped]
import pytest
from pyspark.sql import SparkSession

import safetensors_spark as sts
from safetensors_spark._commands.cli import main
from safetensors_spark.dataset import open_dataset, open_store
from spark_io import MANIFEST, Dataset, assert_says, error_of, frame, listing, read, write
from test_index import INDEX, keyed

NEWER = "99.0"


def set_version(dataset: Dataset, version: str) -> None:
    """Makes the manifest one of another version, with a field that no reader knows."""
    changed = dataset.manifest | {"format_version": version, "later": {"file": "later.bin"}}
    (dataset.path / MANIFEST).write_text(json.dumps(changed))
    (dataset.path / f".{MANIFEST}.crc").unlink(missing_ok=True)


def set_index_version(dataset: Dataset, version: str) -> None:
    table = pq.read_table(dataset.path / INDEX)
    metadata = table.schema.metadata | {b"safetensors.format_version": version.encode()}
    pq.write_table(table.replace_schema_metadata(metadata), dataset.path / INDEX)
    (dataset.path / f".{INDEX}.crc").unlink(missing_ok=True)


def append(spark: SparkSession, path: Path, **options: Any) -> None:
    write(keyed(spark, "z"), path, name_col="k", **options)


def overwrite(spark: SparkSession, path: Path) -> None:
    write(keyed(spark, "z"), path, "overwrite", name_col="k")


def count_of_layout(layout: str) -> Callable[[SparkSession, Path], Any]:
    return lambda spark, path: spark.read.format("safetensors").load(str(path), layout=layout).count()


SPARK_USES: dict[str, Callable[[SparkSession, Path], Any]] = {
    "inference": read,
    "long": count_of_layout("long"),
    "schema": lambda spark, path: read(spark, path, frame(spark, "x binary").schema).count(),
    "catalog": lambda spark, path: spark.sql(f"SELECT * FROM safetensors.`{path}`"),
    "append": append,
    "overwrite": overwrite,
    "replace table": lambda spark, path: spark.sql(
        f"CREATE OR REPLACE TABLE safetensors.`{path}` OPTIONS (name_col 'k') AS SELECT 'a' AS k, array(1) AS x"
    ),
    "insert": lambda spark, path: spark.sql(f"INSERT INTO safetensors.`{path}` SELECT 'a' AS k, array(1) AS x"),
}


@pytest.mark.parametrize("use", SPARK_USES)
def test_spark_refuses_a_newer_major_version(spark: SparkSession, copied: Dataset, use: str) -> None:
    set_version(copied, NEWER)
    before = listing(copied.path)
    message = error_of(lambda: SPARK_USES[use](spark, copied.path))
    assert_says(message, f"{copied.path}/{MANIFEST} has format version {NEWER}", "Upgrade safetensors-spark")
    assert listing(copied.path) == before


@pytest.mark.short
@pytest.mark.parametrize("use", [append, overwrite])
def test_spark_reads_a_newer_minor_version_but_does_not_write_to_it(
    spark: SparkSession, copied: Dataset, use: Callable[[SparkSession, Path], None]
) -> None:
    rows = count_of_layout("long")(spark, copied.path)
    set_version(copied, "1.99")
    before = listing(copied.path)
    assert count_of_layout("long")(spark, copied.path) == rows
    message = error_of(lambda: use(spark, copied.path))
    assert_says(message, f"{copied.path}/{MANIFEST} has format version 1.99", "writes 1.3 and 2.0", "another directory")
    assert listing(copied.path) == before


def test_a_version_that_is_none_is_a_fault_of_the_manifest(spark: SparkSession, copied: Dataset) -> None:
    for version in ("new", "1", "1.0.0", "-1.0", "1.99999999999"):
        set_version(copied, version)
        message = error_of(lambda: count_of_layout("long")(spark, copied.path))
        assert_says(message, "not a valid dataset manifest", f"`{version}`", "MAJOR.MINOR")


@pytest.mark.short
def test_an_index_names_its_version(written: Dataset) -> None:
    metadata = pq.read_metadata(written.path / INDEX).metadata
    assert metadata[b"safetensors.format_version"].decode() == "1.1"


def look_up(spark: SparkSession, path: Path) -> list[Any]:
    tensors = spark.read.format("safetensors").load(str(path), layout="long")
    return tensors.where("tensor_key = 'a__x'").collect()


@pytest.mark.parametrize("use", [look_up, append])
def test_spark_refuses_a_newer_index(
    spark: SparkSession, copied: Dataset, use: Callable[[SparkSession, Path], Any]
) -> None:
    set_index_version(copied, "2.0")
    before = listing(copied.path)
    message = error_of(lambda: use(spark, copied.path))
    assert_says(message, f"{copied.path}/{INDEX} has format version 2.0", "Upgrade safetensors-spark")
    assert listing(copied.path) == before


def test_an_index_without_a_version_is_read(spark: SparkSession, copied: Dataset) -> None:
    table = pq.read_table(copied.path / INDEX)
    metadata = {key: value for key, value in table.schema.metadata.items() if b"version" not in key}
    pq.write_table(pa.table(table).replace_schema_metadata(metadata), copied.path / INDEX)
    (copied.path / f".{INDEX}.crc").unlink(missing_ok=True)
    assert len(look_up(spark, copied.path)) == 1
    assert open_store(copied.path)["a__x"].tolist() == [1.0, 2.5]
    append(spark, copied.path)


PYTHON_READERS: dict[str, Callable[[Path], object]] = {"dataset": open_dataset, "store": open_store}


@pytest.mark.parametrize("reader", PYTHON_READERS)
def test_python_refuses_a_newer_version(copied: Dataset, reader: str) -> None:
    set_version(copied, NEWER)
    with pytest.raises(sts.IncompatibleVersionError, match=f"{MANIFEST} has format version {NEWER}, .* Upgrade"):
        PYTHON_READERS[reader](copied.path)


@pytest.mark.parametrize("command", ["inspect", "verify"])
def test_commands_refuse_a_newer_version(copied: Dataset, command: str, capsys: pytest.CaptureFixture[str]) -> None:
    set_version(copied, NEWER)
    assert main([command, str(copied.path)]) == 2
    assert f"{MANIFEST} has format version {NEWER}" in capsys.readouterr().err


def test_python_refuses_a_newer_index(copied: Dataset, capsys: pytest.CaptureFixture[str]) -> None:
    set_index_version(copied, NEWER)
    with pytest.raises(sts.IncompatibleVersionError, match=f"{INDEX} has format version {NEWER}, .* Upgrade"):
        open_store(copied.path)["a__x"]
    assert main(["verify", str(copied.path)]) == 2
    assert f"{INDEX} has format version {NEWER}" in capsys.readouterr().err
