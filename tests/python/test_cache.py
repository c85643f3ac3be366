"""The cache of remote shards: what is kept, what is deleted, and who may use it."""

import os
import re
import shutil
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from filelock import FileLock

import safetensors_spark as sts
from handmade import Handmade, samples_by_three
from http_store import HttpStore, serving
from safetensors_spark._commands.cli import main
from safetensors_spark._files.cache import ENVIRONMENT, Cache, default_directory
from safetensors_spark.dataset import Dataset, open_dataset

VALUES = [float(number) for number in range(24)]


@pytest.fixture
def made(tmp_path: Path) -> Handmade:
    """Eight shards of three samples."""
    return samples_by_three(tmp_path / "data", VALUES)


@pytest.fixture
def http(made: Handmade) -> Iterator[HttpStore]:
    with serving(made.folder) as store:
        yield store


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv(ENVIRONMENT, str(tmp_path / "cache"))
    return tmp_path / "cache"


@pytest.fixture
def shard_bytes(made: Handmade) -> int:
    return int(made.shards[0]["bytes"])


def cached(cache: Path) -> list[str]:
    """The files of the shards, as the dataset calls them, in the order of their use."""
    return [one.path.name.partition("-")[2] for one in Cache(cache, 0).shards()]


def downloads(http: HttpStore, ds: Dataset) -> list[int]:
    """How often each shard was asked for."""
    return [http.requests["GET", shard.file] for shard in ds.shards]


def test_a_file_that_was_cut_off_is_downloaded_again(http: HttpStore, cache: Path) -> None:
    assert open_dataset(http.url)[:]["v"].tolist() == VALUES
    os.truncate(Cache(cache, 0).shards()[0].path, 50)
    ds = open_dataset(http.url)
    assert ds[:]["v"].tolist() == VALUES
    assert sorted(downloads(http, ds)) == [1] * 7 + [2]
    assert {one.bytes for one in Cache(cache, 0).shards()} == {ds.shards[0].bytes}


def test_a_shard_that_was_rewritten_is_downloaded_again(made: Handmade, http: HttpStore, cache: Path) -> None:
    """One of the same name and length."""
    assert open_dataset(http.url)[0]["v"] == 0
    name = made.shards[0]["file"]
    made.shard(v=[7.0, 8.0, 9.0])
    (made.folder / made.shards[-1]["file"]).replace(made.folder / name)
    made.shards[0] = {**made.shards.pop(), "file": name}
    made.commit()
    assert open_dataset(http.url)[0]["v"] == 7
    assert len(cached(cache)) == 2


@pytest.mark.parametrize("read", [lambda ds: list(ds), lambda ds: list(ds.batches(4)), lambda ds: ds[:]])
def test_a_cache_of_one_shard_downloads_each_shard_once(
    http: HttpStore, cache: Path, shard_bytes: int, read: Callable[[Dataset], Any]
) -> None:
    ds = open_dataset(http.url, cache_bytes=shard_bytes)
    read(ds)
    assert downloads(http, ds) == [1] * 8
    assert len(cached(cache)) == 1


def test_what_was_used_longest_ago_is_deleted(http: HttpStore, cache: Path, shard_bytes: int) -> None:
    ds = open_dataset(http.url, cache_bytes=3 * shard_bytes)
    for number in (0, 3, 6):
        ds[number]
    names = [shard.file for shard in ds.shards]
    for age, name in enumerate(names[:3]):
        (path,) = cache.glob(f"*/*{name}")
        os.utime(path, (age, age))
    # A file that is used again, by another reader.
    open_dataset(http.url)[0]
    assert cached(cache) == [names[1], names[2], names[0]]
    ds[9]
    assert cached(cache) == [names[2], names[0], names[3]]


def test_the_newest_shard_stays_when_the_limit_is_below_it(http: HttpStore, cache: Path) -> None:
    for number in (0, 3):
        open_dataset(http.url, cache_bytes=1)[number]
    ds = open_dataset(http.url)
    assert cached(cache) == [ds.shards[1].file]
    assert ds[3]["v"] == 3
    assert downloads(http, ds)[:2] == [1, 1]


