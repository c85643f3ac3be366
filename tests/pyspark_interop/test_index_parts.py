"""An index of several parts: each append adds one, and rewrites only parts that are not much larger."""

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq  # type: ignore[import-untyped]
import pytest
from pyspark.sql import DataFrame, SparkSession

import safetensors_spark.dataset as sts_dataset
from safetensors_spark.dataset import verify
from spark_io import MANIFEST, Dataset, assert_says, error_of, files, write
from test_index import INDEX
from test_pushdown import long, metrics

# Large enough that an append of a sixth of it does not rewrite it.
SIZES = (20000, 3000)
KEYS = sum(SIZES)


def rows(spark: SparkSession, first: int, after: int) -> DataFrame:
    """Keys in no order, so that those of each part lie between those of the others."""
    return spark.range(first, after, 1, 2).selectExpr(
        "concat('k', (id * 7919) % 100003) k", "array(cast(id as float)) v"
    )


def key(number: int) -> str:
    return f"k{number * 7919 % 100003}"


def part_names(dataset: Dataset) -> list[str]:
    return [part["file"] for part in dataset.manifest["index_parts"]]


def parts_of(dataset: Dataset) -> list[int]:
    """How many entries each part of the index has."""
    return [pq.read_metadata(dataset.path / name).num_rows for name in part_names(dataset)]


