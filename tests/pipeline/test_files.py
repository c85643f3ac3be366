"""Files that pipelines read and write."""

from __future__ import annotations

import bz2
import gzip
import json
import lzma
import math
import os
import re
import subprocess
import zipfile
from collections.abc import Iterator
from datetime import datetime
from decimal import Decimal
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, ClassVar

import fsspec
import numpy as np
import orjson
import pyarrow as pa  # type: ignore[import-untyped]
import pyarrow.parquet as pq  # type: ignore[import-untyped]
import pytest
import zstandard
from fsspec.implementations.memory import MemoryFileSystem

from pipeline.conftest import ALL, MakeBackend
from safetensors_spark import PipelineError, SafetensorsSparkError
from safetensors_spark.dataset import open_dataset, write_dataset
from safetensors_spark.pipeline import Dataset, SyncBackend, col, load_file, load_jsonl

ROWS = [{"id": number, "text": f"\n\u2028é{number}", "tokens": list(range(number))} for number in range(5)]
LINES = b"".join(json.dumps(row).encode() + b"\n" for row in ROWS)


@pytest.mark.parametrize("suffix", ["jsonl", "jsonl.gz", "jsonl.zst", "parquet"])
def test_what_is_written_is_read_again(suffix: str, tmp_path: Path, backend: MakeBackend) -> None:
    rows = Dataset.from_list([ROWS, [], ROWS[:1]]).flat_map(list)
    pattern = f"{tmp_path}/out/{{shard}}-of-{{total}}.{suffix}"
    schema = pa.schema({"id": pa.int64(), "text": pa.string(), "tokens": pa.list_(pa.int64())})
    written = rows.write_parquet(pattern, schema) if suffix == "parquet" else rows.write_jsonl(pattern)
    paths = list(backend().execute(written))
    assert paths == [f"{tmp_path}/out/{shard}-of-3.{suffix}" for shard in range(3)]
    assert [list(load_file(path)) for path in paths] == [ROWS, [], ROWS[:1]]
    assert not list(Path(tmp_path, "out").glob(".*"))


def test_the_same_rows_are_the_same_bytes(tmp_path: Path, files: Path, backend: MakeBackend, sync: MakeBackend) -> None:
    rows = Dataset.from_files(files, "**/*.gz").load_jsonl()
    grouped = rows.group_by(lambda row: row["kind"], lambda key, found: [key, [row["id"] for row in found]])
    for name, make in (("sync", sync), ("other", backend)):
        folder = tmp_path / name
        list(make().execute(rows.filter(col("score") > 0.5).write_jsonl(f"{folder}/a{{shard}}.jsonl.gz")))
        list(make().execute(rows.window(64).write_parquet(f"{folder}/b{{shard}}.parquet")))
        list(make(memory="4MiB").execute(grouped.write_jsonl(f"{folder}/c{{shard}}.jsonl.zst")))
        list(make().execute(rows.select("id", "text").write_safetensors(f"{folder}/d", batch_size=100)))
    names = sorted(path.relative_to(tmp_path / "sync") for path in (tmp_path / "sync").glob("*.*"))
    assert len(names) == 12
    for path in names:
        assert (tmp_path / "sync" / path).read_bytes() == (tmp_path / "other" / path).read_bytes(), path
    one, other = (open_dataset(tmp_path / name / "d") for name in ("sync", "other"))
    assert [row["id"] for row in one] == [row["id"] for row in other] == [row["id"] for row in ALL]
    assert [shard.crc32c for shard in one.shards] == [shard.crc32c for shard in other.shards]


@pytest.mark.parametrize(
    ("suffix", "compress"),
    [
        ("gz", lambda text: gzip.compress(text[:100]) + gzip.compress(text[100:])),
        ("zst", lambda text: zstandard.compress(text[:100]) + zstandard.compress(text[100:])),
        ("xz", lzma.compress),
        ("bz2", bz2.compress),
    ],
)
def test_compressed_lines_are_read(suffix: str, compress: Any, tmp_path: Path) -> None:
    path = tmp_path / f"a.jsonl.{suffix}"
    path.write_bytes(compress(LINES))
    assert list(load_jsonl(str(path))) == ROWS
    path.write_bytes(compress(LINES)[:-20])
    for content in (compress(LINES)[:-20], b""):
        path.write_bytes(content)
        with pytest.raises(PipelineError, match=f"a.jsonl.{suffix} cannot be read"):
            list(load_jsonl(str(path)))


