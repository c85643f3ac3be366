"""What is said of wrong arguments and odd files."""

import json
import os
import re
import struct
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import fsspec
import numpy as np
import pytest
from safetensors.numpy import save_file

import safetensors_spark as sts
from safetensors_spark.dataset import inspect, open_dataset, open_store


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Two samples in each of two files, which do not agree in a dtype."""
    folder = tmp_path / "mixed"
    folder.mkdir()
    for name, dtype in (("a", np.float32), ("b", np.float64)):
        save_file({"x": np.zeros((2, 3), dtype), "n": np.arange(2)}, folder / f"{name}.safetensors")
    return folder


@pytest.mark.parametrize(
    ("action", "one", "other"),
    [
        (lambda ds: ds["x"], "a.safetensors", "b.safetensors"),
        (lambda ds: ds[[0, 3]], "a.safetensors", "b.safetensors"),
        (lambda ds: list(ds.batches(4)), "a.safetensors", "b.safetensors"),
    ],
)
def test_files_that_do_not_agree_are_named(folder: Path, action: Callable[[Any], Any], one: str, other: str) -> None:
    said = (
        f"column `x` has samples of float32 [3] in {one} and of float64 [3] in {other}, which cannot be stacked: take "
        "them one by one, or leave the column out with `columns`."
    )
    with pytest.raises(sts.InvalidTensorError, match=f"^{re.escape(said)}$"):
        action(open_dataset(folder))
    assert open_dataset(folder, columns=["n"])["n"].tolist() == [0, 1, 0, 1]


@pytest.mark.parametrize("shape", ["[-1]", "[3, -1.5e2]", "[184467440737095516150]"])
def test_a_shape_that_is_none_is_shown_as_it_is(tmp_path: Path, shape: str) -> None:
    header = f'{{"x":{{"dtype":"F32","shape":{shape},"data_offsets":[0,4]}}}}'.encode()
    path = tmp_path / "a.safetensors"
    path.write_bytes(struct.pack("<Q", len(header)) + header + bytes(4))
    said = f"tensor `x` has a shape that is not a list of 64-bit dimensions, {shape} ("
    with pytest.raises(sts.InvalidFileError, match=re.escape(said)):
        inspect(path)


@pytest.mark.parametrize("action", ["get_many", "stack"])
def test_a_string_is_no_list_of_keys(folder: Path, action: str) -> None:
    store = open_store(folder / "a.safetensors")
    said = f"keys is the string 'xn', expected a list of keys: {action}(['xn'])"
    with pytest.raises(TypeError, match=f"^{re.escape(said)}$"):
        getattr(store, action)("xn")


@pytest.mark.parametrize("value", ["1GB", None, 1e9])
def test_what_is_no_number_of_bytes(folder: Path, value: Any) -> None:
    said = f"cache_bytes is {value!r}, expected a whole number of bytes, such as 50 << 30"
    with pytest.raises(TypeError, match=f"^{re.escape(said)}$"):
        open_dataset(folder, cache_bytes=value)


def test_a_negative_number_of_bytes(folder: Path) -> None:
    with pytest.raises(ValueError, match="cache_bytes is -1, expected 0 or more"):
        open_dataset(folder, cache_bytes=-1)


def test_a_cache_that_cannot_be_made(folder: Path, tmp_path: Path) -> None:
    fsspec.filesystem("memory").put(f"{folder}/", f"{tmp_path}/", recursive=True)
    (tmp_path / "file").write_text("")
    (tmp_path / "link").symlink_to(tmp_path / "nothing" / "nowhere")
    for name in ("file", "file/cache", "link"):
        said = f"the cache {tmp_path / name} cannot be used (.*): give another directory as `cache_dir`, or in the"
        with pytest.raises(sts.SafetensorsSparkError, match=said):
            open_dataset(f"memory:/{tmp_path}", cache_dir=tmp_path / name)[0]


def test_output_that_nobody_reads(tmp_path: Path) -> None:
    path = tmp_path / "a.safetensors"
    save_file({f"tensor {number}": np.zeros(1) for number in range(20_000)}, path)
    for arguments in (["--json"], ["--limit", "100000"], []):
        reader, writer = os.pipe()
        os.close(reader)
        command = [sys.executable, "-m", "safetensors_spark", "inspect", str(path), *arguments]
        with os.fdopen(writer, "wb") as output:
            run = subprocess.run(command, stdout=output, stderr=subprocess.PIPE, text=True, timeout=120)
        assert (run.returncode, run.stderr) == (141, "")


def test_faults_are_counted_in_words(tmp_path: Path) -> None:
    (tmp_path / "a.safetensors").write_bytes(json.dumps({}).encode())
    command = [sys.executable, "-m", "safetensors_spark", "verify", str(tmp_path)]
    run = subprocess.run(command, capture_output=True, text=True, timeout=120)
    assert run.returncode == 1
    assert run.stdout.endswith("\n1 fault in 1 file, 0 tensors, 0 bytes.\n")
