"""What `inspect` tells of folders without a manifest, and what a store makes of them."""

import json
import re
from pathlib import Path

import numpy as np
import pytest
from safetensors.numpy import save_file

import safetensors_spark as sts
from safetensors_spark._commands.cli import main
from safetensors_spark.dataset import Column, inspect, open_dataset, open_store, write_dataset


@pytest.fixture
def batches(tmp_path: Path) -> Path:
    """Three samples, and then two."""
    folder = tmp_path / "batches"
    folder.mkdir()
    for name, count, dtype in (("a", 3, np.float32), ("b", 2, np.float64)):
        tensors = {"x": np.zeros((count, 4), dtype), "n": np.arange(count)}
        save_file(tensors, folder / f"{name}.safetensors")
    return folder


def test_a_folder_of_samples(batches: Path, capsys: pytest.CaptureFixture[str]) -> None:
    found = inspect(batches)
    assert found.samples == len(open_dataset(batches)) == 5
    assert sorted(found.columns, key=lambda one: one.name) == [Column("n", "I64", ()), Column("x", None, (4,))]
    assert [shard.samples for shard in found.shards] == [3, 2]
    assert repr(found) == f"<Inspection {batches}: a folder of 2 files, 5 samples of 2 columns>"
    assert main(["inspect", str(batches), "--json"]) == 0
    said = json.loads(capsys.readouterr().out)
    assert said["samples"] == 5
    assert {"name": "x", "dtype": None, "shape": [4]} in said["columns"]
    assert [file["samples"] for file in said["files"]] == [3, 2]
    assert main(["inspect", str(batches)]) == 0
    text = capsys.readouterr().out
    assert re.search(r"samples +5\n", text)
    assert re.search(r"\n  x +varies +\[4\]\n", text)


def test_a_folder_of_weights_has_no_samples(tmp_path: Path) -> None:
    save_file({"w": np.zeros((3, 2)), "b": np.zeros(3)}, tmp_path / "a.safetensors")
    for tensors in (
        {"w": np.zeros((3, 2)), "b": np.zeros(4)},
        {"w": np.zeros(3)},
        {"w": np.zeros(()), "b": np.zeros(())},
    ):
        save_file(tensors, tmp_path / "b.safetensors")
        found = inspect(tmp_path)
        assert (found.samples, found.columns) == (None, ())
        assert "samples" not in found.to_dict()
        tensors_there = len(tensors) + 2
        assert repr(found) == f"<Inspection {tmp_path}: a folder of 2 files, {tensors_there} tensors>"


def test_a_store_of_batches_is_refused(batches: Path) -> None:
    said = (
        r"of .*/batches, a\.safetensors and b\.safetensors both have a tensor `[xn]`, and a store has each key once: "
        r"open batches of samples with `open_dataset`, or one of the files by its path\.$"
    )
    for action in (len, list, lambda store: store["x"], lambda store: store.get_many(["x"])):
        with pytest.raises(sts.SafetensorsSparkError, match=said):
            action(open_store(batches))
    assert open_store(batches / "b.safetensors")["n"].tolist() == [0, 1]


def test_numbers_of_a_sample_are_arrays(batches: Path) -> None:
    ds = open_dataset(batches)
    for sample in (ds[2], next(iter(ds))):
        assert isinstance(sample["n"], np.ndarray)
        assert (sample["n"].shape, sample["n"].dtype) == ((), np.int64)
        sample["n"][...] = 7
    assert ds[2]["n"] == 2


def test_what_python_shows_of_partitions_and_of_nothing(tmp_path: Path) -> None:
    for key in "ab":
        write_dataset({"x": [1]}, tmp_path / "parts" / f"key={key}", batch_size=1)
    write_dataset([], tmp_path / "none", batch_size=1)
    assert repr(inspect(tmp_path / "parts")) == (
        f"<Inspection {tmp_path}/parts: partitions of 2 files, 2 samples of 2 columns>"
    )
    assert repr(open_dataset(tmp_path / "none")) == f"<Dataset {tmp_path}/none: 0 samples in 0 shards>"


def test_the_first_rows_are_shown(batches: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    def shown(path: Path, *options: str) -> str:
        assert main(["inspect", str(path), "--sample", *options]) == 0
        return capsys.readouterr().out.partition("First ")[2]

    text = shown(batches, "2")
    assert text.startswith("2 of 5 samples\n")
    assert text.count("float32 [4]: 0.0, 0.0, 0.0, 0.0") == 2
    assert shown(batches).startswith("5 of 5 samples\n")
    write_dataset({"k": ["a\x1b[2J", "b"], "x": np.ones((2, 9))}, tmp_path / "keyed", name_col="k")
    text = shown(tmp_path / "keyed", "1")
    assert text.startswith("1 of 2 tensors\n")
    assert "float64 [9]: 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, …" in text
    assert "\x1b" not in text
    (file, *_) = sorted(batches.iterdir())
    assert shown(file).startswith("2 of 2 tensors\n")