@pytest.mark.parametrize("suffix", ["gz", "gzip", "GZ", "zst", "zstd", "xz", "XZ", "bz2"])
def test_compressed_lines_are_written(suffix: str, tmp_path: Path, sync: MakeBackend) -> None:
    rows = Dataset.from_list([ROWS]).flat_map(list)
    for folder in ("a", "b"):
        list(sync().execute(rows.write_jsonl(f"{tmp_path}/{folder}/{{shard}}.jsonl.{suffix}")))
    path = tmp_path / "a" / f"0.jsonl.{suffix}"
    assert path.read_bytes() == (tmp_path / "b" / path.name).read_bytes()
    written = b"".join(orjson.dumps(row) + b"\n" for row in ROWS)
    tool = {"g": "gzip", "z": "zstd", "x": "xz", "b": "bzip2"}[suffix[0].lower()]
    if tool != "zstd":
        with path.open("rb") as file:
            assert subprocess.run([tool, "-dc"], stdin=file, capture_output=True, check=True).stdout == written
    else:
        assert zstandard.ZstdDecompressor().decompressobj().decompress(path.read_bytes()) == written
    assert list(load_jsonl(str(path))) == ROWS


@pytest.mark.parametrize(
    ("value", "told"),
    [
        (2**64, f"a.b[1] is {2**64}, of type int"),
        (Decimal("1.5"), "a.b[1] is Decimal('1.5'), of type Decimal"),
        (b"bytes", "a.b[1] is b'bytes', of type bytes"),
        ({1: 2}, "a.b[1] is {1: 2}, of type dict (Dict key must be str)"),
        ("\ud800", "a.b[1] is '\\ud800', of type str"),
    ],
)
def test_values_that_json_does_not_have_are_named(value: Any, told: str, tmp_path: Path, sync: MakeBackend) -> None:
    rows = Dataset.from_list([[{"a": 1}, {"a": {"b": [1, value]}}]]).flat_map(list)
    with pytest.raises(PipelineError, match=re.escape(f"row 1 of the shard cannot be a line of JSON: {told}")):
        sync().execute(rows.write_jsonl(f"{tmp_path}/{{shard}}.jsonl"))


@pytest.mark.parametrize(
    ("early", "late", "path"),
    [
        ({"x": 1}, {"x": 2, "y": 3}, "y"),
        ([{"x": {"z": None}}], [{"x": None}, {"x": {"z": 1, "y": 2}}], "x.y"),
    ],
)
def test_fields_that_come_late_are_not_left_out(
    early: Any, late: Any, path: str, tmp_path: Path, sync: MakeBackend
) -> None:
    rows = Dataset.from_list([1]).flat_map(lambda _: [{"s": early}] * 10_000 + [{"s": late}])
    out = f"{tmp_path}/{{shard}}.parquet"
    with pytest.raises(PipelineError, match=rf"`s` has the field `{path}` in the records 10000 to 10000 of the shard"):
        sync().execute(rows.write_parquet(out))
    schema = pa.schema([("s", pa.array([late]).type)])
    list(sync().execute(rows.write_parquet(out, schema=schema)))
    assert pq.read_table(tmp_path / "0.parquet")["s"].to_pylist()[-1] == pa.array([late])[0].as_py()