def test_parts_count_and_those_of_dead_processes_are_deleted(
    http: HttpStore, cache: Path, shard_bytes: int, tmp_path: Path
) -> None:
    # Locks go by the first two digits of a key. A lock that is held here must not be one of a shard.
    open_dataset(http.url, cache_dir=tmp_path / "other")[:]
    of_shards = {one.path.name[:2] for one in Cache(tmp_path / "other", 0).shards()}
    held, free = [digits for digits in (f"{number:02x}" for number in range(256)) if digits not in of_shards][:2]
    ds = open_dataset(http.url, cache_bytes=3 * shard_bytes)
    ds[0], ds[3]
    dead, alive = cache / ".parts" / f"{free * 10}-dead", cache / ".parts" / f"{held * 10}-alive"
    for part in (dead, alive):
        part.write_bytes(b"x" * 2 * shard_bytes)
    with FileLock(cache / ".locks" / held, thread_local=False):
        thread = threading.Thread(target=lambda: ds[6])
        thread.start()
        thread.join()
    assert (dead.exists(), alive.exists()) == (False, True)
    assert cached(cache) == [ds.shards[2].file]


def test_files_that_the_cache_did_not_make_stay(http: HttpStore, cache: Path, shard_bytes: int) -> None:
    """The directory may be one of the user's."""
    ours = [cache / "models" / "0.safetensors", cache / "models" / "deep" / "1.safetensors", cache / ".parts" / "mine"]
    for file in ours:
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(bytes(3 * shard_bytes))
    ds = open_dataset(http.url, cache_bytes=2 * shard_bytes)
    assert ds[:]["v"].tolist() == VALUES
    assert len(cached(cache)) <= 2
    assert main(["cache", "clear"]) == 0
    assert cached(cache) == []
    assert all(file.stat().st_size == 3 * shard_bytes for file in ours)


