"""`DatasetWriter` beside Spark: the same bytes of the same rows, and one protocol to commit them."""

import json
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from pyspark.sql import SparkSession

from application import answer_of
from official import load
from safetensors_spark import DuplicateKeyError
from safetensors_spark.dataset import DatasetWriter, open_store, verify
from spark_io import Dataset, assert_says, error_of, frame, read, write
from test_full_disk import MOUNT, own_mounts


def write_python(path: Path, *batches: Any, **options: Any) -> Dataset:
    with DatasetWriter(path, **options) as writer:
        for batch in batches:
            writer.write(batch)
    return Dataset(path)


def assert_same(ours: Dataset, theirs: Dataset) -> None:
    """The same bytes in as many shards, and a manifest that differs in names and ids alone."""
    assert [shard.read_bytes() for shard in ours.shards] == [shard.read_bytes() for shard in theirs.shards]
    shards = [
        [{name: value for name, value in shard.items() if name != "file"} for shard in one.manifest["shards"]]
        for one in (ours, theirs)
    ]
    assert shards[0] == shards[1]
    fields = ("format_version", "mode", "schema", "options", "total_bytes", "total_samples")
    assert {name: ours.manifest[name] for name in fields} == {name: theirs.manifest[name] for name in fields}


@pytest.mark.parametrize("tail", ["write", "pad", "drop"])
def test_batches_have_the_bytes_that_spark_writes(spark: SparkSession, tmp_path: Path, tail: Any) -> None:
    rows = spark.range(0, 7, 1, 1).selectExpr(
        "array(cast(id as float), 0.5F) x", "array(array(1, cast(id as int)), array(3, 4)) m", "id n",
        'cast(id as tinyint) `q"é`', "id % 2 = 0 ok", "repeat('é😀', cast(id as int)) s",
        "cast(cast(id as string) as binary) b",
        "date_add(date'1969-12-30', cast(id as int)) d", "timestamp_micros(id * 1000 - 5) ts",
        "cast(timestamp'2020-01-01 00:00:00' as timestamp_ntz) ntz", "sequence(0, id) ids",
    )  # fmt: skip
    options = {"batch_size": 3, "tail_strategy": tail} if tail != "write" else {"batch_size": 3}
    theirs = write(rows, tmp_path / "spark", **options, ragged='["ids"]')
    ours = write_python(tmp_path / "python", rows.toArrow(), **options, ragged=["ids"])
    assert_same(ours, theirs)


def test_tensors_by_key_have_the_bytes_that_spark_writes(spark: SparkSession, tmp_path: Path) -> None:
    rows = spark.range(0, 50, 1, 1).selectExpr("concat('k\"', id) k", "array(cast(id as float)) x", "id y", "id * 2 z")
    options: dict[str, Any] = {"name_col": "k", "kv_separator": "/"}
    theirs = write(rows, tmp_path / "spark", **options)
    assert_same(write_python(tmp_path / "python", rows.toArrow(), **options), theirs)


NUMBERS = [0.0, -0.0, 1.0, -1.0 / 3, 0.7, 100.5, -128.0, 120.0, 6.1e-5, 5.9e-8, -3e-8, 2.0**-133, 1e-45]
OF_FLOATS = ["F16", "BF16", "F32", "F64", "I8", "I64", "F8_E4M3", "F8_E5M2"]
OF_WHOLE = [*OF_FLOATS, "U8", "U16", "U32", "U64", "I16", "I32"]


def test_tensors_in_buckets_have_the_bytes_that_spark_writes(spark: SparkSession, tmp_path: Path) -> None:
    rows = spark.range(0, 90, 1, 3).selectExpr("concat('k', id % 7, 'é😀', id) k", "array(cast(id as float)) x")
    options: dict[str, Any] = {"name_col": "k", "key_buckets": 5, "generate_index": True}
    theirs = write(rows, tmp_path / "spark", **options | {"generate_index": "true"})
    ours = write_python(tmp_path / "python", *rows.toArrow().to_batches(max_chunksize=11), **options)
    assert_same(ours, theirs)
    write_python(tmp_path / "spark", {"k": ["new", "k1"], "x": np.zeros((2, 1), np.float32)}, name_col="k")
    assert len(verify(tmp_path / "spark").faults) == 0
    mixed = write(rows.selectExpr("concat('z', k) k", "x"), tmp_path / "python", name_col="k")
    assert {shard["key_bucket"]["buckets"] for shard in mixed.manifest["shards"]} == {5}


