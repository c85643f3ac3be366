"""Stores whose shards or index are damaged, missing, or written again."""

import random
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import fsspec
import pyarrow as pa  # type: ignore[import-untyped]
import pyarrow.parquet as pq  # type: ignore[import-untyped]
import pytest
from pyspark.errors import AnalysisException
from pyspark.sql import SparkSession

import safetensors_spark as sts
from official import load
from safetensors_spark.dataset import open_store
from spark_io import Dataset, write
from stores import uploaded
from test_index import INDEX, keyed


@pytest.mark.parametrize("indexed", [True, False])
@pytest.mark.parametrize("where", ["local", "memory"])
@pytest.mark.parametrize(
    ("damage", "error", "said"),
    [
        (lambda shard: shard.unlink(), FileNotFoundError, "does not exist: the dataset has lost it"),
        (lambda shard: shard.write_bytes(shard.read_bytes()[:-1]), sts.DamagedShardError, "bytes, expected"),
        (lambda shard: shard.write_bytes(shard.read_bytes() + b"!"), sts.DamagedShardError, "bytes, expected"),
    ],
)
def test_a_damaged_shard_is_named(
    copied: Dataset, damage: Callable[[Path], Any], error: type[Exception], said: str, where: str, indexed: bool
) -> None:
    first = {shard.name: next(iter(load(shard))) for shard in copied.shards}
    damage(copied.shards[1])
    if not indexed:
        (copied.path / INDEX).unlink()
    path = uploaded(copied.path) if where == "memory" else str(copied.path)
    store = open_store(path)
    if indexed:
        assert store[first[copied.shards[0].name]].size
    with pytest.raises(error, match=said) as raised:
        store[first[copied.shards[1].name]]
    assert copied.shards[1].name in str(raised.value)


def test_an_overwritten_store_shows_its_old_state_or_says_that_it_changed(
    spark: SparkSession, copied: Dataset, tmp_path: Path
) -> None:
    url = uploaded(copied.path)
    store, remote, unread = open_store(copied.path), open_store(url), open_store(copied.path)
    seen = next(iter(load(copied.shards[0])))
    others = [key for shard in copied.shards[1:] for key in load(shard)]
    before = store[seen].tobytes()
    assert remote[seen].tobytes() == before
    write(keyed(spark, "q"), copied.path, "overwrite", name_col="k", generate_index="true")
    fsspec.filesystem("memory").rm(url.removeprefix("memory:/"), recursive=True)
    assert uploaded(copied.path, url) == url
    assert store[seen].tobytes() == before
    for one, key in [(store, others[0]), (remote, seen), (remote, others[0]), (unread, seen)]:
        with pytest.raises(sts.DatasetChangedError, match="has been written again since it was opened"):
            one[key]
    assert list(open_store(copied.path)) == list(open_store(url)) == ["q__n", "q__x"]
    shutil.rmtree(copied.path)
    with pytest.raises(sts.DatasetChangedError, match="has been deleted since it was opened"):
        store[others[0]]


def change(column: str, value: Any) -> Callable[[list[dict[str, Any]]], None]:
    def apply(entries: list[dict[str, Any]]) -> None:
        entries[3][column] = value(entries[3][column]) if callable(value) else value

    return apply


@pytest.mark.parametrize(
    ("damage", "said"),
    [
        (
            change("file_name", "../x.safetensors"),
            "for `b__x` is of `../x.safetensors`, which is not a shard of the dataset",
        ),
        (change("data_start", 8), "for `b__x` says that F32 [2] is at the bytes 8 to"),
        (change("data_start", -8), "for `b__x` says that F32 [2] is at the bytes -8 to"),
        (change("data_end", lambda end: end + 4), "such a tensor has 8"),
        (change("data_end", 1 << 40), "to 1099511627776 of part-"),
        (change("shape", [3]), "F32 [3] is at the bytes"),
        (change("shape", [-2]), "such a tensor does not exist"),
        (change("shape", [1 << 31, 1 << 31, 8]), "for `b__x` says that F32 [2147483648, 2147483648, 8] is at"),
        (change("dtype", "F33"), "says that F33 [2] is at"),
        (change("dtype", None), "it has empty cells"),
        (change("shape", [None]), "it has empty cells"),
        (change("tensor_key", "\uffffz"), "for `ключ__n` does not come after the one for `\\uffffz`"),
    ],
)
def test_an_index_that_is_wrong_is_refused(
    copied: Dataset, damage: Callable[[list[dict[str, Any]]], None], said: str
) -> None:
    table = pq.read_table(copied.path / INDEX)
    entries = table.slice(2).to_pylist()
    damage(entries)
    types = [pa.string(), pa.string(), pa.list_(pa.int64()), pa.string(), pa.int64(), pa.int64()]
    schema = pa.schema(list(zip(table.column_names, types, strict=True)), table.schema.metadata)
    pq.write_table(pa.Table.from_pylist(entries, schema), copied.path / INDEX)
    with pytest.raises(sts.InvalidIndexError) as raised:
        open_store(copied.path)["a__x"]
    assert said in str(raised.value)
    assert f"{copied.path / INDEX} cannot be read" in str(raised.value)
    assert "have a write with `generate_index` rebuild it" in str(raised.value)


def test_an_index_whose_bytes_are_damaged_is_refused_or_right(copied: Dataset) -> None:
    whole = (copied.path / INDEX).read_bytes()
    expected = {key: array.tobytes() for key, array in open_store(copied.path).items()}
    refused = 0
    places = random.Random(5)
    # Parquet has checksums of its pages, but none of its footer.
    pages = len(whole) - 8 - int.from_bytes(whole[-8:-4], "little")
    for length in (0, 3, 8, len(whole) // 2, len(whole) - 1):
        (copied.path / INDEX).write_bytes(whole[:length])
        with pytest.raises(sts.InvalidIndexError):
            open_store(copied.path)["a__x"]
    for _ in range(300):
        content = bytearray(whole)
        content[places.randrange(pages)] ^= 1 << places.randrange(8)
        (copied.path / INDEX).write_bytes(content)
        try:
            assert {key: array.tobytes() for key, array in open_store(copied.path).items()} == expected
        except sts.InvalidIndexError:
            refused += 1
    # The checksums are of the pages without their headers, of which some bytes matter to nobody.
    assert refused > 200, refused


def test_an_append_to_a_store_whose_index_is_damaged_is_refused_and_changes_nothing(
    spark: SparkSession, copied: Dataset
) -> None:
    before, index = (copied.path / "dataset_manifest.json").read_bytes(), bytearray((copied.path / INDEX).read_bytes())
    index[4:200] = bytes(byte ^ 0x5A for byte in index[4:200])
    (copied.path / INDEX).write_bytes(index)
    (copied.path / f".{INDEX}.crc").unlink(missing_ok=True)
    with pytest.raises(AnalysisException, match=f"{INDEX} cannot be read"):
        write(keyed(spark, "q"), copied.path, "append", name_col="k", generate_index="true")
    assert (copied.path / "dataset_manifest.json").read_bytes() == before