def test_the_log_tells_of_each_download(http: HttpStore, cache: Path, caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level("INFO", "safetensors_spark"):
        for _ in range(2):
            ds = open_dataset(http.url)
            ds[:6]
    said = [record.message.partition(": ")[0] for record in caplog.records if record.name == "safetensors_spark"]
    assert said == [f"downloaded {http.url}/{shard.file}" for shard in ds.shards[:2]]


def test_all_files_are_looked_at_only_now_and_then(
    http: HttpStore, cache: Path, shard_bytes: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It takes long where there are many: first, and then whenever one in a hundred of the limit came."""
    looked: list[int] = []
    make_room = Cache.make_room

    def noted(self: Cache, limit: int, newest: Path) -> None:
        looked.append(len(cached(cache)))
        make_room(self, limit, newest)

    monkeypatch.setattr(Cache, "make_room", noted)
    assert open_dataset(http.url, cache_bytes=300 * shard_bytes)[:]["v"].tolist() == VALUES
    assert looked == [1, 4, 7]
    (cache / "a file").touch()
    assert len(cached(cache)) == 8


def test_a_download_that_fails_leaves_nothing(http: HttpStore, made: Handmade, cache: Path) -> None:
    ds = open_dataset(http.url)
    path = made.folder / ds.shards[0].file
    path.write_bytes(path.read_bytes()[:-1] + b"\1")
    with pytest.raises(sts.DamagedShardError, match=f"{path.name} changed during the download or in the store"):
        ds[0]
    assert [file for file in cache.rglob("*") if file.is_file() and file.parent.name != ".locks"] == []


def test_bytes_are_on_the_disk_before_a_file_has_its_name(
    http: HttpStore, cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    synced, fsync = set(), os.fsync

    def recorded(number: int) -> None:
        synced.add((os.fstat(number).st_ino, len(cached(cache))))
        fsync(number)

    monkeypatch.setattr(os, "fsync", recorded)
    open_dataset(http.url)[0]
    (shard,) = Cache(cache, 0).shards()
    assert synced == {(shard.path.stat().st_ino, 0)}


def test_what_is_made_in_a_shared_cache_has_its_permissions(http: HttpStore, cache: Path) -> None:
    cache.mkdir()
    cache.chmod(0o2770)
    open_dataset(http.url)[0]
    modes = {path.is_dir(): path.stat().st_mode & 0o7777 for path in cache.rglob("*")}
    assert modes == {True: 0o2770, False: 0o660}


@pytest.mark.skipif(not hasattr(os, "fork") or os.geteuid() != 0, reason="only root can be another user")
def test_two_users_share_a_cache(http: HttpStore, tmp_path_factory: pytest.TempPathFactory, shard_bytes: int) -> None:
    cache = tmp_path_factory.mktemp("shared")
    for directory in (cache, *cache.parents[:2]):
        directory.chmod(0o777)
    first = open_dataset(http.url, cache_dir=cache, cache_bytes=2 * shard_bytes)
    assert first[:4]["v"].tolist() == VALUES[:4]
    if (child := os.fork()) == 0:
        found = None
        try:
            os.setuid(65534)
            found = open_dataset(http.url, cache_dir=cache, cache_bytes=2 * shard_bytes)[:9]["v"].tolist()
        finally:
            os._exit(0 if found == VALUES[:9] else 1)
    assert os.waitpid(child, 0)[1] == 0
    assert downloads(http, first)[:3] == [1, 1, 1]
    assert len(cached(cache)) == 2


READER = """
import logging, sys
from safetensors_spark.dataset import open_dataset
logging.basicConfig(level="DEBUG", stream=sys.stdout, format="%(name)s: %(message)s")
print("read", open_dataset(sys.argv[1], cache_dir=sys.argv[2])[0]["v"], flush=True)
"""


# Mounts its second argument read-only over itself.
_NAMESPACE = ["unshare", "--mount", "--map-root-user"]
_READ_ONLY = [*_NAMESPACE, "sh", "-c", 'mount --bind "$0" "$0" && mount -o remount,bind,ro "$0" && exec "$@"']


def _can_mount() -> bool:
    return bool(shutil.which("unshare")) and subprocess.run([*_NAMESPACE, "true"], check=False).returncode == 0


@pytest.mark.skipif(not _can_mount(), reason="only user namespaces let anybody mount")
def test_a_cache_that_is_mounted_read_only(http: HttpStore, cache: Path) -> None:
    assert open_dataset(http.url)[0]["v"] == 0
    read = [*_READ_ONLY, str(cache), sys.executable, "-c", READER, http.url, str(cache)]
    assert subprocess.run(read, capture_output=True, text=True, check=True).stdout.endswith("read 0.0\n")
    os.truncate(Cache(cache, 0).shards()[0].path, 50)
    failed = subprocess.run(read, capture_output=True, text=True, check=False)
    assert re.search(
        r"SafetensorsSparkError: the cache .* cannot be used \(it may not be written to\): give another directory",
        failed.stderr,
    )


def test_processes_wait_for_a_download_and_do_without_one_that_was_killed(http: HttpStore, cache: Path) -> None:
    def reader() -> subprocess.Popen[str]:
        return subprocess.Popen([sys.executable, "-c", READER, http.url, str(cache)], stdout=subprocess.PIPE, text=True)

    def line(process: subprocess.Popen[str], pattern: str) -> str:
        """The next line that matches."""
        assert process.stdout is not None
        return next(one for one in process.stdout if re.search(pattern, one))

    name = open_dataset(http.url).shards[0].file
    http.holds = name
    killed = reader()
    assert http.holding.wait(60)
    others = [reader(), reader()]
    assert all("not acquired" in line(one, "filelock: .*not acquired|^read") for one in others)
    killed.kill()
    killed.communicate()
    assert [line(one, "^read") for one in others] == ["read 0.0\n"] * 2
    http.held.set()
    assert [one.wait(60) for one in others] == [0, 0]
    assert http.requests["GET", name] == 2
    assert cached(cache) == [name]
    assert list(cache.glob(".parts/*")) == []


def test_where_the_cache_is(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv(ENVIRONMENT, str(tmp_path / "mine"))
    assert default_directory() == tmp_path / "mine"
    monkeypatch.delenv(ENVIRONMENT)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    if sys.platform == "linux":
        assert default_directory() == tmp_path / "safetensors-spark"


def test_the_command_lists_and_clears(http: HttpStore, cache: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["cache", "list"]) == 0
    assert f"{cache} is empty" in capsys.readouterr().out
    ds = open_dataset(http.url)
    ds[:6]
    assert main(["cache", "list"]) == 0
    printed = capsys.readouterr().out
    assert re.search(rf"{http.url}\s+2\s+{sum(one.bytes for one in Cache(cache, 0).shards()):,}", printed)
    assert main(["cache", "clear"]) == 0
    assert "Deleted 2 shards" in capsys.readouterr().out
    assert cached(cache) == []
    # What was open stays good.
    assert ds[:6]["v"].tolist() == VALUES[:6]