@pytest.mark.parametrize("rounding", ["truncate", "nearest_even"])
def test_dtypes_and_shapes_have_the_bytes_that_spark_writes(spark: SparkSession, tmp_path: Path, rounding: Any) -> None:
    specials = [*NUMBERS, float("inf"), float("-inf"), float("nan")]
    floats = [float(np.float32(one)) for one in NUMBERS]
    large = [(1 << 53) + 1, (1 << 60) + (1 << 52) + 1, (1 << 62) + 1, 3]
    lists: dict[str, tuple[str, list[Any], list[str]]] = {
        "f": ("array<float>", floats, OF_FLOATS), "d": ("array<double>", NUMBERS, OF_FLOATS),
        "s": ("array<double>", specials, ["F16", "BF16", "F32", "F8_E4M3", "F8_E5M2"]),
        "i": ("array<int>", [0, 1, 100, 127], OF_WHOLE), "l": ("array<bigint>", large, ["F32", "F64", "BF16", "U64"]),
        "b": ("array<boolean>", [True, False], ["BOOL", "F16", "I8", "U64", "F8_E5M2"]),
    }  # fmt: skip
    names = {f"{name}_{dtype}": (name, dtype) for name, (_, _, dtypes) in lists.items() for dtype in dtypes}
    rows = frame(
        spark, ", ".join(f"{name} {lists[of][0]}" for name, (of, _) in names.items()),
        tuple(lists[of][1] for of, _ in names.values()), tuple(lists[of][1][::-1] for of, _ in names.values()),
    ).coalesce(1)  # fmt: skip
    dtypes = {name: dtype for name, (_, dtype) in names.items()}
    shapes = {name: [2, 2] for name, (of, _) in names.items() if of == "i"} | {"b_BOOL": [1, 2, 1]}
    options: dict[str, Any] = {"batch_size": 2} | ({"rounding": rounding} if rounding != "truncate" else {})
    theirs = write(rows, tmp_path / "spark", **options, dtype=json.dumps(dtypes), shapes=json.dumps(shapes))
    ours = write_python(tmp_path / "python", rows.toArrow(), **options, dtype=dtypes, shapes=shapes)
    assert_same(ours, theirs)


@pytest.mark.parametrize("options", [{"batch_size": 3}, {"name_col": "k"}], ids=["batch", "key"])
def test_tensor_structs_have_the_bytes_that_spark_writes(
    spark: SparkSession, tmp_path: Path, options: dict[str, Any]
) -> None:
    rows = spark.range(0, 7, 1, 1).selectExpr(
        "cast(id as string) k", "arr_to_st(array(id, id + 0.5D, 2, 3), array(2, 2), 'BF16') x",
        "arr_to_st(sequence(0, id), array(cast(id as int) + 1), 'U8') r", "array(id) n",
    )  # fmt: skip
    if "batch_size" in options:
        rows = rows.drop("k")
        theirs = write(rows, tmp_path / "spark", **options, ragged='["r"]')
        ours = write_python(tmp_path / "python", rows.toArrow(), **options, ragged=["r"])
    else:
        theirs = write(rows, tmp_path / "spark", **options)
        ours = write_python(tmp_path / "python", rows.toArrow(), **options)
    assert_same(ours, theirs)


def test_no_rows_have_the_schema_that_spark_records(spark: SparkSession, tmp_path: Path) -> None:
    rows = spark.range(0).selectExpr(
        "array(1.5F) x", "id n", "'a' t", "array(array(id)) m", "arr_to_st(array(1), array(1), 'U8') s", "array(id) r"
    )
    theirs = write(rows, tmp_path / "spark", batch_size=3, ragged='["r"]')
    ours = write_python(tmp_path / "python", rows.toArrow(), batch_size=3, ragged=["r"])
    assert_same(ours, theirs)


def test_shards_close_where_spark_closes_them(spark: SparkSession, tmp_path: Path) -> None:
    x = "array_repeat(cast(id as float), 150000 + cast(id as int) * 500) x"
    rows = spark.range(0, 130, 1, 1).selectExpr("cast(id as string) k", x)
    for options in ({"name_col": "k"}, {"batch_size": "auto", "ragged": ["x"]}):
        chosen = rows.select("x") if "ragged" in options else rows
        given = options | ({"ragged": '["x"]'} if "ragged" in options else {})
        theirs = write(chosen, tmp_path / f"spark {len(given)}", target_shard_size_mb=50, **given)
        batches = chosen.toArrow().to_batches(max_chunksize=7)
        ours = write_python(tmp_path / f"python {len(given)}", *batches, target_shard_size_mb=50, **options)
        assert len(ours.shards) > 1
        assert_same(ours, theirs)


def test_spark_reads_what_python_wrote(spark: SparkSession, tmp_path: Path) -> None:
    path = tmp_path / "dataset"
    write_python(path, {"x": np.arange(10, dtype=np.float32).reshape(5, 2), "n": np.arange(5)}, batch_size=2)
    rows = spark.read.format("safetensors").option("layout", "rows").option("inferSchema", "true").load(str(path))
    assert [row["n"]["data"] for row in rows.orderBy("n.data").collect()] == [bytes([n, *[0] * 7]) for n in range(5)]
    assert rows.count() == 5
    write(frame(spark, "x array<float>, n bigint", ([7.0, 8.0], 9)), path, batch_size=2)
    assert Dataset(path).samples == [2, 2, 1, 1]
    assert_says(
        error_of(lambda: write(frame(spark, "x array<float>, n bigint", ([7.0], 9)), path, batch_size=2)),
        "F32 [1]", "F32 [2]",
    )  # fmt: skip


