"""What Spark wrote by key, and the official library into folders, as NumPy reads it by key."""

import json
import os
import pickle
import random
import shutil
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, cast

import numpy as np
import pyarrow.parquet as pq  # type: ignore[import-untyped]
import pytest
from pyspark.sql import SparkSession
from safetensors.numpy import save_file

import safetensors_spark as sts
from official import BITS, NUMPY_TYPES, load
from safetensors_spark import InvalidTensorError
from safetensors_spark.dataset import open_store
from spark_io import Dataset, frame, write
from stores import EVERY, assert_is
from test_index import INDEX, index_file, keyed


def test_every_key_of_several_columns(written: Dataset) -> None:
    store = open_store(written.path)
    assert repr(store) == f"<Store {written.path}: 6 rows in 3 files>"
    assert_is(store, written)
    assert list(store) == EVERY
    assert [shard.file for shard in store.shards] == [path.name for path in written.shards]
    assert store.manifest is not None
    assert store.manifest.commit_id == written.manifest["commit_id"]
    assert store["ключ__x"].tolist() == [4.0, 2.5]
    assert [key in store for key in ("a__x", "a", "a__xx", "", "\ud800", 7)] == [
        True,
        False,
        False,
        False,
        False,
        False,
    ]
    assert store.get("nothing") is None
    assert [array.tolist() for array in store.get_many(["b__n", "a__x", "b__n"])] == [[98], [1.0, 2.5], [98]]
    assert store.get_many([]) == []
    assert store.verify().faults == []
    for ask in (lambda: store["nothing"], lambda: store.get_many(["a__x", "nothing"])):
        with pytest.raises(KeyError, match=f"'nothing' is not in {written.path}"):
            ask()
    with pytest.raises(KeyError, match=r"7 is not in .*: keys are strings"):
        store[7]  # type: ignore[index]


def test_arrays_look_at_the_mapped_file(written: Dataset) -> None:
    store = open_store(written.path)
    array = store["a__x"]
    assert array.ctypes.data == store["a__x"].ctypes.data == store.get_many(["a__x"])[0].ctypes.data
    with pytest.raises(ValueError, match="read-only"):
        array[0] = 1


