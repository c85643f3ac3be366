"""Which files a read takes: paths, patterns and names, beside Spark's own sources and the official library."""

import json
import os
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from pyspark.sql import DataFrame, SparkSession
from safetensors.numpy import save_file

from spark_io import MANIFEST, Dataset, assert_says, error_of, frame, read, write


def one(path: Path) -> Path:
    """A file with one tensor, which is named like the file."""
    path.parent.mkdir(parents=True, exist_ok=True)
    save_file({path.name: np.array([1, 2, 3], np.uint8)}, path)
    return path


def long(spark: SparkSession, *paths: Path | str, **options: Any) -> DataFrame:
    reader = spark.read.format("safetensors").option("layout", "long").options(**options)
    return reader.load([str(path) for path in paths])


def found(spark: SparkSession, *paths: Path | str, **options: Any) -> list[str]:
    """The names of the tensors, and so of the files, in order; their bytes are read too."""
    rows = long(spark, *paths, **options).select("tensor_key", "tensor.data").collect()
    assert {bytes(row["data"]) for row in rows} <= {b"\1\2\3"}
    return [row["tensor_key"] for row in rows]


NAMES = [
    "with space", " led by one", "100%", "a%20b", "a+b&c", "a#b", "a?b", "a,b", "a;b", "it's \"so\"", "ключ", "😀",
    "e\u0301", "[x]", "a*b", "{a,b}", "tab\there", "colon:in", "_hidden", ".hidden", "k=1",
]  # fmt: skip


# What the names would match if they were patterns.
OTHERS = ["x", "axb", "a", "b"]


@pytest.mark.short
def test_files_of_any_name_are_read_by_their_names(spark: SparkSession, tmp_path: Path) -> None:
    files = [one(tmp_path / f"{name}.safetensors") for name in NAMES + OTHERS][: len(NAMES)]
    assert found(spark, *files) == [file.name for file in files]
    assert read(spark, files[0]).columns == [files[0].name]


def test_directories_of_any_name_are_read_by_their_names(spark: SparkSession, tmp_path: Path) -> None:
    files = [one(tmp_path / name / f"in {name}.safetensors") for name in NAMES + OTHERS][: len(NAMES)]
    assert found(spark, *(file.parent for file in files)) == [file.name for file in files]


def test_files_of_any_name_are_found_in_a_directory(spark: SparkSession, tmp_path: Path) -> None:
    shown = [one(tmp_path / f"{name}.safetensors").name for name in NAMES if not name.startswith((".", "_"))]
    assert sorted(found(spark, tmp_path)) == sorted(shown)


def test_hidden_names_are_no_data_unless_they_are_named(spark: SparkSession, tmp_path: Path) -> None:
    for name in ("a", "_b", ".c", "d/e", "_f/g", ".h/i"):
        one(tmp_path / f"{name}.safetensors")
    (tmp_path / "config.json").write_text("{}")
    (tmp_path / "folder.safetensors").mkdir()
    assert found(spark, tmp_path) == ["a.safetensors"]
    assert found(spark, tmp_path, recursiveFileLookup=True) == ["a.safetensors", "e.safetensors"]
    assert found(spark, tmp_path / "*") == ["a.safetensors", "e.safetensors"]
    assert found(spark, tmp_path / "_f") == ["g.safetensors"]


