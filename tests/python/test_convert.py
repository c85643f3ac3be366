"""`safetensors-spark convert`: rows of other formats come out as they went in, and go back to Parquet."""

import bz2
import copy
import gzip
import io
import json
import struct
import tarfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa  # type: ignore[import-untyped]
import pyarrow.parquet as pq  # type: ignore[import-untyped]
import pytest

from command import run
from safetensors_spark import InvalidWriteError
from safetensors_spark._convert import mds
from safetensors_spark.dataset import open_dataset, open_store, verify, write_dataset

WORDS = ["", "é", "three words here"]


def convert(source: Path, path: Path, *arguments: str) -> str:
    done = run("convert", str(source), str(path), "--processes", "2", *arguments)
    assert (done.returncode, done.stderr) == (0, "")
    assert path.suffix == ".parquet" or verify(path).faults == []
    return done.stdout


def refused(source: Path, path: Path, *arguments: str) -> str:
    done = run("convert", str(source), str(path), "--processes", "2", *arguments)
    assert done.returncode == 2
    assert "Traceback" not in done.stderr
    return done.stderr


def table_of(rows: int) -> Any:
    numbers = np.arange(rows)
    vectors = np.outer(numbers, [1, 2, 3]).astype(np.float32)
    return pa.table(
        {
            "n": numbers,
            "v": pa.FixedSizeListArray.from_arrays(pa.array(vectors.reshape(-1)), 3),
            "ids": pa.array([list(range(n % 5)) for n in range(rows)], pa.large_list(pa.int64())),
            "text": pa.array([WORDS[n % 3] for n in range(rows)], pa.large_string()),
            "raw": pa.array([bytes([n % 256]) * (n % 4) for n in range(rows)], pa.large_binary()),
            "day": pa.array(numbers.astype(np.int32), pa.int32()).cast(pa.date32()),
            "at": pa.array(numbers * 1000, pa.timestamp("us", "UTC")),
            "ok": numbers % 2 == 0,
        }
    )


def test_parquet_there_and_back(tmp_path: Path) -> None:
    table, source = table_of(5000), tmp_path / "source"
    source.mkdir()
    for number in range(3):
        part = table.slice(number * 2000, 2000)
        pq.write_table(part, source / f"{number}.parquet", row_group_size=300)
    assert "5,000 rows in" in convert(source, tmp_path / "dataset", "--batch-size", "700")
    back = tmp_path / "back.parquet"
    convert(tmp_path / "dataset", back)
    assert pq.read_table(back).equals(table)


def test_parquet_by_key(tmp_path: Path) -> None:
    keys = [f"k{n}" for n in range(100)]
    pq.write_table(
        pa.table({"k": keys, "x": np.arange(100), "other": keys}), tmp_path / "one.parquet", row_group_size=9
    )
    arguments = ("--name-col", "k", "--columns", "k,x", "--index")
    convert(tmp_path / "one.parquet", tmp_path / "store", *arguments)
    store = open_store(tmp_path / "store")
    assert [int(store[key]) for key in keys] == list(range(100))


def test_what_cannot_be_converted_leaves_nothing(tmp_path: Path) -> None:
    bad = tmp_path / "bad.parquet"
    table = pa.table({"x": [1] * 50 + [None] * 50})
    pq.write_table(table, bad, row_group_size=10)
    assert "bad.parquet: Column `x`, row 50: null" in refused(bad, tmp_path / "dataset")
    pq.write_table(pa.table({"s": [{"a": 1}]}), bad)
    assert "Column `s` is struct<a: int64>, which is not a tensor. Choose other columns" in refused(
        bad, tmp_path / "dataset"
    )
    assert not list((tmp_path / "dataset").rglob("*"))
    (tmp_path / "notes.txt").write_text("x")
    assert "not a dataset of a format that is read: Parquet" in refused(tmp_path / "notes.txt", tmp_path / "dataset")


def test_a_dataset_is_not_replaced_unless_asked(tmp_path: Path) -> None:
    np.save(tmp_path / "x.npy", np.arange(10))
    convert(tmp_path / "x.npy", tmp_path / "dataset")
    assert "is a dataset already" in refused(tmp_path / "x.npy", tmp_path / "dataset")
    convert(tmp_path / "x.npy", tmp_path / "dataset", "--mode", "append")
    assert len(open_dataset(tmp_path / "dataset")) == 20
    convert(tmp_path / "x.npy", tmp_path / "dataset", "--mode", "overwrite")
    assert len(open_dataset(tmp_path / "dataset")) == 10