@pytest.mark.parametrize("place", [3, 60, -6])
def test_a_gzip_file_whose_bytes_have_changed_is_named(place: int, tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl.gz"
    content = bytearray(gzip.compress(LINES * 100))
    content[place] ^= 0xFF
    path.write_bytes(content)
    with pytest.raises(PipelineError, match=r"a.jsonl.gz cannot be read: .*\. Copy it again, or leave it out."):
        list(load_jsonl(str(path)))


def test_lines_are_counted_in_long_files(tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl"
    row = {"a": "x" * 1000}
    lines = [json.dumps(row), *[json.dumps(row)] * 998, '{"a": NaN}', "{", *[json.dumps(row)] * 500]
    path.write_text("\n".join(lines))
    found = load_jsonl(str(path))
    rows = [next(found) for _ in range(1000)]
    assert rows[:999] == [row] * 999
    assert math.isnan(rows[999]["a"])
    with pytest.raises(PipelineError, match=r"a.jsonl, line 1001 is not JSON"):
        next(found)


def test_lines_that_are_no_json_are_named(tmp_path: Path, sync: MakeBackend) -> None:
    path = tmp_path / "a.jsonl"
    path.write_text('{"a": NaN}\n\n  \n{"a": -Infinity}\n{"a": }\n')
    found = load_jsonl(str(path))
    first, second = next(found), next(found)
    assert math.isnan(first["a"])
    assert second == {"a": -math.inf}
    with pytest.raises(PipelineError, match=r"a.jsonl, line 5 is not JSON"):
        next(found)
    with pytest.raises(PipelineError, match=r"a.jsonl, line 5 is not JSON") as raised:
        sync().execute(Dataset.from_files(path).load_jsonl())
    assert raised.value.__notes__ == ["In shard 0 of 1, record 2, of stage 1: load jsonl"]


def test_long_integers_are_floats_whatever_else_a_line_has(tmp_path: Path, sync: MakeBackend) -> None:
    (tmp_path / "a.jsonl").write_text(
        "".join(f'{{"a": [{2**64}, {2**64 - 1}, {-(2**63)}], "b": {b}}}\n' for b in ("1", "NaN"))
    )
    rows = Dataset.from_files(tmp_path / "a.jsonl").load_jsonl().map(lambda row: [(type(one), one) for one in row["a"]])
    assert list(sync().execute(rows)) == [[(float, 2.0**64), (int, 2**64 - 1), (int, -(2**63))]] * 2


def test_files_are_found_by_patterns(tmp_path: Path) -> None:
    for name in ("a.jsonl", "b.jsonl", "c.txt", "x/a.jsonl", "x/y/a.jsonl", ".hidden/a.jsonl", "_pipeline/a.jsonl"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text("{}\n")

    def found(*arguments: Any) -> list[str]:
        shards = Dataset.from_files(*arguments).source.shards()
        return [str(Path(shard.rows[0]).relative_to(tmp_path)) for shard in shards]

    assert found(tmp_path, "*.jsonl") == ["a.jsonl", "b.jsonl"]
    assert found(tmp_path, "**/a.jsonl") == ["a.jsonl", "x/a.jsonl", "x/y/a.jsonl"]
    assert found(f"{tmp_path}/{{b,x/y/a}}.jsonl") == ["b.jsonl", "x/y/a.jsonl"]
    assert found(tmp_path / "c.txt") == ["c.txt"]
    with pytest.raises(FileNotFoundError, match=r"no file matches .*/\*.csv; `empty_glob_ok=True` allows that"):
        found(tmp_path, "*.csv")
    assert Dataset.from_files(tmp_path, "*.csv", empty_glob_ok=True).source.shards() == []


def test_relative_paths_are_of_the_caller(
    tmp_path: Path, backend: MakeBackend, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("a.jsonl").write_bytes(LINES)
    written = Dataset.from_files("*.jsonl").load_jsonl().write_jsonl("out/{basename}.jsonl")
    assert list(backend().execute(written)) == [f"{tmp_path}/out/shard_0.jsonl"]
    assert Path("out/shard_0.jsonl").read_text().count("\n") == 5


def test_patterns_that_would_lose_files_are_errors(tmp_path: Path, sync: MakeBackend) -> None:
    rows = Dataset.from_list([{"a": 1}, {"a": 2}])
    with pytest.raises(PipelineError, match=r"shards 0 and 1 of 2 would both write .*one.jsonl"):
        sync().execute(rows.write_jsonl(f"{tmp_path}/one.jsonl"))
    with pytest.raises(PipelineError, match=r"is not a pattern: KeyError\('number'\)"):
        sync().execute(rows.write_jsonl(f"{tmp_path}/{{number}}.jsonl"))
    assert list(sync().execute(rows.write_jsonl(lambda shard, total: f"{tmp_path}/{shard + 1}_{total}.jsonl"))) == [
        f"{tmp_path}/1_2.jsonl",
        f"{tmp_path}/2_2.jsonl",
    ]


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        ([{"a": 1}, {"a": "x"}], "column `a` has values of several types"),
        ([{"a": 1}] * 10_001 + [{"a": "x"}], "column `a` is int64, which a value in the records 10000 to 10001 "),
        ([{"a": 1}] * 10_001 + [{"b": 1}], "a record has the column `b`, which no record before has: a"),
        ([1], "a row is a int, but columns need dictionaries"),
    ],
)
def test_records_that_do_not_fit_parquet_are_errors(
    rows: list[Any], message: str, tmp_path: Path, sync: MakeBackend
) -> None:
    with pytest.raises(PipelineError, match=message):
        sync().execute(Dataset.from_list([rows]).flat_map(list).write_parquet(f"{tmp_path}/a.parquet"))
    assert not (tmp_path / "a.parquet").exists()
    assert not list(tmp_path.glob(".*"))


def test_columns_that_are_not_there_are_errors(tmp_path: Path, sync: MakeBackend) -> None:
    pq.write_table(pa.table({"a": [1]}), tmp_path / "a.parquet")
    (tmp_path / "a.jsonl").write_text('{"a": 1}\n')
    for path in ("a.parquet", "a.jsonl"):
        with pytest.raises(PipelineError, match="has no column `b`; it has a"):
            sync().execute(Dataset.from_files(tmp_path, path).load_file(["b"]))
    with pytest.raises(PipelineError, match=r"a.txt has no suffix that tells its format"):
        list(load_file(str(tmp_path / "a.txt")))
    with pytest.raises(FileNotFoundError, match=r"gone.jsonl does not exist"):
        sync().execute(Dataset.from_list([str(tmp_path / "gone.jsonl")]).load_jsonl())


def test_parquet_types_pass(tmp_path: Path, sync: MakeBackend) -> None:
    row = {"time": datetime(2026, 1, 2, 3, 4), "bytes": b"\x00", "inner": {"a": [1, None]}, "null": None}
    list(sync().execute(Dataset.from_list([row]).write_parquet(f"{tmp_path}/a.parquet")))
    assert list(sync().execute(Dataset.from_files(tmp_path, "a.parquet").load_parquet())) == [row]


def test_files_behind_fsspec(sync: MakeBackend) -> None:
    files = fsspec.filesystem("memory")
    files.pipe_file("/in/a.jsonl", LINES)
    rows = Dataset.from_files("memory://in/*.jsonl").load_jsonl()
    assert list(sync().execute(rows.write_parquet("memory://out/{shard}.parquet"))) == ["memory://out/0.parquet"]
    read = Dataset.from_files("memory://out", "*.parquet").load_file().filter(col("id") > 2)
    assert list(sync().execute(read)) == ROWS[3:]
    assert list(sync().execute(rows.write_parquet("memory://out/{shard}.parquet"))) == ["memory://out/0.parquet"]


def test_datasets_are_written_and_read(tmp_path: Path, backend: MakeBackend) -> None:
    rows = Dataset.from_list([range(10), range(10, 15)]).flat_map(list)
    records = rows.map(lambda row: {"x": np.full(3, row, np.float32), "y": row, "text": "a" * row})
    path = f"{tmp_path}/points"
    assert list(backend().execute(records.write_safetensors(path, batch_size=4))) == [path]
    dataset = open_dataset(path)
    assert [row["y"] for row in dataset] == list(range(15))
    assert dataset[12]["text"] == "a" * 12
    paths = Dataset.from_list([path])
    found = list(backend().execute(paths.load_safetensors(["text", "x"]).filter(col("text") > "aaaaaaaaaaaaa")))
    assert [row["text"] for row in found] == ["a" * 14]
    assert found[0]["x"].tolist() == [14, 14, 14]
    shards = Dataset.from_files(tmp_path, "points/*.safetensors")
    (first, *_) = backend().execute(shards.load_safetensors(rows="files"))
    assert first["x"].shape == (4, 3)
    tensors = list(backend().execute(shards.load_safetensors(rows="tensors").map(lambda row: row["key"])))
    assert tensors[:4] == ["text", "text.offsets", "x", "y"]


def test_a_dataset_is_a_source(tmp_path: Path, backend: MakeBackend) -> None:
    write_dataset([{"y": list(range(10)), "text": [str(n) for n in range(10)]}], tmp_path / "d", batch_size=3)
    rows = Dataset.from_dataset(open_dataset(tmp_path / "d"))
    assert len(rows.source.shards()) == 4
    pairs = rows.map(lambda row: (int(row["y"]), row["text"]))
    assert list(backend().execute(pairs)) == [(number, str(number)) for number in range(10)]


def test_readers_of_datasets_drop_what_filters_behind_them_drop(tmp_path: Path, sync: MakeBackend) -> None:
    numbers = list(range(600))
    write_dataset([{"y": numbers, "z": numbers, "text": [str(n) for n in numbers]}], tmp_path / "d", batch_size=500)
    rows = Dataset.from_dataset(open_dataset(tmp_path / "d", columns=["z", "text", "y"]))
    some = rows.filter((col("y") > 300) & (col("y") < 303)).select("text", "y")
    assert str(sync().plan(some)).endswith("load safetensors columns text, y where (y > 300) & (y < 303)")
    assert [(row["text"], int(row["y"])) for row in sync().execute(some)] == [("301", 301), ("302", 302)]
    assert [list(row) for row in sync().execute(rows.filter(col("y") == 300))] == [["z", "text", "y"]]
    assert list(sync().execute(rows.filter(col("absent") == 1))) == []
    assert len(list(sync().execute(rows.filter(col("absent").is_null()).select("z")))) == 600
    with pytest.raises(SafetensorsSparkError, match="has no column `absent`; it is read with z, text, y"):
        sync().execute(rows.select("absent"))

    # Of columns that are not needed no byte is read, and of others only where there is a row that the filter keeps.
    shard = max((tmp_path / "d").glob("part-*"))
    begin = 8 + int.from_bytes(shard.read_bytes()[:8], "little")
    header = json.loads(shard.read_bytes()[8:begin])
    with shard.open("r+b") as file:
        for name in ("text.offsets", "z"):
            file.seek(begin + header[name]["data_offsets"][0])
            file.write(b"\xff" * 8)
    assert [int(row["y"]) for row in sync().execute(rows.filter(col("y") > 590).select("y"))] == numbers[591:]
    assert list(sync().execute(rows.filter(col("y") > 599).select("text"))) == []


def test_a_dataset_appears_at_once_or_not_at_all(tmp_path: Path, backend: MakeBackend) -> None:
    def fails(row: int) -> dict[str, int]:
        if row == 3:
            raise ArithmeticError("three")
        return {"y": row}

    rows = Dataset.from_list(range(4))
    with pytest.raises(ArithmeticError, match="three"):
        backend().execute(rows.map(fails).write_safetensors(f"{tmp_path}/d"))
    assert not (tmp_path / "d" / "dataset_manifest.json").exists()
    appended = rows.map(lambda row: {"y": row}).write_safetensors(f"{tmp_path}/d", mode="append")
    for resume, count in ((True, 4), (True, 4), (False, 8)):
        list(backend(resume=resume).execute(appended))
        assert len(open_dataset(tmp_path / "d")) == count


def test_links_are_files_and_what_was_kept_apart_is_not(tmp_path: Path, sync: MakeBackend) -> None:
    (tmp_path / "real").mkdir()
    (tmp_path / "real" / "1.jsonl").write_text('{"a": 1}')
    (tmp_path / "in" / "_quarantine").mkdir(parents=True)
    (tmp_path / "in" / "_quarantine" / "2.jsonl").write_text('{"error": "bad"}')
    (tmp_path / "in" / "link.jsonl").symlink_to("../real/1.jsonl")
    assert list(sync().execute(Dataset.from_files(tmp_path / "in", "**/*.jsonl").load_jsonl())) == [{"a": 1}]


def test_a_filter_finds_zeros_of_both_signs(tmp_path: Path, sync: MakeBackend) -> None:
    pq.write_table(pa.table({"f": [0.0, -0.0]}), tmp_path / "zeros.parquet")
    rows = Dataset.from_list([f"{tmp_path}/zeros.parquet"]).load_parquet()
    assert len(list(sync().execute(rows.filter(col("f").isin([0.0, 2.0]))))) == 2


@pytest.mark.parametrize("folder", ["in [1]", "{a,b}", "in::x", "a b", "*", "~x", "é"])
def test_folders_have_any_name(folder: str, tmp_path: Path, sync: MakeBackend) -> None:
    place = tmp_path / folder
    place.mkdir()
    (place / "a{1,2}.jsonl").write_text('{"a": 1}')
    pq.write_table(pa.table({"a": [2]}), place / "b[1].parquet")
    for path, pattern in ((place, "*"), (tmp_path, f"{folder}/a*") if folder.isalpha() else (place, "[ab]*")):
        rows = [row["a"] for row in sync().execute(Dataset.from_files(path, pattern).load_file())]
        assert rows == ([1, 2] if path == place else [1])
    # A path without a pattern may be that of a file, too.
    assert list(sync().execute(Dataset.from_files(place / "a{1,2}.jsonl").load_jsonl())) == [{"a": 1}]
    assert list(sync().execute(Dataset.from_list([place / "b[1].parquet"]).load_parquet())) == [{"a": 2}]
    out = f"{place}/out/{{shard}}.jsonl".replace("{a,b}", "{{a,b}}")
    (written,) = sync().execute(Dataset.from_list([place / "b[1].parquet"]).load_file().write_jsonl(out))
    assert Path(written).read_text() == '{"a":2}\n'


def test_chained_urls(tmp_path: Path, sync: MakeBackend) -> None:
    with zipfile.ZipFile(tmp_path / "in.zip", "w") as file:
        for number in range(2):
            file.writestr(f"d/{number}.jsonl.gz", gzip.compress(b'{"a": %d}' % number))
    fsspec.filesystem("memory").pipe("/chained/in.zip", (tmp_path / "in.zip").read_bytes())
    for chain in (f"{tmp_path}/in.zip", "memory://chained/in.zip", "simplecache::memory://chained/in.zip"):
        rows = Dataset.from_files(f"zip://d/*.jsonl.gz::{chain}")
        assert list(sync().execute(rows)) == [f"zip://d/{number}.jsonl.gz::{chain}" for number in range(2)]
        assert list(sync().execute(rows.load_file())) == [{"a": 0}, {"a": 1}]
    fsspec.filesystem("memory").pipe("/chained/a.jsonl", b'{"a": 5}')
    rows = Dataset.from_files("simplecache::memory://chained", "*.jsonl")
    assert list(sync().execute(rows.load_file())) == [{"a": 5}]


def test_links_to_folders_are_gone_into(tmp_path: Path, sync: MakeBackend) -> None:
    for folder in ("real/x", "in/y", "in/.hidden[1]"):
        (tmp_path / folder).mkdir(parents=True)
        (tmp_path / folder / "1.jsonl").write_text(f'"{folder}"\n')
    (tmp_path / "in" / "x").symlink_to("../real/x")
    (tmp_path / "in" / "y" / "loop").symlink_to("..")
    (tmp_path / "in" / "y" / "_pipeline_logs.jsonl").write_text('"log"\n')
    for pattern, expected in (
        ("*/*.jsonl", ["real/x", "log", "in/y"]),
        ("**/*.jsonl", ["real/x", "log", "in/y"]),
        ("x/*.jsonl", ["real/x"]),
    ):
        found = list(sync().execute(Dataset.from_files(tmp_path / "in", pattern).load_jsonl()))
        assert sorted(found) == sorted(expected)
    hidden = Dataset.from_files(tmp_path / "in" / ".hidden[1]", "*.jsonl").load_jsonl()
    assert list(sync().execute(hidden)) == ["in/.hidden[1]"]


@pytest.fixture
def nobody() -> Iterator[Path]:
    """A folder of a user who is not root: root may list all folders."""
    with TemporaryDirectory() as folder:
        Path(folder).chmod(0o777)
        root = os.geteuid() == 0
        if root:
            os.seteuid(65534)
        try:
            yield Path(folder)
        finally:
            if root:
                os.seteuid(0)


def test_a_folder_that_may_not_be_listed_is_an_error(nobody: Path) -> None:
    for folder in ("a", "b"):
        (nobody / folder).mkdir()
        (nobody / folder / "1.jsonl").write_text("1\n")
    (nobody / "b").chmod(0)
    try:
        with pytest.raises(PipelineError, match=r"b cannot be listed \(Permission denied\)"):
            SyncBackend().plan(Dataset.from_files(nobody, "**/*.jsonl").load_jsonl())
        assert "1 shard" in str(SyncBackend().plan(Dataset.from_files(nobody, "a/*.jsonl").load_jsonl()))
    finally:
        (nobody / "b").chmod(0o755)


def test_a_run_does_not_write_what_it_reads(tmp_path: Path, sync: MakeBackend) -> None:
    (tmp_path / "0.jsonl").write_text("1\n")
    (tmp_path / "link").symlink_to(".")
    rows = Dataset.from_files(tmp_path, "[0-9].jsonl").load_jsonl()
    for out in (f"{tmp_path}/{{shard}}.jsonl", f"{tmp_path}/link/{{shard}}.jsonl"):
        with pytest.raises(PipelineError, match=r"0\.jsonl would be read and written"):
            list(sync().execute(rows.write_jsonl(out)))
    assert (tmp_path / "0.jsonl").read_text() == "1\n"
    write_dataset({"x": np.arange(4)}, tmp_path / "data", batch_size=2)
    samples = Dataset.from_dataset(open_dataset(tmp_path / "data"))
    for read in (samples, Dataset.from_list([f"{tmp_path}/data/"]).load_safetensors()):
        with pytest.raises(PipelineError, match="data would be read and written"):
            list(sync().execute(read.write_safetensors(tmp_path / "link" / "data", mode="overwrite")))


@pytest.mark.parametrize("suffix", ["jsonl", "parquet"])
def test_a_column_that_is_named_twice_is_one(suffix: str, tmp_path: Path, sync: MakeBackend) -> None:
    rows = Dataset.from_list([{"a": 1, "b": 2}])
    write = rows.write_jsonl if suffix == "jsonl" else rows.write_parquet
    written = Dataset.from_list(list(sync().execute(write(f"{tmp_path}/{{shard}}.{suffix}"))))
    for some in (written.load_file().select("a", "a"), written.load_file(["a", "a"]).filter(col("a") > 0)):
        assert list(sync().execute(some)) == [{"a": 1}]
    assert [row for path in sync().execute(written) for row in load_file(path, ["a", "a"])] == [{"a": 1}]


class Listed(MemoryFileSystem):  # type: ignore[misc]
    """Keeps what it has listed, as those of stores do, until it is told to look again."""

    protocol = "listed"
    listings: ClassVar[dict[str, Any]] = {}

    @classmethod
    def _strip_protocol(cls, path: str) -> str:
        return f"/{path.removeprefix('listed://').strip('/')}"

    def ls(self, path: str, detail: bool = True, **_: Any) -> Any:
        found = self.listings.get(path) or super().ls(path, True)
        self.listings[path] = found
        return found if detail else [one["name"] for one in found]

    def info(self, path: str, **_: Any) -> Any:
        known = self.listings.get(self._parent(path), [])
        return next((one for one in known if one["name"] == path), None) or super().info(path)

    def invalidate_cache(self, path: str | None = None) -> None:
        self.listings.clear()


def test_what_others_write_to_a_store_is_seen(tmp_path: Path, sync: MakeBackend) -> None:
    fsspec.register_implementation("listed", Listed, clobber=True)
    by_name = Dataset.from_list(["listed://seen/a.jsonl"])
    for rows in (Dataset.from_files("listed://seen", "*.jsonl"), Dataset.from_files("listed://seen/a.jsonl"), by_name):
        for number in (1, 22):
            fsspec.filesystem("memory").pipe("/seen/a.jsonl", f"{number}\n".encode())
            list(sync().execute(rows.load_jsonl().write_jsonl(f"{tmp_path}/out.jsonl")))
            assert (tmp_path / "out.jsonl").read_text() == f"{number}\n"