@pytest.fixture(scope="module")
def written(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Dataset:
    path = tmp_path_factory.mktemp("parts") / "store"
    write(rows(spark, 0, SIZES[0]), path, name_col="k", generate_index="true")
    return write(rows(spark, SIZES[0], KEYS), path, name_col="k")


@pytest.mark.short
def test_an_append_adds_a_part_and_leaves_the_large_one(spark: SparkSession, copied: Dataset) -> None:
    assert part_names(copied) == [INDEX, f"_tensor_index-{copied.manifest['commit_id']}.parquet"]
    assert parts_of(copied) == list(SIZES)
    before = files(copied.path)
    dataset = write(rows(spark, KEYS, KEYS + 5), copied.path, name_col="k")
    assert parts_of(dataset) == [SIZES[0], SIZES[1] + 5]
    # The merged part has taken the old one's place.
    assert {name for name in files(dataset.path) if name.endswith(".parquet")} == set(part_names(dataset))
    assert files(dataset.path)[INDEX] == before[INDEX]
    assert [row[0] for row in long(spark, dataset.path).where(f"tensor_key = '{key(KEYS + 4)}'").collect()]


def test_a_large_append_makes_one_part_of_all(spark: SparkSession, copied: Dataset) -> None:
    dataset = write(rows(spark, KEYS, KEYS + 6000), copied.path, name_col="k")
    assert parts_of(dataset) == [KEYS + 6000]
    # Until the manifest was replaced, the old part was there too.
    assert part_names(dataset) == [f"_tensor_index-{dataset.manifest['commit_id']}.parquet"]
    assert [name for name in files(dataset.path) if name.endswith(".parquet")] == part_names(dataset)


def test_an_append_of_nothing_leaves_the_parts(spark: SparkSession, copied: Dataset) -> None:
    dataset = write(rows(spark, 0, 0), copied.path, name_col="k")
    assert dataset.manifest["index_parts"] == copied.manifest["index_parts"]
    assert long(spark, dataset.path).where(f"tensor_key = '{key(1)}'").count() == 1


@pytest.mark.parametrize("number", [7, SIZES[0] + 7])
def test_a_key_of_any_part_is_refused_and_nothing_changes(spark: SparkSession, copied: Dataset, number: int) -> None:
    before = files(copied.path)
    again = rows(spark, KEYS, KEYS + 10).union(rows(spark, number, number + 1))
    message = error_of(lambda: write(again, copied.path, name_col="k"))
    assert_says(message, f"`{key(number)}`", "two shards", "unique")
    assert files(copied.path) == before


def test_spark_looks_keys_up_in_all_parts(spark: SparkSession, written: Dataset) -> None:
    numbers = [0, 5, SIZES[0] - 1, SIZES[0], KEYS - 1]
    df = long(spark, written.path)
    listed = ", ".join(f"'{key(number)}'" for number in [*numbers, KEYS + 1])
    found = df.where(f"tensor_key IN ({listed})").selectExpr("tensor_key", "st_to_array(tensor)[0]")
    assert sorted(found.collect()) == sorted((key(number), number) for number in numbers)
    assert metrics(found)["bytes of headers read"] == "0"
    between = [number for number in range(KEYS) if "k100" <= key(number) < "k101"]
    ranged = df.where("tensor_key >= 'k100' AND tensor_key < 'k101'").selectExpr("st_to_array(tensor)[0]")
    assert sorted(row[0] for row in ranged.collect()) == between
    assert metrics(ranged)["bytes of headers read"] == "0"
    assert df.where("tensor_key LIKE 'k%'").count() == df.count() == KEYS


def test_python_looks_keys_up_in_all_parts(written: Dataset) -> None:
    store = sts_dataset.open_store(written.path)
    numbers = [KEYS - 1, 0, 5, SIZES[0] - 1, SIZES[0], 1, 5]
    names = [key(number) for number in numbers]
    assert [float(array[0]) for array in store.get_many(names)] == numbers
    assert store.stack(names)[:, 0].tolist() == numbers
    assert [float(store[name][0]) for name in names] == numbers
    assert (key(KEYS + 1) in store, "j" in store, "z" in store) == (False, False, False)
    with pytest.raises(KeyError):
        store.stack([*names, key(KEYS + 1)])
    assert len(store) == KEYS
    assert list(store) == sorted(key(number) for number in range(KEYS))


def test_verify_holds_all_parts_against_the_shards(copied: Dataset) -> None:
    report = verify(copied.path)
    assert (report.index_entries, report.faults, report.notes) == (KEYS, [], [])
    second = copied.path / part_names(copied)[1]
    table = pq.read_table(second)
    pq.write_table(table.replace_schema_metadata(None), second)
    # Without its footer's commit it is not the part that the manifest names.
    assert verify(copied.path).notes == [f"{second.name} is of another commit: readers ignore the index"]
    pq.write_table(table.slice(1), second)
    (fault,) = verify(copied.path).faults
    assert_says(fault.what, "2 parts", str(KEYS - 1), str(KEYS))


def without(dataset: Dataset) -> None:
    (dataset.path / part_names(dataset)[1]).unlink()


def of_another_commit(dataset: Dataset) -> None:
    manifest = dataset.manifest
    manifest["index_parts"][1]["commit_id"] = "00000000-0000-0000-0000-000000000000"
    (dataset.path / MANIFEST).write_text(json.dumps(manifest))


@pytest.mark.parametrize("damage", [without, of_another_commit])
def test_without_one_part_there_is_no_index_until_the_next_append(
    spark: SparkSession, copied: Dataset, damage: Callable[[Dataset], Any]
) -> None:
    damage(copied)
    names = [key(0), key(KEYS - 1)]
    found = long(spark, copied.path).where(f"tensor_key IN ('{names[0]}', '{names[1]}')").select("tensor_key")
    assert sorted(row[0] for row in found.collect()) == sorted(names)
    assert [float(array[0]) for array in sts_dataset.open_store(copied.path).get_many(names)] == [0, KEYS - 1]
    dataset = write(rows(spark, KEYS, KEYS + 1), copied.path, name_col="k")
    assert parts_of(dataset) == [KEYS + 1]


def test_a_part_that_the_manifest_does_not_name_is_ignored(spark: SparkSession, copied: Dataset) -> None:
    shutil.copy(copied.path / INDEX, copied.path / "_tensor_index-1b4e28ba-2fa1-41d2-883f-0016d3cca427.parquet")
    assert long(spark, copied.path).where(f"tensor_key = '{key(0)}'").count() == 1
    assert len(sts_dataset.open_store(copied.path)) == KEYS


def test_the_one_file_of_a_dataset_of_version_1_0_is_used_and_kept(spark: SparkSession, path: Path) -> None:
    dataset = write(rows(spark, 0, SIZES[0]), path, name_col="k", generate_index="true")
    manifest = {**dataset.manifest, "format_version": "1.0"}
    del manifest["index_parts"]
    (dataset.path / MANIFEST).write_text(json.dumps(manifest))
    found = long(spark, dataset.path).where(f"tensor_key = '{key(3)}'")
    assert (len(found.collect()), metrics(found)["bytes of headers read"]) == (1, "0")
    assert float(sts_dataset.open_store(dataset.path)[key(3)][0]) == 3
    appended = write(rows(spark, SIZES[0], SIZES[0] + 3), dataset.path, name_col="k")
    assert parts_of(appended) == [SIZES[0], 3]
    assert appended.manifest["index_parts"][0] == {"file": INDEX, "commit_id": manifest["commit_id"]}