def test_npy_files_are_columns(tmp_path: Path) -> None:
    arrays: dict[str, Any] = {"x": np.random.default_rng(1).random((1000, 3)), "y": np.arange(1000, dtype=np.int8)}
    (tmp_path / "arrays").mkdir()
    for name, array in arrays.items():
        np.save(tmp_path / "arrays" / f"{name}.npy", array)
    convert(tmp_path / "arrays", tmp_path / "dataset", "--batch-size", "64")
    dataset = open_dataset(tmp_path / "dataset")
    for name, array in arrays.items():
        assert np.array_equal(dataset[:][name], array)
    np.save(tmp_path / "arrays" / "z.npy", np.arange(3))
    assert "different numbers of rows: x.npy 1000, y.npy 1000, z.npy 3" in refused(tmp_path / "arrays", tmp_path / "no")


def test_webdataset(tmp_path: Path) -> None:
    (tmp_path / "tars").mkdir()
    for shard in range(2):
        with tarfile.open(tmp_path / "tars" / f"{shard}.tar", "w") as tar:
            for n in range(10):
                array = io.BytesIO()
                np.save(array, np.full(2, n))
                members = {
                    "jpg": bytes([n] * n),
                    "txt": WORDS[n % 3].encode(),
                    "cls": str(n).encode(),
                    "npy": array.getvalue(),
                }
                for extension, content in members.items():
                    info = tarfile.TarInfo(f"train/{shard}{n}.{extension}")
                    info.size = len(content)
                    tar.addfile(info, io.BytesIO(content))
    convert(tmp_path / "tars", tmp_path / "dataset", "--batch-size", "8")
    dataset = open_dataset(tmp_path / "dataset")
    assert len(dataset) == 20
    sample = dataset[17]
    assert (sample["__key__"], sample["jpg"], sample["txt"], int(sample["cls"])) == (
        "train/17",
        bytes([7] * 7),
        WORDS[1],
        7,
    )
    assert sample["npy"].tolist() == [7, 7]


def test_hugging_face_folders(tmp_path: Path) -> None:
    folder = tmp_path / "saved"
    folder.mkdir()
    image = pa.array(
        [{"bytes": bytes([n]), "path": None} for n in range(50)], pa.struct({"bytes": pa.binary(), "path": pa.string()})
    )
    table = pa.table({"n": np.arange(50), "image": image, "ids": [[1] * (n % 3) for n in range(50)]})
    for number in range(2):
        with (
            pa.OSFile(str(folder / f"data-{number}.arrow"), "wb") as out,
            pa.ipc.new_stream(out, table.schema) as writer,
        ):
            writer.write_table(table.slice(number * 30, 30), max_chunksize=7)
    files = [{"filename": f"data-{number}.arrow"} for number in range(2)]
    (folder / "state.json").write_text(json.dumps({"_data_files": files, "_indices_files": None}))
    convert(folder, tmp_path / "dataset", "--batch-size", "8")
    dataset = open_dataset(tmp_path / "dataset")
    assert [int(n) for n in dataset[:]["n"]] == list(range(50))
    assert (dataset[49]["image"], dataset[49]["ids"].tolist()) == (bytes([49]), [1])
    (tmp_path / "dataset_dict.json").write_text('{"splits": ["train", "test"]}')
    assert "several splits: train, test. Name the folder of one" in refused(tmp_path, tmp_path / "no")


def test_megatron(tmp_path: Path) -> None:
    sequences = [np.arange(n * 10, n * 10 + n % 7, dtype=np.uint16) for n in range(100)]
    lengths = np.array([len(one) for one in sequences], np.int32)
    pointers = np.concatenate([[0], np.cumsum(lengths[:-1], dtype=np.int64) * 2])
    (tmp_path / "text.bin").write_bytes(b"".join(one.tobytes() for one in sequences))
    header = b"MMIDIDX\0\0" + struct.pack("<QBQQ", 1, 8, 100, 101)
    ends = np.arange(101, dtype=np.int64)
    (tmp_path / "text.idx").write_bytes(
        header + lengths.tobytes() + pointers.astype(np.int64).tobytes() + ends.tobytes()
    )
    convert(tmp_path / "text", tmp_path / "dataset", "--batch-size", "16")
    dataset = open_dataset(tmp_path / "dataset")
    assert [row["tokens"].tolist() for row in dataset] == [one.tolist() for one in sequences]
    assert dataset[1]["tokens"].dtype == np.uint16


def mds_sample(n: int) -> bytes:
    text, image = WORDS[n % 3].encode(), bytes([n] * n)
    return (
        struct.pack("<II", len(text), len(image)) + text + struct.pack("<q", n) + np.full(2, n, "<f4").tobytes() + image
    )