def test_both_find_the_other_s_keys_in_the_index(spark: SparkSession, tmp_path: Path) -> None:
    path = tmp_path / "dataset"
    keyed: dict[str, Any] = {"name_col": "k"}
    write_python(
        path, {"k": [f"p{n:05d}" for n in range(20_000)], "x": np.arange(20_000)}, **keyed, generate_index=True
    )
    write(frame(spark, "k string, x bigint", ("s1", 1), ("s2", 2)), path, **keyed)
    with pytest.raises(DuplicateKeyError, match="`s2`"):
        write_python(path, {"k": ["s2"], "x": np.arange(1)}, **keyed)
    assert_says(error_of(lambda: write(frame(spark, "k string, x bigint", ("p00077", 1)), path, **keyed)), "`p00077`")
    write_python(path, {"k": ["t"], "x": np.arange(1)}, **keyed)
    tensors = spark.read.format("safetensors").option("layout", "long").load(str(path))
    found = tensors.where("tensor_key in ('p00099', 's1', 't')")
    assert sorted(row["tensor_key"] for row in found.collect()) == ["p00099", "s1", "t"]
    assert len(open_store(path)) == 20_003
    assert verify(path).faults == []
    assert verify(path).index_entries == 20_003


def test_spark_and_python_append_at_the_same_time(spark: SparkSession, tmp_path: Path) -> None:
    path = tmp_path / "dataset"
    start = threading.Barrier(8)

    def append(writer: int) -> None:
        start.wait()
        for turn in range(3):
            numbers = [writer * 100 + turn * 10 + n for n in range(4)]
            if writer % 2:
                write_python(path, {"x": np.array(numbers)}, batch_size=2, generate_index=True)
            else:
                rows = frame(spark, "x bigint", *((n,) for n in numbers))
                writer_of_spark = (
                    rows.write.format("safetensors").mode("append").options(batch_size=2, generate_index="true")
                )
                writer_of_spark.save(str(path))

    with ThreadPoolExecutor(8) as threads:
        list(threads.map(append, range(8)))
    dataset = Dataset(path)
    found = [int(n) for shard in dataset.shards for n in np.frombuffer(load(shard)["x"].data, np.int64)]
    assert sorted(found) == sorted(w * 100 + t * 10 + n for w in range(8) for t in range(3) for n in range(4))
    assert verify(path).faults == []
    assert verify(path).index_entries == len(dataset.shards) == 48
    named = {shard.name for shard in dataset.shards} | {part["file"] for part in dataset.manifest["index_parts"]}
    assert {one.name for one in path.iterdir()} == named | {"dataset_manifest.json"}
    assert len(read(spark, path).collect()) == 48


def test_each_takes_the_lock_of_a_dead_writer_of_the_other(spark: SparkSession, tmp_path: Path) -> None:
    path = tmp_path / "dataset"
    holder = "00000000-0000-0000-0000-000000000001"
    lock = {"id": holder, "process": 1, "host": "h", "since": "s", "stale_after_ms": 300}
    write_python(path, {"x": np.arange(2)}, batch_size=2)
    (path / "_commit.lock").write_text(json.dumps(lock | {"application": "safetensors-spark"}))
    write(frame(spark, "x bigint", (3,)), path, batch_size=2)
    (path / "_commit.lock").write_text(json.dumps(lock | {"application": "local-1"}))
    write_python(path, {"x": np.arange(2)}, batch_size=2)
    assert Dataset(path).samples == [2, 1, 2]


def test_python_cleans_up_behind_a_commit_of_spark_that_died(spark: SparkSession, tmp_path: Path) -> None:
    path = tmp_path / "dataset"
    dataset = write(frame(spark, "x bigint", (1,), (2,)), path, batch_size=1)
    dead = "part-00000-00000000-0000-0000-0000-000000000000.safetensors"
    (path / dead).write_bytes(dataset.shards[0].read_bytes())
    (path / "_pending").mkdir()
    names = "\n".join([dead, dataset.shards[0].name, "../notes.txt"])
    (path / "_pending" / "11111111-1111-1111-1111-111111111111").write_text(names)
    (tmp_path / "notes.txt").write_text("mine")
    write_python(path, {"x": np.arange(1)}, batch_size=1)
    assert not (path / dead).exists()
    assert not (path / "_pending").exists()
    assert (tmp_path / "notes.txt").exists()
    assert Dataset(path).samples == [1, 1, 1]


def test_a_full_disk_is_named_and_nothing_is_left_on_it(tmp_path: Path) -> None:
    disks = [tmp_path / "other", tmp_path / "dataset"]
    for disk in disks:
        disk.mkdir()
    root, oneself = own_mounts()
    within = [*root, "sh", "-c", MOUNT, *map(str, disks), *oneself]
    answer = answer_of("python_full_disk_job.py", {"path": str(disks[1] / "points")}, within)
    assert_says(answer["error"], f"{disks[1]}/points/_temporary/", "No space left on device", "Make room")
    assert (answer["left"], answer["rows"]) == ([], 2000)
