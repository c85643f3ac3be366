"""What `safetensors-spark convert` says of wrong sources and rows: the source's file and row, and what to do."""

import io
import tarfile
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa  # type: ignore[import-untyped]
import pyarrow.parquet as pq  # type: ignore[import-untyped]
import pytest

from command import run
from safetensors_spark import DuplicateKeyError, InvalidWriteError
from safetensors_spark._convert.convert import convert, source_of
from safetensors_spark._files.manifest import Manifest
from safetensors_spark.dataset import open_dataset


def converted(source: Path, path: Path, **options: Any) -> Manifest:
    return convert(source_of(source), path, 1, {**({} if "name_col" in options else {"batch_size": "auto"}), **options})


def test_a_source_that_is_not_there(tmp_path: Path) -> None:
    done = run("convert", str(tmp_path / "none.parquet"), str(tmp_path / "dataset"))
    assert (done.returncode, done.stderr) == (
        2,
        f"safetensors-spark: {tmp_path}/none.parquet does not exist. A source must be a local file or folder.\n",
    )


@pytest.mark.parametrize("columns", [["nope"], ["x", "nope"]])
def test_npy_files_without_a_column(tmp_path: Path, columns: list[str]) -> None:
    for name in "xy":
        np.save(tmp_path / f"{name}.npy", np.arange(3))
    with pytest.raises(InvalidWriteError, match=f"^{tmp_path} has no column `nope`; there are x, y\\.$"):
        source_of(tmp_path, columns)


def test_a_wrong_row_of_parquet_has_its_number_in_the_file(tmp_path: Path) -> None:
    (tmp_path / "t").mkdir()
    values = [1.0] * 10_000
    pq.write_table(pa.table({"x": values}), tmp_path / "t" / "a.parquet", row_group_size=3000)
    pq.write_table(pa.table({"x": [*values[:7777], None, *values]}), tmp_path / "t" / "b.parquet", row_group_size=3000)
    with pytest.raises(InvalidWriteError, match=f"^{tmp_path}/t/b.parquet: Column `x`, row 7777: null"):
        converted(tmp_path / "t", tmp_path / "dataset")


def test_a_wrong_sample_of_a_tar_has_its_number(tmp_path: Path) -> None:
    with tarfile.open(tmp_path / "a.tar", "w") as tar:
        for number in range(5):
            file = io.BytesIO()
            np.save(file, np.zeros(3 if number == 4 else 2))
            about = tarfile.TarInfo(f"{number}.npy")
            about.size = len(file.getvalue())
            tar.addfile(about, io.BytesIO(file.getvalue()))
    with pytest.raises(InvalidWriteError, match=f"^{tmp_path}/a.tar: Column `npy`, row 4: float64 \\[3\\], but other"):
        converted(tmp_path / "a.tar", tmp_path / "dataset")


def two_files(folder: Path, one: Any, other: Any) -> Path:
    """Files so large that each is a part of its own."""
    folder.mkdir()
    for name, column in (("a", one), ("b", other)):
        pq.write_table(
            pa.table({"k": [f"{name}{row}" for row in range(len(column))], "x": column}), folder / f"{name}.parquet"
        )
    return folder


def floats(rows: int, width: int) -> Any:
    values = np.random.default_rng(1).random(rows * width)
    return pa.FixedSizeListArray.from_arrays(pa.array(values), width)


def test_files_that_differ_are_named(tmp_path: Path) -> None:
    folder = two_files(tmp_path / "t", floats(7000, 1000), floats(7000, 1001))
    for processes in (1, 2):
        with pytest.raises(InvalidWriteError) as error:
            convert(source_of(folder), tmp_path / "d", processes, {"batch_size": "auto", "target_shard_size_mb": 50})
        assert str(error.value).startswith(
            f"Column `x`: F64 [1001] in {folder}/b.parquet from row 0 on, but F64 [1000] in {folder}/a.parquet from "
            "row 0 on. Make the rows alike"
        )
    folder = two_files(tmp_path / "small", floats(7, 10), floats(7, 11))
    with pytest.raises(InvalidWriteError, match=f"^{folder}/b.parquet: Column `x`: F64 \\[11\\], but rows before have"):
        converted(folder, tmp_path / "d")


def test_files_with_one_key_are_named(tmp_path: Path) -> None:
    folder = two_files(tmp_path / "t", floats(7000, 1000), floats(7000, 1000))
    table = pq.read_table(folder / "b.parquet")
    pq.write_table(table.set_column(0, "k", pa.array([*table["k"].to_pylist()[:-1], "a5"])), folder / "b.parquet")
    with pytest.raises(DuplicateKeyError) as error:
        converted(folder, tmp_path / "d", name_col="k", target_shard_size_mb=50, generate_index=True)
    assert f"The key `a5` is in two shards, {folder}/a.parquet" in str(error.value)
    assert f"{folder}/b.parquet" in str(error.value)


def test_small_files_fill_shards(tmp_path: Path) -> None:
    np.save(tmp_path / "x.npy", np.random.default_rng(1).random((9000, 1000)))
    manifest = convert(
        source_of(tmp_path / "x.npy"), tmp_path / "d", 2, {"batch_size": "auto", "target_shard_size_mb": 50}
    )
    assert [(shard.bytes or 0) // 1_000_000 for shard in manifest.shards] == [45, 27]
    (tmp_path / "t").mkdir()
    for number in range(20):
        pq.write_table(pa.table({"x": np.arange(10) + number * 10}), tmp_path / "t" / f"{number:02}.parquet")
    assert len(converted(tmp_path / "t", tmp_path / "small").shards) == 1
    assert open_dataset(tmp_path / "small")["x"].tolist() == list(range(200))


def test_dtypes(tmp_path: Path) -> None:
    pq.write_table(pa.table({"x": [1.5, 2.5], "y": [3, 4], "t": ["a", "b"]}), tmp_path / "t.parquet")
    for name, said, expected in (("one", "F16", ["F16", "F16", "U8"]), ("some", "x=BF16, y=U8", ["BF16", "U8", "U8"])):
        done = run("convert", str(tmp_path / "t.parquet"), str(tmp_path / name), "--dtype", said)
        assert (done.returncode, done.stderr) == (0, "")
        assert [column.dtype for column in open_dataset(tmp_path / name).columns] == expected
    done = run("convert", str(tmp_path / "t.parquet"), str(tmp_path / "none"), "--dtype", "z=F16")
    assert (done.returncode, done.stderr.count("\n")) == (2, 1)
    assert "`dtype` names `z`, but the columns to write are: x, y, t." in done.stderr