COMPRESS: dict[str, Callable[[bytes], bytes]] = {
    "gz": gzip.compress,
    "bz2:3": bz2.compress,
    "zstd:7": lambda content: pa.Codec("zstd").compress(content, asbytes=True),
    "br": lambda content: pa.Codec("brotli").compress(content, asbytes=True),
    "snappy": lambda content: pa.Codec("snappy").compress(content, asbytes=True),
}


def mds_folder(folder: Path, compression: str | None) -> Path:
    folder.mkdir()
    shards = []
    for number in range(2):
        samples = [mds_sample(number * 10 + n) for n in range(10)]
        ends = 4 + 4 * 11 + np.concatenate([[0], np.cumsum([len(one) for one in samples])])
        content = struct.pack("<I", 10) + ends.astype("<u4").tobytes() + b"".join(samples)
        name, compressed = f"shard.{number}.mds", None
        shard: dict[str, Any] = {"raw_data": {"basename": name, "bytes": len(content)}, "zip_data": None}
        if compression is not None:
            name = f"{name}.{compression.partition(':')[0]}"
            compressed = COMPRESS[compression](content) if compression in COMPRESS else content
            shard["zip_data"] = {"basename": name, "bytes": len(compressed)}
        (folder / name).write_bytes(compressed or content)
        shards.append(
            shard | {
                "format": "mds", "samples": 10, "compression": compression,
                "column_names": ["caption", "id", "vector", "image"],
                "column_encodings": ["str", "int", "ndarray:float32:2", "jpeg"], "column_sizes": [None, 8, 8, None],
            }
        )  # fmt: skip
    (folder / "index.json").write_text(json.dumps({"version": 2, "shards": shards}))
    return folder


@pytest.mark.parametrize("compression", [None, *COMPRESS])
def test_mds(tmp_path: Path, compression: str | None) -> None:
    folder = mds_folder(tmp_path / "mds", compression)
    convert(folder, tmp_path / "dataset", "--batch-size", "6")
    dataset = open_dataset(tmp_path / "dataset")
    assert len(dataset) == 20
    sample = dataset[17]
    assert (sample["caption"], int(sample["id"]), sample["image"]) == (WORDS[2], 17, bytes([17] * 17))
    assert sample["vector"].tolist() == [17.0, 17.0]


def test_mds_that_cannot_be_decompressed_is_refused(tmp_path: Path) -> None:
    message = refused(mds_folder(tmp_path / "lz4", "lz4"), tmp_path / "dataset")
    assert "compressed by lz4, which is not read, only gz, bz2, zstd, br, snappy" in " ".join(message.split())
    for compression in COMPRESS:
        extension = compression.partition(":")[0]
        folder = mds_folder(tmp_path / extension, compression)
        index = json.loads((folder / "index.json").read_text())
        for change in (-1, 1, 1000):
            changed = copy.deepcopy(index)
            changed["shards"][1]["raw_data"]["bytes"] += change
            (folder / "index.json").write_text(json.dumps(changed))
            source = mds.find(folder, None)
            assert source is not None
            with pytest.raises(InvalidWriteError, match=rf"shard\.1\.mds\.{extension} "):
                list(source.parts(1)[1].rows())
        (folder / f"shard.1.mds.{extension}").write_bytes(b"cut")
        with pytest.raises(InvalidWriteError, match="Copy it again"):
            mds.find(folder, None)


@pytest.mark.parametrize("format_", ["batches", "by key"])
def test_parquet_is_made_of_batches_alone(tmp_path: Path, format_: str) -> None:
    np.save(tmp_path / "x.npy", np.arange(10))
    pq.write_table(pa.table({"k": ["a"], "x": [1]}), tmp_path / "k.parquet")
    if format_ == "by key":
        convert(tmp_path / "k.parquet", tmp_path / "dataset", "--name-col", "k")
        assert "was written by key, and has no samples" in refused(tmp_path / "dataset", tmp_path / "out.parquet")
    else:
        convert(tmp_path / "x.npy", tmp_path / "dataset")
        (tmp_path / "out.parquet").mkdir()
        assert "exists already" in refused(tmp_path / "dataset", tmp_path / "out.parquet")


def test_a_dataset_becomes_parquet_without_options_of_datasets(tmp_path: Path) -> None:
    dataset, target = tmp_path / "dataset", tmp_path / "back.parquet"
    write_dataset({"x": np.arange(3)}, dataset, batch_size="auto")
    options = ("--dtype", "F32", "--mode", "append", "--name-col", "x", "--ragged", "x", "--index", "--batch-size", "2")
    message = refused(dataset, target, *options)
    assert "leave out --batch-size, --name-col, --ragged, --dtype, --mode, --index." in message
    write_dataset([], dataset, batch_size="auto", mode="overwrite")
    assert f"{dataset} has no rows, and so no columns" in refused(dataset, target)
    assert not target.exists()