@pytest.fixture(scope="module")
def tree(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Files in directories of several depths; Spark's own sources find their way in it, too."""
    root = tmp_path_factory.mktemp("tree")
    for name in ("a-1", "a-2", "b-1", "x/a-3", "x/c-1", "y/d-1", "y/z/a-4", "y/z/e-1", "y/_hidden/f-1"):
        one(root / f"{name}.safetensors")
    one(root.with_name("parted") / "k=1" / "g-1.safetensors")
    for name in ("config.json", "a-1.json", "x/notes.txt"):
        (root / name).write_text("{}")
    return root


LOOKUPS: list[tuple[list[str], dict[str, Any]]] = [
    (["."], {}),
    (["x"], {}),
    (["x/"], {}),
    (["x/../x"], {}),
    (["a-1.safetensors"], {}),
    (["x", "y"], {}),
    (["y", "x", "b-1.safetensors"], {}),
    (["x", "x"], {}),
    (["a-1.safetensors", "a-*.safetensors"], {}),
    (["*.safetensors"], {}),
    (["a-?.safetensors"], {}),
    (["{a,b}-1.safetensors"], {}),
    (["[ab]-[0-9].safetensors"], {}),
    (["[!a]-1.safetensors"], {}),
    (["*/*.safetensors"], {}),
    (["{x,y}/*-1.safetensors"], {}),
    (["{x,y/z}"], {}),
    (["?/a-*"], {}),
    (["[xy]/[a-z]"], {}),
    (["."], {"recursiveFileLookup": True}),
    (["y", "x"], {"recursiveFileLookup": True}),
    (["*"], {"recursiveFileLookup": True}),
    (["."], {"pathGlobFilter": "a-*"}),
    (["."], {"pathGlobFilter": "a-*", "recursiveFileLookup": True}),
    (["*.safetensors"], {"pathGlobFilter": "a-*"}),
    (["a-1.safetensors", "b-1.safetensors"], {"pathGlobFilter": "a-*"}),
    (["../parted"], {}),
    (["../parted/k=1"], {"basePath": "../parted"}),
    (["../parted"], {"recursiveFileLookup": True}),
]


@pytest.mark.parametrize(("paths", "options"), LOOKUPS)
def test_paths_lead_to_the_files_that_spark_s_own_sources_find(
    spark: SparkSession, tree: Path, paths: list[str], options: dict[str, Any]
) -> None:
    given = [f"{tree}/{path}" for path in paths]
    if "basePath" in options:
        options = {**options, "basePath": f"{tree}/{options['basePath']}"}
    # The source reads every file; ours, those that end in `.safetensors`.
    own = spark.read.format("binaryFile").options(**options).load(given).select("path").collect()
    expected = sorted(row["path"] for row in own if row["path"].endswith(".safetensors"))
    rows = long(spark, *given, **options).select("_metadata.file_path").collect()
    assert sorted(row["file_path"] for row in rows) == expected
    assert len(expected) > 0


def test_several_paths_are_read_in_their_order(spark: SparkSession, tree: Path) -> None:
    names = [f"{name}.safetensors" for name in ("c-1", "a-3", "d-1", "b-1")]
    assert found(spark, tree / "x/c*", tree / "x/a*", tree / "y", tree / "b-1.safetensors") == names


@pytest.mark.parametrize(
    ("path", "options", "words"),
    [
        ("absent", {}, ["Path does not exist", "absent"]),
        ("absent.safetensors", {}, ["Path does not exist", "absent.safetensors"]),
        ("q*.safetensors", {}, ["Path does not exist", "q*.safetensors"]),
        ("a-1.safetensors/x", {}, ["Path does not exist", "a-1.safetensors/x"]),
        ("*.json", {}, ["*.json", "no name that ends in `.safetensors`", "a-1.json"]),
        ("[a", {}, ["[a", "cannot be matched"]),
        ("y", {"pathGlobFilter": "a-*"}, ["No safetensors file", "pathGlobFilter"]),
        ("a-1.safetensors", {"pathGlobFilter": "b-*"}, ["No safetensors file", "pathGlobFilter"]),
        (".", {"pathGlobFilter": "[a"}, ["Option `pathGlobFilter` is `[a`", "pattern"]),
        ("../parted/k=1/..", {"basePath": "x"}, ["Option `basePath`", "parted", "is not below it"]),
        ("../parted/k=1/g-1.safetensors", {"basePath": "x"}, ["Option `basePath`", "is not below it"]),
    ],
)
def test_a_path_that_leads_to_nothing_is_an_error(
    spark: SparkSession, tree: Path, path: str, options: dict[str, str], words: list[str]
) -> None:
    if "basePath" in options:
        options = {"basePath": f"{tree}/{options['basePath']}"}
    assert_says(error_of(lambda: found(spark, f"{tree}/{path}", **options)), *words)


def test_a_pattern_beside_a_colon_which_hadoop_cannot_match_says_what_does(spark: SparkSession, tmp_path: Path) -> None:
    one(tmp_path / "a:b.safetensors")
    message = error_of(lambda: found(spark, tmp_path / "*.safetensors"))
    assert_says(message, "cannot be matched with file names", "a:b.safetensors", "`pathGlobFilter`")
    assert found(spark, tmp_path, pathGlobFilter="a:*.safetensors") == ["a:b.safetensors"]


def test_a_directory_without_data_says_where_to_look(spark: SparkSession, tmp_path: Path) -> None:
    one(tmp_path / "unet" / "model.safetensors")
    message = error_of(lambda: found(spark, tmp_path))
    assert_says(message, str(tmp_path), "holds no safetensors files", MANIFEST, "recursiveFileLookup")


def test_links_are_followed_as_in_the_cache_of_a_model_hub(spark: SparkSession, tmp_path: Path) -> None:
    blob = one(tmp_path / "blobs" / "4f2a")
    snapshot = tmp_path / "snapshots" / "main"
    snapshot.mkdir(parents=True)
    (snapshot / "model.safetensors").symlink_to(os.path.relpath(blob, snapshot))
    for path in (snapshot, snapshot / "model.safetensors", tmp_path / "snapshots" / "*"):
        assert found(spark, path) == ["4f2a"]
    row = long(spark, snapshot).select("_metadata.*").head()
    assert row is not None
    assert (row["file_name"], row["file_size"]) == ("model.safetensors", blob.stat().st_size)


def keyed(spark: SparkSession, path: Path, first: int, last: int, **options: Any) -> Dataset:
    rows = spark.range(first, last, 1, 2).selectExpr("concat('k', id) k", "cast(array(1, 2, 3) as array<tinyint>) x")
    return write(rows, path, name_col="k", dtype="U8", **options)


def test_files_that_a_manifest_does_not_name_are_read_when_they_are_named(spark: SparkSession, path: Path) -> None:
    dataset = keyed(spark, path, 0, 4, generate_index=True)
    left = one(path / "left.safetensors")
    assert sorted(found(spark, path)) == ["k0", "k1", "k2", "k3"]
    assert found(spark, left) == ["left.safetensors"]
    assert len(found(spark, path / "*.safetensors")) == 5
    # The index of the directory knows nothing of the file.
    both = long(spark, path, left).where("tensor_key IN ('left.safetensors', 'k1')")
    assert [row["tensor_key"] for row in both.collect()] == ["k1", "left.safetensors"]
    assert len(dataset.shards) == 2


def test_path_glob_filter_picks_shards_of_a_dataset(spark: SparkSession, path: Path) -> None:
    keyed(spark, path, 0, 4, generate_index=True)
    options = {"pathGlobFilter": "part-00001-*"}
    assert found(spark, path, **options) == ["k2", "k3"]
    assert long(spark, path, **options).where("tensor_key IN ('k1', 'k2')").count() == 1
    assert_says(error_of(lambda: found(spark, path, pathGlobFilter="absent*")), "pathGlobFilter", str(path))


@pytest.mark.parametrize("name", ["../x.safetensors", "/etc/x.safetensors", "a/b.safetensors", "..\\\\x.safetensors"])
def test_a_shard_outside_of_its_directory_is_refused(spark: SparkSession, path: Path, name: str) -> None:
    dataset = keyed(spark, path, 0, 2)
    for lured in ("../x.safetensors", "a/b.safetensors"):
        one(path / lured)
    file = path / MANIFEST
    file.write_text(file.read_text().replace(dataset.shards[0].name, name))
    said = name.replace("\\\\", "\\")
    assert_says(error_of(lambda: found(spark, path)), str(file), f"`{said}`", "is not a file name in its directory")


@pytest.mark.parametrize("text", ["", "{", "[]", "null", "no JSON", '{"shards": []}', "\0\1\2"])
def test_a_manifest_that_is_none_is_an_error(spark: SparkSession, path: Path, text: str) -> None:
    keyed(spark, path, 0, 1)
    (path / MANIFEST).write_text(text)
    message = error_of(lambda: found(spark, path))
    assert_says(message, str(path / MANIFEST), "is not a valid dataset manifest", "Overwrite the dataset")


def test_shards_that_are_gone_or_cut_off_are_errors(spark: SparkSession, path: Path) -> None:
    first, second = keyed(spark, path, 0, 4).shards
    whole = second.read_bytes()
    second.write_bytes(whole[:-1])
    message = error_of(lambda: found(spark, path))
    assert_says(message, f"Shard {second.name}", f"{len(whole) - 1} bytes", f"says {len(whole)}", "Restore it")
    second.unlink()
    assert_says(
        error_of(lambda: found(spark, path)), f"Shard {second.name} is gone", str(path), "overwrite the dataset"
    )
    first.unlink()
    assert_says(error_of(lambda: found(spark, path)), f"Shard {first.name} (and 1 more) is gone")
    second.mkdir()
    assert_says(error_of(lambda: found(spark, path)), f"Shard {first.name} (and 1 more) is gone")


def other_header(shard: Path, change: str, to: str) -> None:
    """Changes the header in place: the file stays as long as it was."""
    raw = shard.read_bytes()
    assert raw.count(change.encode()) == 1
    assert len(change) == len(to)
    shard.write_bytes(raw.replace(change.encode(), to.encode()))


@pytest.mark.parametrize(
    ("change", "to", "words"),
    [
        ('"F32"', '"I32"', ["the dtype of tensor `x` is I32", "says F32"]),
        ("[2,2]", "[4,1]", ["the shape of a sample of tensor `x` is [1]", "says [2]"]),
        ('"x"', '"w"', ["tensor `x` is absent"]),
        ('"F32","shape":[2,2]', '"F64","shape":[1,2]', ["tensor `x`", "F64"]),
    ],
)
@pytest.mark.parametrize("layout", ["wide", "rows", "long"])
def test_a_shard_that_is_not_the_one_of_the_manifest_is_an_error(
    spark: SparkSession, path: Path, layout: str, change: str, to: str, words: list[str]
) -> None:
    rows = frame(spark, "x array<float>", ([1.0, 2.0],), ([3.0, 4.0],))
    shard = write(rows, path, batch_size=2).shard
    schema = spark.read.format("safetensors").options(inferSchema=True, layout=layout).load(str(path)).schema
    other_header(shard, change, to)
    table = spark.read.format("safetensors").option("layout", layout).schema(schema).load(str(path))
    assert_says(error_of(table.collect), shard.name, *words, f"{MANIFEST} says", "Restore it")


def test_a_shard_of_fewer_samples_than_the_manifest_says_is_an_error(spark: SparkSession, path: Path) -> None:
    shard = write(frame(spark, "x array<float>", ([1.0, 2.0],), ([3.0, 4.0],)), path, batch_size=2).shard
    manifest = path / MANIFEST
    manifest.write_text(re.sub(r'"samples_count" : 2', '"samples_count" : 3', manifest.read_text()))
    message = error_of(lambda: read(spark, path).collect())
    assert_says(message, shard.name, "the shape of tensor `x` is [2, 2]", f"{MANIFEST} says 3 samples")


def test_a_header_of_another_length_than_the_manifest_says_is_an_error(spark: SparkSession, path: Path) -> None:
    shard = write(frame(spark, "x array<float>", ([1.0] * 16,)), path, batch_size=1).shard
    raw = shard.read_bytes()
    length = int.from_bytes(raw[:8], "little")
    header = json.loads(raw[8 : 8 + length])
    header["x"] |= {"shape": [1, 14], "data_offsets": [0, 56]}
    text = json.dumps(header).ljust(length + 8).encode()
    shard.write_bytes(len(text).to_bytes(8, "little") + text + raw[-56:])
    assert shard.stat().st_size == len(raw)
    assert_says(error_of(lambda: read(spark, path).collect()), shard.name, "the header's end is", "says")


def test_links_in_a_circle_are_followed_once(spark: SparkSession, tmp_path: Path) -> None:
    one(tmp_path / "data" / "a.safetensors")
    one(tmp_path / "data" / "sub" / "b.safetensors")
    one(tmp_path / "elsewhere" / "c.safetensors")
    (tmp_path / "data" / "self").symlink_to(tmp_path / "data")
    (tmp_path / "data" / "sub" / "up").symlink_to("..")
    (tmp_path / "data" / "other").symlink_to(tmp_path / "elsewhere")
    keys = found(spark, tmp_path / "data", recursiveFileLookup="true")
    assert sorted(keys) == ["a.safetensors", "b.safetensors", "c.safetensors"]
