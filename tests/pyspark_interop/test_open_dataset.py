"""What Spark wrote in batches, and the official library into plain folders, as NumPy reads it."""

import json
import os
import pickle
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import fsspec
import ml_dtypes
import numpy as np
import pytest
from pyspark.sql import SparkSession
from safetensors.numpy import save_file

import safetensors_spark as sts
from safetensors_spark._commands.cli import main
from safetensors_spark._files.cache import Cache
from safetensors_spark.dataset import open_dataset
from spark_io import MANIFEST, Dataset, frame, write

ROWS = 10
VALUES = np.arange(2 * ROWS, dtype=np.float32).reshape(ROWS, 2)


@pytest.fixture(scope="module")
def written(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Dataset:
    """Ten samples in shards of four, four and two."""
    rows = [(VALUES[i].tolist(), i, [0.5 * i]) for i in range(ROWS)]
    df = frame(spark, "v array<float>, n int, h array<float>", *rows)
    dtypes = '{"v": "F32", "n": "U8", "h": "BF16"}'
    return write(df, tmp_path_factory.mktemp("written") / "dataset", batch_size=4, dtype=dtypes)


def test_samples_slices_and_batches(written: Dataset) -> None:
    ds = open_dataset(written.path)
    assert (len(ds), [column.name for column in ds.columns], len(ds.shards)) == (ROWS, ["v", "n", "h"], 3)
    assert repr(ds) == f"<Dataset {written.path}: 10 samples of v F32 [2], n U8 [], h BF16 [1] in 3 shards>"
    for number in (0, 3, 4, 9, -1):
        sample = ds[number]
        assert sample["v"].tolist() == VALUES[number].tolist()
        assert (sample["n"].dtype, sample["n"].shape, int(sample["n"])) == (np.uint8, (), number % ROWS)
        assert (sample["h"].dtype, float(sample["h"][0])) == (ml_dtypes.bfloat16, 0.5 * (number % ROWS))
    every = range(ROWS)
    bounds = [(None, None, None), (1, 3, 1), (2, 6, 1), (4, 8, 1), (8, 2, -3), (3, None, -1), (6, 4, -1), (5, 5, 1)]
    for part in (slice(*bound) for bound in [*bounds, (-3, None, None), (0, 100, 4)]):
        assert ds[part]["n"].tolist() == list(every[part])
        assert ds[part]["v"].tolist() == VALUES[part].tolist()
    assert [int(sample["n"]) for sample in ds] == list(every)
    assert [batch["n"].tolist() for batch in ds.batches(3)] == [[0, 1, 2], [3, 4, 5], [6, 7, 8], [9]]
    assert [len(batch["v"]) for batch in ds.batches(3, drop_last=True)] == [3, 3, 3]
    assert ds.take([9, 0, 5, 5])["v"].tolist() == VALUES[[9, 0, 5, 5]].tolist()
    assert [int(sample["n"]) for sample in ds.__getitems__([7, 2])] == [7, 2]
    assert ds.take([])["v"].shape == (0, 2)


def test_what_no_sample_has(written: Dataset) -> None:
    ds = open_dataset(written.path)
    with pytest.raises(ValueError, match="batch_size is 0"):
        ds.batches(0)
    assert list(open_dataset(written.path, columns=["v"])[0]) == ["v"]
    with pytest.raises(sts.SafetensorsSparkError, match="has no column `w`; it has v, n, h"):
        open_dataset(written.path, columns=["w"])


def test_other_processes(written: Dataset) -> None:
    ds = open_dataset(written.path)
    ds[0]
    sent = pickle.loads(pickle.dumps(ds))
    assert sent[:]["v"].tolist() == VALUES.tolist()
    if (child := os.fork()) == 0:
        os._exit(0 if ds[:]["n"].tolist() == list(range(ROWS)) else 1)
    assert os.waitpid(child, 0)[1] == 0


def test_neither_spark_nor_more_than_numpy_is_imported(written: Dataset) -> None:
    code = (
        "import sys\nfrom safetensors_spark.dataset import open_dataset\n"
        f"print(open_dataset({str(written.path)!r}, columns=['v', 'n']).take([9, 1])['v'].tolist())\n"
        "print({'pyspark', 'pyarrow', 'torch', 'fsspec', 'pandas', 'ml_dtypes'} & set(sys.modules))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == f"{VALUES[[9, 1]].tolist()}\nset()\n"


def test_padding_is_no_sample(spark: SparkSession, path: Path) -> None:
    rows = [([float(i)],) for i in range(5)]
    write(frame(spark, "v array<float>", *rows), path, batch_size=4, tail_strategy="pad")
    assert open_dataset(path)[:]["v"].tolist() == [[0.0], [1.0], [2.0], [3.0], [4.0]]


def test_plain_folders(tmp_path: Path) -> None:
    for number, name in enumerate("ba"):
        save_file({"x": np.full((2, 3), number), "y": np.arange(2)}, tmp_path / f"{name}.safetensors")
    ds = open_dataset(tmp_path)
    assert (len(ds), ds.manifest) == (4, None)
    assert ds[1:3]["x"].tolist() == [[1, 1, 1], [0, 0, 0]]
    save_file({"x": np.zeros((2, 3)), "y": np.arange(5)}, tmp_path / "c.safetensors")
    with pytest.raises(
        sts.SafetensorsSparkError, match=r"c\.safetensors is not a file of samples: .* `y` has 5, `x` has 2"
    ):
        open_dataset(tmp_path)
    save_file({"x": np.zeros((2, 4), np.int64), "y": np.arange(2)}, tmp_path / "c.safetensors")
    ds = open_dataset(tmp_path)
    assert ds[5]["x"].shape == (4,)
    with pytest.raises(
        sts.InvalidTensorError,
        match=r"column `x` has samples of int64 \[3\] in a\.safetensors and of int64 \[4\] in c\.safetensors",
    ):
        ds.take([0, 5])


def test_a_store_is_refused(spark: SparkSession, path: Path) -> None:
    write(frame(spark, "id string, v array<float>", ("a", [1.0])), path, name_col="id")
    said = "was written by key, and has no samples: read it with `open_store`"
    with pytest.raises(sts.SafetensorsSparkError, match=said):
        open_dataset(path)


def _flip(path: Path, at: int) -> None:
    content = bytearray(path.read_bytes())
    content[at] ^= 1
    path.write_bytes(content)


@pytest.mark.parametrize(
    ("damage", "error", "said"),
    [
        (lambda shard: shard.unlink(), FileNotFoundError, "does not exist"),
        (lambda shard: shard.write_bytes(shard.read_bytes()[:-1]), sts.DamagedShardError, "bytes, expected"),
        (lambda shard: _flip(shard, 8), sts.InvalidFileError, "InvalidHeaderDeserialization"),
        (lambda shard: _flip(shard, shard.read_bytes().index(b'"v"') + 1), sts.DamagedShardError, "no tensor `v`"),
    ],
)
def test_a_damaged_shard_is_named(
    copied: Dataset, damage: Callable[[Path], Any], error: type[Exception], said: str
) -> None:
    damage(copied.shards[1])
    ds = open_dataset(copied.path)
    assert ds[3]["n"] == 3
    with pytest.raises(error, match=said) as raised:
        ds[4]
    assert copied.shards[1].name in str(raised.value)
    assert ds.verify().faults


def test_a_dataset_that_is_overwritten_shows_its_old_state_or_says_that_it_changed(
    spark: SparkSession, copied: Dataset
) -> None:
    ds = open_dataset(copied.path)
    assert ds[0]["n"] == 0
    write(frame(spark, "v array<float>, n int", ([7.0, 7.0], 7)), copied.path, "overwrite", batch_size=4)
    assert ds[1]["v"].tolist() == VALUES[1].tolist()
    with pytest.raises(sts.DatasetChangedError, match="has been written again since it was opened"):
        ds[5]
    assert open_dataset(copied.path)[0]["n"] == 7
    shutil.rmtree(copied.path)
    with pytest.raises(sts.DatasetChangedError, match="has been deleted since it was opened"):
        ds[5]


def test_remote_shards_are_kept_on_disk_within_a_limit(written: Dataset, tmp_path: Path) -> None:
    memory = fsspec.filesystem("memory")
    memory.put(str(written.path), "/data/kept", recursive=True)
    shard = written.manifest["shards"][0]["bytes"]
    ds = open_dataset("memory://data/kept", cache_dir=tmp_path / "cache", cache_bytes=2 * shard)
    assert ds[:]["v"].tolist() == VALUES.tolist()
    assert [batch["n"].tolist() for batch in ds.batches(5)] == [[0, 1, 2, 3, 4], [5, 6, 7, 8, 9]]
    assert sum(one.bytes for one in Cache(tmp_path / "cache", 0).shards()) <= 2 * shard
    # What was downloaded is used again, though the store has lost it.
    whole = open_dataset("memory://data/kept", cache_dir=tmp_path / "all")
    assert len(list(whole)) == ROWS
    memory.rm([f"/data/kept/{file.name}" for file in written.shards])
    again = open_dataset("memory://data/kept", cache_dir=tmp_path / "all")
    assert again[:]["n"].tolist() == list(range(ROWS))


def test_remote_shards_are_checked_on_arrival(written: Dataset, tmp_path: Path) -> None:
    memory = fsspec.filesystem("memory")
    memory.put(str(written.path), "/data/checked", recursive=True)
    for name in (file.name for file in written.shards[:2]):
        content = memory.cat(f"/data/checked/{name}")
        memory.pipe(f"/data/checked/{name}", content[:-1] + bytes([content[-1] ^ 1]))
    memory.pipe(f"/data/checked/{written.shards[1].name}", b"short")
    ds = open_dataset("memory://data/checked", cache_dir=tmp_path)
    with pytest.raises(
        sts.DamagedShardError, match=f"{written.shards[0].name} changed during the download or in the store"
    ):
        ds[0]
    with pytest.raises(sts.DamagedShardError, match=f"{written.shards[1].name} has 5 bytes, expected"):
        ds[4]
    assert ds[9]["n"] == 9
    assert [one.path.name.partition("-")[2] for one in Cache(tmp_path, 0).shards()] == [written.shards[2].name]


def test_names_that_leave_the_directory(copied: Dataset, capsys: pytest.CaptureFixture[str]) -> None:
    copied.manifest["shards"][0]["file"] = "../elsewhere.safetensors"
    (copied.path / MANIFEST).write_text(json.dumps(copied.manifest))
    with pytest.raises(sts.InvalidManifestError, match="which is not the name of a file beside it"):
        open_dataset(copied.path)
    assert main(["inspect", str(copied.path)]) == 2
    assert "not the name of a file" in capsys.readouterr().err
