"""Stores at a URL: what they ask for, and what they find."""

import os
import pickle
from collections.abc import Callable
from pathlib import Path
from typing import Any

import fsspec
import pytest
from fsspec.implementations.asyn_wrapper import AsyncFileSystemWrapper
from fsspec.implementations.memory import MemoryFileSystem
from pyspark.sql import SparkSession

import safetensors_spark as sts
from official import load
from safetensors_spark.dataset import open_store
from spark_io import MANIFEST, Dataset, write
from stores import EVERY, assert_is, uploaded
from test_index import INDEX


class Requests(list[tuple[str, int]]):
    """File and number of bytes of each read of fsspec's memory."""

    def of(self, action: Callable[[], Any]) -> tuple[Any, list[tuple[str, int]]]:
        self.clear()
        return action(), list(self)


@pytest.fixture
def requests(monkeypatch: pytest.MonkeyPatch) -> Requests:
    asked = Requests()
    cat_file, open_file = MemoryFileSystem.cat_file, MemoryFileSystem.open

    def cat(self: MemoryFileSystem, path: str, *args: Any, **kwargs: Any) -> Any:
        with monkeypatch.context() as inner:
            inner.setattr(MemoryFileSystem, "open", open_file)
            found = cat_file(self, path, *args, **kwargs)
        asked.append((path.rpartition("/")[2], len(found)))
        return found

    def write_only(self: MemoryFileSystem, path: str, mode: str = "rb", *args: Any, **kwargs: Any) -> Any:
        assert mode == "wb", f"{path} is opened"
        return open_file(self, path, mode, *args, **kwargs)

    monkeypatch.setattr(MemoryFileSystem, "cat_file", cat)
    monkeypatch.setattr(MemoryFileSystem, "open", write_only)
    return asked


def test_a_remote_look_up_is_few_small_requests(spark: SparkSession, path: Path, requests: Requests) -> None:
    count, step = 200_000, 7919
    keys = [f"key-{number * step % count:08d}" for number in range(count)]
    df = spark.range(count, numPartitions=2).selectExpr(
        f"printf('key-%08d', id * {step} % {count}) AS k", "array(id) AS x"
    )
    write(df, path, name_col="k", generate_index="true")
    url = uploaded(path)
    store, opened = requests.of(lambda: open_store(url))
    assert [name for name, _ in opened] == [MANIFEST]
    array, cold = requests.of(lambda: store["key-00123456"])
    assert array.tolist() == [keys.index("key-00123456")]
    assert [name for name, _ in cold][:-1] in ([INDEX], [INDEX, INDEX])
    assert sum(size for _, size in cold) < 250_000
    assert cold[-1][1] == 8
    # What was read of the index is kept, and what lies together is read together.
    _, warm = requests.of(lambda: store["key-00123457"])
    assert [size for _, size in warm] == [8]
    arrays, batch = requests.of(lambda: store.get_many(keys[5100:5000:-1]))
    assert [array.tolist() for array in arrays] == [[number] for number in range(5100, 5000, -1)]
    assert len([name for name, _ in batch if name != INDEX]) == 1
    with pytest.raises(KeyError, match="'key-0012345' is not in memory://"):
        store["key-0012345"]
    assert len(store) == count


def test_a_remote_store_has_what_a_local_one_has(written: Dataset, requests: Requests) -> None:
    url = uploaded(written.path)
    assert_is(open_store(url), written)
    sent = pickle.loads(pickle.dumps(open_store(url)))
    assert sent["a__x"].tolist() == [1.0, 2.5]
    fsspec.filesystem("memory").rm(f"{url.removeprefix('memory:/')}/{INDEX}")
    assert_is(open_store(url), written)


def test_shards_that_shrink_or_vanish_while_they_are_read(written: Dataset) -> None:
    memory, url = fsspec.filesystem("memory"), uploaded(written.path)
    store = open_store(url)
    key = list(load(written.shards[2]))[-1]
    place = f"{url.removeprefix('memory:/')}/{written.shards[2].name}"
    memory.pipe(place, memory.cat(place)[:-1])
    with pytest.raises(
        sts.DamagedShardError, match=f"{written.shards[2].name} ends within the tensor `.*`: it was truncated"
    ):
        store.get_many(EVERY)
    memory.rm(place)
    with pytest.raises(FileNotFoundError, match=written.shards[2].name):
        store[key]


class Asynchronous(AsyncFileSystemWrapper):  # type: ignore[misc]
    """fsspec's memory, as the file systems of object stores are: with a thread of its own."""

    def __init__(self, **options: Any) -> None:
        super().__init__(MemoryFileSystem(), asynchronous=False, **options)

    protocol = "asynchronous"

    @classmethod
    def _strip_protocol(cls, path: str) -> str:
        return str(MemoryFileSystem._strip_protocol(path.replace("asynchronous://", "memory://")))


def test_asynchronous_file_systems_and_forks(written: Dataset) -> None:
    fsspec.register_implementation("asynchronous", Asynchronous, clobber=True)
    url = uploaded(written.path)
    store = open_store(url.replace("memory", "asynchronous"))
    assert_is(store, written)
    if (child := os.fork()) == 0:
        os._exit(0 if store["a__x"].tolist() == [1.0, 2.5] else 1)
    assert os.waitpid(child, 0)[1] == 0
    fsspec.filesystem("memory").rm(f"{url.removeprefix('memory:/')}/{written.shards[0].name}")
    with pytest.raises(FileNotFoundError, match=written.shards[0].name):
        store.get_many(EVERY)
