"""Sources of `safetensors-spark convert` that are damaged, cut off, or do not say one thing: errors, and no dataset."""

import io
import json
import os
import subprocess
import sys
import tarfile
from pathlib import Path

import numpy as np
import pyarrow as pa  # type: ignore[import-untyped]
import pyarrow.parquet as pq  # type: ignore[import-untyped]
import pytest

from command import run
from safetensors_spark import InvalidWriteError
from safetensors_spark._convert.convert import convert, source_of
from safetensors_spark._convert.to_parquet import to_parquet
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
    assert to_parquet(path, tmp_path / "x.parquet", 1) == 10
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


def tar(path: Path, members: dict[str, bytes], **links: str) -> Path:
    with tarfile.open(path, "w") as out:
        for name, content in members.items():
            about = tarfile.TarInfo(name)
            about.size = len(content)
            out.addfile(about, io.BytesIO(content))
        for name, target in links.items():
            about = tarfile.TarInfo(name.replace("_", "."))
            about.type, about.linkname = tarfile.LNKTYPE, target
            out.addfile(about)
    return path


def test_tar_files_that_are_damaged_or_cut_off(tmp_path: Path) -> None:
    path = tar(tmp_path / "a.tar", {"0.txt": b"zero", "1.txt": b"one"})
    whole = path.read_bytes()
    assert list(converted(path)["txt"]) == ["zero", "one"]
    for name, content, words in (
        ("boundary", whole[:1024], "truncated, or has no end"),
        ("header", whole[:1024] + b"X" * 512 + whole[1536:], "a header is damaged"),
        ("middle", whole[:1300], "truncated"),
        ("two", whole + whole, "something follows its end"),
    ):
        (tmp_path / f"{name}.tar").write_bytes(content)
        assert words in refused(tmp_path / f"{name}.tar")


def test_members_of_a_tar_that_are_links(tmp_path: Path) -> None:
    path = tar(tmp_path / "a.tar", {"0.txt": b"same"}, **{"1_txt": "0.txt"})
    assert list(converted(path)["txt"]) == ["same", "same"]
    assert "nothing" in refused(tar(tmp_path / "b.tar", {"0.txt": b"same"}, **{"1_txt": "nothing"}))


def test_members_of_a_tar_that_are_there_twice(tmp_path: Path) -> None:
    assert "0.TXT is the second `txt` of `0`" in refused(tar(tmp_path / "a.tar", {"0.txt": b"a", "0.TXT": b"b"}))
    assert "0.__key__ has a name that samples have" in refused(
        tar(tmp_path / "b.tar", {"0.txt": b"a", "0.__key__": b"b"})
    )


def mds(folder: Path, samples: list[bytes], count: int | None = None, encoding: str = "str") -> Path:
    """A shard of one column whose cells differ in length."""
    folder.mkdir()
    cells = [np.array([len(one)], "<u4").tobytes() + one for one in samples]
    first = 4 * (len(samples) + 2)
    offsets = first + np.cumsum([0, *map(len, cells)])
    content = np.array([len(samples), *offsets], "<u4").tobytes() + b"".join(cells)
    (folder / "shard.mds").write_bytes(content)
    shard = {
        "format": "mds", "column_names": ["x"], "column_encodings": [encoding], "column_sizes": [None],
        "samples": len(samples) if count is None else count, "compression": None,
        "raw_data": {"basename": "shard.mds", "bytes": len(content)},
    }  # fmt: skip
    (folder / "index.json").write_text(json.dumps({"shards": [shard]}))
    return folder


def test_mds_that_is_not_what_its_index_says(tmp_path: Path) -> None:
    assert list(converted(mds(tmp_path / "right", [b"one", b"two two"]))["x"]) == ["one", "two two"]
    assert "it has 1 samples" in refused(mds(tmp_path / "count", [b"one"], 2))
    for number, length in enumerate((0, 3, 10, -6)):
        folder = mds(tmp_path / f"cut{number}", [b"one", b"two"])
        cut(folder / "shard.mds", length)
        assert "shard.mds cannot be read" in refused(folder)
    for number, (at, value) in enumerate(((16, 2), (16, 9), (4, 7), (8, 255))):
        folder = mds(tmp_path / f"wrong{number}", [b"one", b"two"])
        content = bytearray((folder / "shard.mds").read_bytes())
        content[at] = value
        (folder / "shard.mds").write_bytes(content)
        assert "shard.mds cannot be read" in refused(folder)
    assert "cannot be read" in refused(mds(tmp_path / "any", [b"12345678"], encoding="ndarray:int32:-1"))


