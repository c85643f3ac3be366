"""Model checkpoints, as Hugging Face's libraries lay them out."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from pyspark.sql import DataFrame, SparkSession
from safetensors.numpy import load_file, save_file

from spark_io import assert_says, error_of

INDEX = "model.safetensors.index.json"


def weights(layers: int) -> dict[str, np.ndarray[Any, Any]]:
    tensors: dict[str, np.ndarray[Any, Any]] = {"embed.weight": np.arange(6, dtype=np.float32).reshape(3, 2)}
    for layer in range(layers):
        tensors[f"layers.{layer}.weight"] = np.full((2, 2), layer, np.float16)
        tensors[f"layers.{layer}.bias"] = np.full(2, layer, np.float32)
    return tensors


def checkpoint(folder: Path, stem: str = "model", layers: int = 4) -> Path:
    """Three files and their index, which puts every third tensor into each."""
    folder.mkdir(parents=True, exist_ok=True)
    tensors = list(weights(layers).items())
    weight_map: dict[str, str] = {}
    for number in range(3):
        name = f"{stem}-{number + 1:05d}-of-00003.safetensors"
        some = dict(tensors[number::3])
        save_file(some, folder / name, metadata={"format": "pt"})
        weight_map |= dict.fromkeys(some, name)
    head, *variant = stem.split(".")
    index = ".".join([head, "safetensors.index", *variant, "json"])
    (folder / index).write_text(json.dumps({"metadata": {"total_size": 72}, "weight_map": weight_map}))
    return folder


def long(spark: SparkSession, path: Path, **options: Any) -> DataFrame:
    return spark.read.format("safetensors").options(layout="long", **options).load(str(path))


def values(df: DataFrame) -> dict[str, tuple[str, list[int], bytes]]:
    rows = df.collect()
    found = {row[0]: (row[1]["dtype"], row[1]["shape"], bytes(row[1]["data"])) for row in rows}
    assert len(found) == len(rows)
    return found


def official(*files: Path) -> dict[str, tuple[str, list[int], bytes]]:
    names = {"float32": "F32", "float16": "F16"}
    arrays = {key: array for file in files for key, array in load_file(file).items()}
    return {key: (names[array.dtype.name], list(array.shape), array.tobytes()) for key, array in arrays.items()}


def opened(df: DataFrame) -> str:
    """How many files the plan reads, of how many."""
    plan = str(df._jdf.queryExecution().executedPlan().toString())
    [words] = [line for line in plan.splitlines() if " files, layout " in line]
    return words.split("safetensors ")[1].split(" files")[0]


@pytest.mark.short
def test_a_sharded_checkpoint_is_the_files_of_its_index(spark: SparkSession, tmp_path: Path) -> None:
    folder = checkpoint(tmp_path)
    # The same weights once more in one file, and weights that belong to no model.
    save_file(weights(4), folder / "consolidated.safetensors")
    save_file({"lora": np.zeros(2, np.float32)}, folder / "adapter_model.safetensors")
    shards = sorted(folder.glob("model-*"))
    for path in (folder, folder / INDEX):
        assert values(long(spark, path)) == official(*shards) == official(folder / "consolidated.safetensors")
    assert values(long(spark, folder / "adapter_model.safetensors")) == official(folder / "adapter_model.safetensors")
    merged = spark.read.format("safetensors").option("mergeSchema", "true").load(str(folder))
    assert sorted(merged.columns) == sorted(weights(4))
    rows = merged.select("`layers.0.bias`.shape", "`embed.weight`.shape").collect()
    assert sorted(map(str, rows)) == sorted(
        ["Row(shape=None, shape=[3, 2])", "Row(shape=None, shape=None)", "Row(shape=[2], shape=None)"]
    )


@pytest.mark.parametrize(
    ("condition", "files", "tensors"),
    [
        ("tensor_key = 'layers.1.weight'", "1 of 3", 1),
        ("tensor_key = 'absent'", "0 of 3", 0),
        ("tensor_key IN ('layers.0.bias', 'layers.1.bias', 'absent')", "2 of 3", 2),
        ("tensor_key LIKE 'embed.%'", "1 of 3", 1),
        ("startswith(tensor_key, 'layers.1.')", "2 of 3", 2),
        ("tensor_key LIKE 'embed.%' AND tensor.dtype = 'F16'", "1 of 3", 0),
        ("tensor.dtype = 'F16'", "3 of 3", 4),
    ],
)
def test_conditions_on_names_open_the_files_that_the_index_tells(
    spark: SparkSession, tmp_path: Path, condition: str, files: str, tensors: int
) -> None:
    found = long(spark, checkpoint(tmp_path)).where(condition)
    everything = spark.createDataFrame(long(spark, tmp_path).collect(), long(spark, tmp_path).schema)
    assert values(found) == values(everything.where(condition))
    assert (opened(found), found.count()) == (files, tensors)


def test_files_that_are_not_opened_may_be_broken(spark: SparkSession, tmp_path: Path) -> None:
    checkpoint(tmp_path)
    named = json.loads((tmp_path / INDEX).read_text())["weight_map"]["layers.1.weight"]
    for file in tmp_path.glob("*.safetensors"):
        if file.name != named:
            file.write_bytes(b"broken")
    found = values(long(spark, tmp_path).where("tensor_key = 'layers.1.weight'"))
    assert found == {"layers.1.weight": ("F16", [2, 2], np.ones(4, np.float16).tobytes())}
    assert_says(error_of(long(spark, tmp_path).collect), "-of-00003.safetensors", "HeaderTooSmall")


def test_every_part_of_a_pipeline_is_read_with_its_own_index(spark: SparkSession, tmp_path: Path) -> None:
    stem = "diffusion_pytorch_model"
    checkpoint(tmp_path / "unet", stem)
    # A variant in another dtype beside it, of which the index is another.
    checkpoint(tmp_path / "unet", f"{stem}.fp16", layers=1)
    checkpoint(tmp_path / "text_encoder", "model.bf16", layers=2)
    (tmp_path / "vae").mkdir()
    save_file({"vae": np.zeros(2, np.float32)}, tmp_path / "vae" / f"{stem}.safetensors")
    (tmp_path / "model_index.json").write_text("{}")
    table = long(spark, tmp_path, recursiveFileLookup=True)
    folders = table.selectExpr("element_at(split(_metadata.file_path, '/'), -2) folder").groupBy("folder").count()
    assert {row["folder"]: row["count"] for row in folders.collect()} == {"unet": 9, "text_encoder": 5, "vae": 1}
    assert opened(table.where("tensor_key = 'layers.3.bias'")) == "2 of 7"
    assert opened(table.where("tensor_key = 'vae'")) == "1 of 7"
    variant = long(spark, tmp_path / "unet" / f"{stem}.safetensors.index.fp16.json")
    assert sorted(values(variant)) == sorted(weights(1))
    picked = long(spark, tmp_path / "unet", pathGlobFilter="*-00001-of-*")
    assert values(picked) == official(tmp_path / "unet" / f"{stem}-00001-of-00003.safetensors")


def test_two_checkpoints_in_one_directory_are_named_by_their_indexes(spark: SparkSession, tmp_path: Path) -> None:
    checkpoint(tmp_path, "model", 4)
    checkpoint(tmp_path, "ema", 1)
    message = error_of(lambda: long(spark, tmp_path))
    assert_says(message, "several checkpoints: ema.safetensors.index.json, model.safetensors.index.json", "Name one")
    reader = spark.read.format("safetensors").option("layout", "long")
    both = reader.load([str(tmp_path / INDEX), str(tmp_path / "ema.safetensors.index.json")])
    assert both.count() == 12
    assert both.where("tensor_key = 'layers.0.bias'").count() == 2
    assert both.where("tensor_key = 'layers.1.bias'").count() == 1


def change(folder: Path, edit: Callable[[dict[str, Any]], object]) -> None:
    index = json.loads((folder / INDEX).read_text())
    edit(index)
    (folder / INDEX).write_text(json.dumps(index))


@pytest.mark.parametrize(
    "name", ["../x.safetensors", "/etc/x.safetensors", "a/b.safetensors", "..\\x", "..", "", 7, None]
)
def test_a_file_outside_of_the_directory_is_refused(spark: SparkSession, tmp_path: Path, name: Any) -> None:
    folder = checkpoint(tmp_path / "model")
    for lured in ("../x.safetensors", "a/b.safetensors"):
        (folder / lured).parent.mkdir(exist_ok=True)
        save_file({"lured": np.zeros(2, np.float32)}, folder / lured)
    change(folder, lambda index: index["weight_map"].update({"embed.weight": name}))
    message = error_of(lambda: long(spark, folder))
    where = f"`embed.weight` is in {json.dumps(name)}"
    assert_says(message, str(folder / INDEX), where, "not a file name in its directory")


def test_files_of_the_index_that_are_missing_are_named(spark: SparkSession, tmp_path: Path) -> None:
    first, second, _ = sorted(checkpoint(tmp_path).glob("*.safetensors"))
    first.unlink()
    for path in (tmp_path, tmp_path / INDEX):
        message = error_of(lambda path=path: long(spark, path))  # type: ignore[misc]
        assert_says(message, f"Shard {first.name} is gone from", str(tmp_path), f"its {INDEX} names it")
    second.unlink()
    second.mkdir()
    assert_says(error_of(lambda: long(spark, tmp_path)), f"Shard {first.name} (and 1 more)")


@pytest.mark.parametrize("text", ["", "{", "[]", "null", "{}", '{"weight_map": {}}', '{"weight_map": []}', "\0"])
def test_an_index_that_is_none_is_an_error(spark: SparkSession, tmp_path: Path, text: str) -> None:
    (checkpoint(tmp_path) / INDEX).write_text(text)
    for path in (tmp_path, tmp_path / INDEX):
        message = error_of(lambda path=path: long(spark, path))  # type: ignore[misc]
        assert_says(message, str(tmp_path / INDEX), "is not a valid checkpoint index", "pass the safetensors files")


def test_a_tensor_in_another_file_than_the_index_says_is_an_error_whatever_the_condition(
    spark: SparkSession, tmp_path: Path
) -> None:
    folder = checkpoint(tmp_path)
    wrong = "model-00003-of-00003.safetensors"
    change(folder, lambda index: index["weight_map"].update({"embed.weight": wrong}))
    for condition in ("true", "tensor_key = 'embed.weight'", "tensor_key LIKE '%weight'"):
        message = error_of(long(spark, folder).where(condition).collect)
        assert_says(
            message, f"{wrong} has no tensor `embed.weight`", "index of its checkpoint", "pass the safetensors files"
        )
    merged = spark.read.format("safetensors").option("mergeSchema", "true")
    assert_says(error_of(lambda: merged.load(str(folder))), f"{wrong} has no tensor `embed.weight`")
    files = sorted(folder.glob("*.safetensors"))
    named = spark.read.format("safetensors").option("layout", "long").load([str(file) for file in files])
    assert values(named) == official(*files)


def test_a_tensor_that_the_index_does_not_list_is_none_whatever_the_condition(
    spark: SparkSession, tmp_path: Path
) -> None:
    one, two = np.zeros(1, np.float32), np.ones(1, np.float32)
    save_file({"a": one, "b": one}, tmp_path / "model-1.safetensors")
    save_file({"a": two, "c": two}, tmp_path / "model-2.safetensors")
    weight_map = {"a": "model-1.safetensors", "c": "model-2.safetensors"}
    (tmp_path / INDEX).write_text(json.dumps({"weight_map": weight_map}))
    found = long(spark, tmp_path)
    assert values(found) == {"a": ("F32", [1], one.tobytes()), "c": ("F32", [1], two.tobytes())}
    for condition in ("= 'b'", "LIKE '%b'", "LIKE 'b%'", "IN ('b', 'x')", "BETWEEN 'b' AND 'bz'"):
        assert found.where(f"tensor_key {condition}").count() == 0, condition
    for condition in ("= 'a'", "LIKE '%a'", "LIKE 'a%'", "IN ('a', 'b')", "< 'b'"):
        assert found.where(f"tensor_key {condition}").count() == 1, condition
    wide = spark.read.format("safetensors").option("mergeSchema", "true").load(str(tmp_path))
    assert wide.columns == ["a", "c"]
    assert sorted(str(row["a"] and row["a"]["shape"]) for row in wide.collect()) == ["None", "[1]"]
