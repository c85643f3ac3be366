"""Files without a manifest that others take the place of: what is read is what was there when the folder was opened."""

import os
import socket
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import fsspec
import numpy as np
import pytest
from safetensors.numpy import save, save_file

import safetensors_spark as sts
from handmade import samples_by_three
from http_store import serving
from safetensors_spark._commands.cli import main
from safetensors_spark.dataset import inspect, open_dataset, open_store, verify

READS: dict[str, Callable[[str], Callable[[], Any]]] = {
    "samples": lambda path: partial(next, iter(open_dataset(path))),
    "batches": lambda path: partial(list, open_dataset(path).batches(10)),
    "keys": lambda path: partial(open_store(path).__getitem__, "n"),
}


def content(value: int) -> bytes:
    return save({"n": np.full(20_000, value)})


def replaced(path: Path, value: int, how: str) -> None:
    # Older kernels count time in steps of some milliseconds.
    time.sleep(0.02)
    if how == "in place":
        path.write_bytes(content(value))
        return
    other = path.with_name("other")
    other.write_bytes(content(value))
    if how == "with the old times":
        before = path.stat()
        os.utime(other, ns=(before.st_atime_ns, before.st_mtime_ns))
    other.replace(path)


@pytest.mark.parametrize("how", ["by another name", "with the old times", "in place"])
@pytest.mark.parametrize("read", READS)
def test_a_file_that_is_replaced_before_it_is_read(tmp_path: Path, read: str, how: str) -> None:
    path = tmp_path / "a.safetensors"
    path.write_bytes(content(1))
    for opened in (tmp_path, path):
        action = READS[read](str(opened))
        replaced(path, 2, how)
        said = f"^{path} has been replaced since {opened} was opened, or written to: open it again"
        with pytest.raises(sts.DatasetChangedError, match=said):
            action()
    assert open_store(path)["n"][0] == 2


def test_files_that_are_touched_by_nobody_but_backups(tmp_path: Path) -> None:
    path = tmp_path / "a.safetensors"
    path.write_bytes(content(1))
    ds = open_dataset(tmp_path)
    path.chmod(0o400)
    (tmp_path / "backup").hardlink_to(path)
    assert ds[0]["n"] == 1
    # What is mapped stays as it was.
    replaced(path, 2, "by another name")
    assert ds[1]["n"] == 1


@pytest.mark.parametrize("read", READS)
def test_a_remote_file_that_is_replaced_before_it_is_read(tmp_path: Path, read: str) -> None:
    memory, url = fsspec.filesystem("memory"), f"memory:/{tmp_path}"
    (tmp_path / "local").mkdir()
    for opened in (url, f"{url}/a.safetensors"):
        memory.pipe(f"{tmp_path}/a.safetensors", content(1))
        action = READS[read](opened)
        memory.pipe(f"{tmp_path}/a.safetensors", content(2))
        with pytest.raises(sts.DatasetChangedError, match=r"a\.safetensors has been replaced since"):
            action()


def test_remote_files_that_nobody_replaces(tmp_path: Path) -> None:
    """The memory's listing tells times as numbers, and of one file as a date."""
    memory = fsspec.filesystem("memory")
    for value in (1, 2):
        memory.pipe(f"{tmp_path}/{value}.safetensors", content(value))
    assert set(open_dataset(f"memory:/{tmp_path}", cache_dir=tmp_path / "cache")["n"].tolist()) == {1, 2}


@pytest.mark.parametrize("read", READS)
def test_remote_files_that_nobody_touches(tmp_path: Path, read: str) -> None:
    memory, url = fsspec.filesystem("memory"), f"memory:/{tmp_path}"
    memory.pipe(f"{tmp_path}/a.safetensors", content(1))
    # A store has each key once.
    other = content(1).replace(b'"n"', b'"m"') if read == "keys" else content(1)
    memory.pipe(f"{tmp_path}/b.safetensors", other)
    READS[read](url)()


@pytest.mark.parametrize("read", READS)
def test_a_file_at_a_server_that_is_replaced_before_it_is_read(
    tmp_path: Path, read: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SAFETENSORS_SPARK_CACHE", str(tmp_path / "cache"))
    (tmp_path / "data").mkdir()
    path = tmp_path / "data" / "a.safetensors"
    path.write_bytes(content(1))
    with serving(path.parent) as http:
        action = READS[read](http.url)
        path.write_bytes(content(2))
        with pytest.raises(sts.DatasetChangedError, match=r"a\.safetensors has been replaced since"):
            action()


def test_links_to_nothing_and_folders_named_like_files_are_left_out_with_a_warning(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    save_file({"x": np.arange(3)}, tmp_path / "a.safetensors")
    (tmp_path / "b.safetensors").symlink_to("blobs/b")
    (tmp_path / "c.safetensors").mkdir()
    (tmp_path / "d.safetensors").symlink_to("d.safetensors")
    (tmp_path / "_e.safetensors").symlink_to("e")
    (tmp_path / "link.safetensors").symlink_to("a.safetensors")
    assert len(open_dataset(tmp_path)) == 6
    assert caplog.messages == [
        f"{tmp_path}/b.safetensors is left out: it is a broken link",
        f"{tmp_path}/c.safetensors is left out: it is a folder",
        f"{tmp_path}/d.safetensors is left out: it is a broken link",
    ]


def pipe(path: Path) -> None:
    os.mkfifo(path)


def unix_socket(path: Path) -> None:
    with socket.socket(socket.AF_UNIX) as made:
        made.bind(str(path))


@pytest.mark.parametrize("make", [pipe, unix_socket])
def test_what_is_no_regular_file(
    make: Callable[[Path], None], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    # The name of a socket has no more than 108 characters.
    monkeypatch.chdir(tmp_path)
    save_file({"x": np.arange(3)}, "a.safetensors")
    make(Path("b.safetensors"))
    said = f"{tmp_path}/b.safetensors is not a regular file. Remove it, or read another path."
    for action in (open_dataset, open_store, inspect, verify):
        for path in (tmp_path, "b.safetensors"):
            with pytest.raises(sts.SafetensorsSparkError, match=f"^{said}$"):
                action(path)
    assert main(["verify", "b.safetensors"]) == 2
    assert capsys.readouterr().err == f"safetensors-spark: {said}\n"


@pytest.mark.parametrize("replace", [Path.mkdir, pipe])
def test_a_shard_that_becomes_something_else_than_a_file(replace: Callable[[Path], None], tmp_path: Path) -> None:
    samples_by_three(tmp_path, range(6))
    ds = open_dataset(tmp_path)
    second = tmp_path / ds.shards[1].file
    second.unlink()
    replace(second)
    assert ds[0]["v"] == 0
    with pytest.raises(sts.DamagedShardError, match=f"{second.name} is not a file any more. Restore it"):
        ds[3]