def test_megatron_whose_index_does_not_fit(tmp_path: Path) -> None:
    def indexed(name: str, lengths: list[int], pointers: list[int]) -> Path:
        np.array([1, 2, 3], "<u2").tofile(tmp_path / f"{name}.bin")
        count = len(lengths)
        head = b"MMIDIDX\0\0" + np.array([1], "<u8").tobytes() + bytes([8]) + np.array([count, count], "<u8").tobytes()
        tables = np.array(lengths, "<i4").tobytes() + np.array(pointers, "<i8").tobytes()
        (tmp_path / f"{name}.idx").write_bytes(head + tables)
        return tmp_path / f"{name}.bin"

    assert [row.tolist() for row in converted(indexed("right", [2, 1], [0, 4]))["tokens"]] == [[1, 2], [3]]
    for name, lengths, pointers in (
        ("part", [2, 1], [0, 3]),
        ("beyond", [2, 2], [0, 4]),
        ("before", [2, 1], [0, -2]),
        ("less", [2, -1], [0, 4]),
    ):
        assert "sequence 1 has" in refused(indexed(name, lengths, pointers))
    path = indexed("cut", [2, 1], [0, 4])
    cut(path.with_suffix(".idx"), -4)
    assert "cut.idx is truncated" in refused(path)


def test_columns_that_the_source_has_not(tmp_path: Path) -> None:
    pq.write_table(pa.table({"id": [1, 2], "x": [1.0, 2.0]}), tmp_path / "t.parquet")
    convert_to_a = ("convert", str(tmp_path / "t.parquet"), str(tmp_path / "a"))
    assert run(*convert_to_a).returncode == 0
    for columns in ("idd", "id,idd"):
        done = run(*convert_to_a, "--columns", columns, "--mode", "overwrite")
        assert done.returncode == 2
        assert "has no column `idd`" in done.stderr
    assert len(open_dataset(tmp_path / "a")) == 2


def peak(*arguments: str) -> int:
    """How many megabytes the command has used at most."""
    code = (
        "import resource, sys\nfrom safetensors_spark._commands.cli import main\nmain(sys.argv[1:])\n"
        "print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024)"
    )
    done = subprocess.run([sys.executable, "-c", code, *arguments, "--processes", "1"], capture_output=True, text=True)
    return int(done.stdout.split()[-1])


@pytest.mark.skipif(sys.platform != "linux", reason="ru_maxrss has other units")
def test_small_files_of_large_rows_take_bounded_memory(tmp_path: Path) -> None:
    """A file of some bytes, whose dictionary has one value of 4 MiB for all rows."""
    values = pa.DictionaryArray.from_arrays(pa.array(np.zeros(100, np.int32)), pa.array([b"a" * (4 << 20)]))
    pq.write_table(pa.table({"x": values}), tmp_path / "x.parquet", compression="zstd")
    small = tmp_path / "small.parquet"
    pq.write_table(pa.table({"x": values[:1]}), small)
    least = peak("convert", str(small), str(tmp_path / "small"))
    assert peak("convert", str(tmp_path / "x.parquet"), str(tmp_path / "d"), "--shard-size", "50") < least + 250
    assert open_dataset(tmp_path / "d").shards[0].samples == 11


def test_what_would_not_fit_into_memory_is_refused(tmp_path: Path) -> None:
    header = io.BytesIO()
    np.lib.format.write_array_header_1_0(header, {"descr": "<f8", "fortran_order": False, "shape": (1 << 45,)})
    assert "0.npy is no .npy" in refused(tar(tmp_path / "npy.tar", {"0.npy": header.getvalue()}))
    with tarfile.open(tmp_path / "large.tar", "w") as out:
        about = tarfile.TarInfo("0.bin")
        about.size = 3 << 30
        out.addfile(about)
    os.truncate(tmp_path / "large.tar", 512 + about.size + 1024)
    assert "the sample of 0.bin has more than 2,147,483,647 bytes" in refused(tmp_path / "large.tar")
    folder = mds(tmp_path / "mds", [b"one"])
    index = json.loads((folder / "index.json").read_text())
    index["shards"][0]["raw_data"]["bytes"] = 1 << 50
    (folder / "index.json").write_text(json.dumps(index))
    assert "shard.mds has 1,125,899,906,842,624 bytes, and shards have less than 4 GiB" in refused(folder)
