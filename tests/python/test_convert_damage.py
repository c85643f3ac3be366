"""Sources of `safetensors-spark convert` that are damaged, cut off, or do not say one thing: errors, and no dataset."""

import json
from pathlib import Path

import numpy as np
import pyarrow as pa  # type: ignore[import-untyped]
import pyarrow.parquet as pq  # type: ignore[import-untyped]
import pytest

from command import run
from safetensors_spark import InvalidWriteError
from safetensors_spark._convert.convert import convert, source_of
from safetensors_spark._convert.to_parquet import to_parquet
from safetensors_spark._files.manifest import read_manifest
from safetensors_spark._files.storage import open_folder
from safetensors_spark.dataset import Dataset, open_dataset


def converted(source: Path) -> Dataset:
    path = source.with_name(f"{source.name}.dataset")
    convert(source_of(source), path, 1, {"batch_size": 4})
    return open_dataset(path)


def refused(source: Path) -> str:
    with pytest.raises(InvalidWriteError) as error:
        converted(source)
    assert not list(source.with_name(f"{source.name}.dataset").rglob("*"))
    assert "\n" not in str(error.value)
    return str(error.value)


def cut(path: Path, length: int) -> Path:
    """The file, without all that is behind so many bytes; fewer than none count from its end."""
    path.write_bytes(path.read_bytes()[:length])
    return path


def test_nothing_need_be_told_of_progress(tmp_path: Path) -> None:
    np.save(tmp_path / "x.npy", np.arange(10))
    assert len(converted(tmp_path / "x.npy")) == 10
    path = tmp_path / "x.npy.dataset"
    to_parquet(path, read_manifest(open_folder(path)), tmp_path / "x.parquet", 1)
    assert pq.read_table(tmp_path / "x.parquet")["x"].to_pylist() == list(range(10))


def test_npy_files_of_one_name(tmp_path: Path) -> None:
    (tmp_path / "d" / "sub").mkdir(parents=True)
    np.save(tmp_path / "d" / "a.npy", np.arange(3))
    np.save(tmp_path / "d" / "sub" / "a.npy", np.arange(3))
    message = refused(tmp_path / "d")
    assert f"{tmp_path}/d/a.npy and {tmp_path}/d/sub/a.npy are both the column `a`" in message


@pytest.mark.parametrize("length", [0, 5, 100, 300])
def test_npy_that_is_cut_off(tmp_path: Path, length: int) -> None:
    np.save(tmp_path / "x.npy", np.arange(100))
    assert refused(cut(tmp_path / "x.npy", length)).startswith(f"{tmp_path}/x.npy cannot be read: ")


def test_npy_of_objects(tmp_path: Path) -> None:
    np.save(tmp_path / "x.npy", np.array([{}], object), allow_pickle=True)
    assert refused(tmp_path / "x.npy").startswith(f"{tmp_path}/x.npy cannot be read: ")


@pytest.mark.parametrize("length", [0, 6, -20])
def test_parquet_that_is_cut_off(tmp_path: Path, length: int) -> None:
    pq.write_table(pa.table({"x": [1, 2, 3]}), tmp_path / "x.parquet")
    assert refused(cut(tmp_path / "x.parquet", length)).startswith(f"{tmp_path}/x.parquet cannot be read: ")


def test_parquet_whose_page_is_damaged(tmp_path: Path) -> None:
    pq.write_table(pa.table({"x": [1, 2, 3]}), tmp_path / "x.parquet")
    content = (tmp_path / "x.parquet").read_bytes()
    (tmp_path / "x.parquet").write_bytes(content[:10] + b"\xff" * 20 + content[30:])
    assert refused(tmp_path / "x.parquet").startswith(f"{tmp_path}/x.parquet cannot be read: ")
    done = run("convert", str(tmp_path / "x.parquet"), str(tmp_path / "dataset"))
    assert (done.returncode, done.stderr.count("\n")) == (2, 1)
    assert f"safetensors-spark: {tmp_path}/x.parquet cannot be read: " in done.stderr


def test_a_hugging_face_folder_that_is_cut_off(tmp_path: Path) -> None:
    (tmp_path / "saved").mkdir()
    file, table = tmp_path / "saved" / "data.arrow", pa.table({"x": np.arange(1000)})
    with pa.OSFile(str(file), "wb") as out, pa.ipc.new_stream(out, table.schema) as writer:
        writer.write_table(table)
    state = tmp_path / "saved" / "state.json"
    state.write_text(json.dumps({"_data_files": [{"filename": "data.arrow"}], "_indices_files": None}))
    cut(file, 4000)
    assert refused(tmp_path / "saved").startswith(f"{file} cannot be read: ")
    cut(state, 9)
    assert refused(tmp_path / "saved").startswith(f"{state} cannot be read: ")


def test_an_image_that_is_null_takes_no_hidden_bytes(tmp_path: Path) -> None:
    kind = pa.struct({"bytes": pa.binary(), "path": pa.string()})
    values = [pa.array([b"a", b"hidden"]), pa.array(["x", "y"])]
    image = pa.StructArray.from_arrays(values, fields=list(kind), mask=pa.array([False, True]))
    table = pa.table({"image": image})
    (tmp_path / "saved").mkdir()
    with (
        pa.OSFile(str(tmp_path / "saved" / "data.arrow"), "wb") as out,
        pa.ipc.new_stream(out, table.schema) as writer,
    ):
        writer.write_table(table)
    (tmp_path / "saved" / "state.json").write_text(json.dumps({"_data_files": [{"filename": "data.arrow"}]}))
    assert "Column `image`, row 1: null" in refused(tmp_path / "saved")