def test_every_dtype_with_and_without_an_index(spark: SparkSession, path: Path) -> None:
    shapes = {name: [2, 4] for name in BITS} | {"scalar": [], "none": [0, 3]}
    rows = [
        (name, (os.urandom(BITS.get(name, 32) * int(np.prod(shape)) // 8), shape, name if name in BITS else "F32"))
        for name, shape in shapes.items()
    ]
    rows[0] = ("BOOL", (bytes(8), [2, 4], "BOOL"))
    df = frame(spark, "k string, x struct<data: binary, shape: array<int>, dtype: string>", *rows)
    dataset = write(df, path, name_col="k", generate_index="true")
    expected = load(dataset.shard)
    without = open_store(shutil.copytree(path, path.with_name("without"), ignore=shutil.ignore_patterns(INDEX)))
    for store in (open_store(path), without):
        assert sorted(store) == sorted(shapes)
        for name, tensor in expected.items():
            if tensor.dtype in NUMPY_TYPES:
                array = store[name]
                assert (array.dtype, array.shape) == (NUMPY_TYPES[tensor.dtype], tensor.shape)
                assert array.tobytes() == tensor.data
            else:
                with pytest.raises(
                    sts.InvalidTensorError, match=f"tensor `{name}`: {name} has elements smaller than a"
                ):
                    store[name]


def test_appends_and_an_index_that_is_out_of_date_or_absent(spark: SparkSession, path: Path) -> None:
    write(keyed(spark, "a", "b"), path, name_col="k", generate_index="true")
    old = (path / INDEX).read_bytes()
    dataset = write(keyed(spark, "c", "0"), path, name_col="k")
    assert_is(open_store(path), dataset)
    index_file(dataset).write_bytes(old)
    assert_is(open_store(path), dataset)
    index_file(dataset).unlink()
    assert_is(open_store(path), dataset)
    # Without an index a key may come twice.
    dataset = write(keyed(spark, "c").selectExpr("k", "x", "array(77) AS n"), path, name_col="k")
    assert_is(open_store(path), dataset)
    assert open_store(path)["c__n"].tolist() == [77]


def test_no_keys(spark: SparkSession, path: Path) -> None:
    for index in ("true", "false"):
        write(keyed(spark, "a").limit(0), path, "overwrite", name_col="k", generate_index=index)
        store = open_store(path)
        assert (len(store), list(store), "a" in store, store.get_many([])) == (0, [], False, [])


def test_keys_of_which_parquet_tells_nothing(spark: SparkSession, path: Path) -> None:
    """Its footer has no statistics of keys that are longer than 4 KB."""
    keys = [random.Random(i).randbytes(2500).hex() for i in range(700)]
    df = spark.createDataFrame([(key, [float(i)]) for i, key in enumerate(keys)], "k string, x array<float>")
    write(df.coalesce(1), path, name_col="k", generate_index="true")
    metadata = pq.read_metadata(path / INDEX)
    assert metadata.num_row_groups > 4
    store = open_store(path)
    # Each in a store of its own: the first look-up knows of no row group where it begins.
    for number in (0, 350, 699):
        assert open_store(path)[keys[number]].tolist() == [number]
    assert [array.tolist() for array in store.get_many(keys)] == [[number] for number in range(700)]
    assert open_store(path).stack(reversed(keys)).tolist() == [[number] for number in reversed(range(700))]
    assert not any(key[:-1] in store or key + "0" in store for key in keys)
    assert list(store) == sorted(keys)
    assert "" not in store


@pytest.mark.parametrize("statistics", [True, False])
@pytest.mark.parametrize("rows", [1, 5, 100])
def test_row_groups_of_any_size(copied: Dataset, rows: int, statistics: bool) -> None:
    table = pq.read_table(copied.path / INDEX)
    pq.write_table(table, copied.path / INDEX, row_group_size=rows, write_statistics=statistics)
    assert pq.read_metadata(copied.path / INDEX).metadata[b"safetensors.commit_id"]
    store = open_store(copied.path)
    for key in reversed(EVERY):
        assert store[key].tobytes()
        assert key + "x" not in store
        assert key[:-1] not in store
    assert_is(open_store(copied.path), copied)
    floats = [key for key in reversed(EVERY) if key.endswith("x")] * 2
    assert open_store(copied.path).stack(floats).tolist() == [store[key].tolist() for key in floats]
    for absent in ("", "a__y", "\U0010ffff", cast(str, 5)):
        with pytest.raises(KeyError, match="is not in"):
            open_store(copied.path).stack([*floats, absent])


def test_folders_checkpoints_and_files(tmp_path: Path) -> None:
    save_file({"x": np.arange(3), "y": np.ones(2)}, tmp_path / "a.safetensors")
    save_file({"z": np.full((), 4.0)}, tmp_path / "b.safetensors")
    store = open_store(tmp_path)
    assert (list(store), store.manifest, len(store.shards)) == (["x", "y", "z"], None, 2)
    assert repr(store) == f"<Store {tmp_path}: 2 files>"
    assert [store[key].tolist() for key in store] == [[0, 1, 2], [1, 1], 4.0]
    save_file({"y": np.zeros(2, np.uint8), "z": np.full((), 4.0)}, tmp_path / "b.safetensors")
    with pytest.raises(sts.SafetensorsSparkError, match=r"a\.safetensors and b\.safetensors both have a tensor `y`"):
        len(open_store(tmp_path))
    alone = open_store(tmp_path / "a.safetensors")
    assert (list(alone), alone["y"].tolist()) == (["x", "y"], [1.0, 1.0])
    index = tmp_path / "model.safetensors.index.json"
    index.write_text(json.dumps({"weight_map": {"y": "a.safetensors", "z": "b.safetensors"}}))
    checkpoint = open_store(tmp_path)
    assert {key: array.tolist() for key, array in checkpoint.items()} == {"y": [1.0, 1.0], "z": 4.0}
    index.write_text(json.dumps({"weight_map": {"y": "a.safetensors", "w": "b.safetensors"}}))
    with pytest.raises(sts.DamagedShardError, match=r"b\.safetensors has no tensor `w`, which the checkpoint's index"):
        open_store(tmp_path)["y"]
    with pytest.raises(FileNotFoundError, match="no checkpoint's index"):
        open_store(tmp_path.parent)


def test_batches_are_refused(spark: SparkSession, path: Path) -> None:
    write(frame(spark, "v array<float>", ([1.0],)), path, batch_size=1)
    with pytest.raises(
        sts.SafetensorsSparkError, match="was written in batches, and has no keys: read it with `open_data"
    ):
        open_store(path)


def test_threads_and_other_processes(written: Dataset) -> None:
    store = open_store(written.path)
    expected = [store[key].tobytes() for key in EVERY]
    fresh = open_store(written.path)
    with ThreadPoolExecutor(8) as threads:
        assert [array.tobytes() for array in threads.map(fresh.__getitem__, EVERY * 50)] == expected * 50
    sent = pickle.loads(pickle.dumps(store))
    assert [array.tobytes() for array in sent.get_many(EVERY)] == expected
    if (child := os.fork()) == 0:
        os._exit(0 if [array.tobytes() for array in store.get_many(EVERY)] == expected else 1)
    assert os.waitpid(child, 0)[1] == 0
    code = "import pickle, sys\nstore = pickle.load(sys.stdin.buffer)\nprint(store['b__x'].tolist())"
    done = subprocess.run([sys.executable, "-c", code], input=pickle.dumps(store), capture_output=True, check=True)
    assert done.stdout == b"[1.0, 2.5]\n"


def test_no_more_than_numpy_and_pyarrow_is_imported(written: Dataset) -> None:
    code = (
        "import sys\nfrom safetensors_spark.dataset import open_store\n"
        f"print(open_store({str(written.path)!r})['a__x'].tolist())\n"
        "print({'pyspark', 'torch', 'fsspec', 'pandas', 'ml_dtypes'} & set(sys.modules))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "[1.0, 2.5]\nset()\n"


def test_arrays_of_one_shape_are_stacked(tmp_path: Path) -> None:
    tensors: dict[str, np.ndarray[Any, Any]] = {"other": np.zeros(3, "f4"), "scalar": np.array(7, "f4")}
    tensors |= {f"k{number}": np.full((2, 3), number, "f4") for number in range(5)}
    tensors |= {f"large{number}": np.full(20_000, number, "f4") for number in range(3)}
    tensors |= {"empty": np.empty((0, 2), "f4")}
    save_file({"k5": np.full((2, 3), 5, "f4")}, tmp_path / "b.safetensors")
    save_file(tensors, tmp_path / "a.safetensors")
    store = open_store(tmp_path)
    assert store.stack(f"k{number}" for number in range(6))[:, 1, 1].tolist() == list(range(6))
    assert store.stack(["large2", "large0"])[:, 19_999].tolist() == [2, 0]
    assert store.stack(["empty", "empty"]).shape == (2, 0, 2)
    found = store.stack(f"k{number}" for number in (4, 0, 4))
    assert (found.dtype, found.shape, found[:, 1, 2].tolist()) == (np.float32, (3, 2, 3), [4, 0, 4])
    found += 1
    assert store["k4"][0, 0] == 4
    assert store.stack(["scalar", "scalar"]).tolist() == [7, 7]
    with pytest.raises(InvalidTensorError, match=r"`other` is F32 \[3\] and `k0` is F32 \[2, 3\].*`get_many`"):
        store.stack(["k0", "other"])
    with pytest.raises(ValueError, match="there are no keys"):
        store.stack([])
    with pytest.raises(KeyError, match="'absent' is not in"):
        store.stack(["k0", "absent"])
