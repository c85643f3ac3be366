"""`DatasetWriter` on S3, by s3fs: appends, overwrites, writers at the same time, and writers that die."""

import itertools
import json
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from functools import partial
from typing import Any

import numpy as np
import pytest
from s3fs import S3FileSystem  # type: ignore[import-untyped]

from filesystems import BUCKET, s3
from safetensors_spark import DuplicateKeyError, InvalidWriteError
from safetensors_spark._files.commit import lock, lock_record
from safetensors_spark.dataset import DatasetWriter, open_dataset, open_store, verify

# What changes something in the store.
CHANGES = {"put_object", "copy_object", "delete_object", "delete_objects", "complete_multipart_upload"}


@pytest.fixture(scope="module")
def options(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, Any]]:
    with s3(tmp_path_factory.mktemp("s3")) as server:
        keys = {"key": "test", "secret": "test"}
        yield {"endpoint_url": server.endpoint, "use_listings_cache": False, **keys}


class Place:
    """A directory in the store."""

    def __init__(self, name: str, options: dict[str, Any]) -> None:
        self.url, self.options = f"s3://{BUCKET}/{name}", options

    def write(self, first: int, rows: int = 3, **given: Any) -> None:
        numbers = np.arange(first, first + rows)
        batch = {"x": numbers} if "name_col" not in given else {"k": [f"{n:03d}" for n in numbers], "x": numbers}
        chosen = given if "name_col" in given else {"batch_size": 2} | given
        with DatasetWriter(self.url, generate_index=True, storage_options=self.options, **chosen) as writer:
            writer.write(batch)

    def rows(self) -> list[int]:
        try:
            return [int(n) for n in open_dataset(self.url, storage_options=self.options)[:]["x"]]
        except FileNotFoundError:
            return []

    def faults(self) -> list[Any]:
        return list(verify(self.url, storage_options=self.options).faults)

    def others(self) -> list[str]:
        """What is neither the manifest nor named by it."""
        store = S3FileSystem(**self.options)
        names = [name.removeprefix(f"{self.url[5:]}/") for name in store.find(self.url)]
        manifest = json.loads(store.cat_file(f"{self.url}/dataset_manifest.json"))
        named = {one["file"] for one in manifest["shards"] + manifest["index_parts"]} | {"dataset_manifest.json"}
        return sorted(set(names) - named)


@pytest.fixture
def place(options: dict[str, Any], request: pytest.FixtureRequest) -> Place:
    return Place(request.node.name, options)


def test_appends_and_overwrites(place: Place) -> None:
    place.write(0)
    place.write(10)
    assert (place.rows(), place.faults(), place.others()) == ([0, 1, 2, 10, 11, 12], [], [])
    place.write(20, mode="overwrite")
    assert (place.rows(), place.faults(), place.others()) == ([20, 21, 22], [], [])
    with pytest.raises(InvalidWriteError, match="is a dataset already"):
        place.write(30, mode="error")


def test_keys_are_found_in_the_index(place: Place) -> None:
    place.write(0, name_col="k")
    place.write(10, name_col="k")
    with pytest.raises(DuplicateKeyError, match="`011`"):
        place.write(11, name_col="k")
    store = open_store(place.url, storage_options=place.options)
    assert [int(store[key]) for key in store] == [0, 1, 2, 10, 11, 12]
    assert place.others() == []


def test_writers_at_the_same_time_are_all_counted(place: Place) -> None:
    with ThreadPoolExecutor(4) as threads:
        list(threads.map(lambda n: place.write(10 * n), range(8)))
    assert sorted(place.rows()) == sorted(10 * n + m for n in range(8) for m in range(3))
    assert (place.faults(), place.others()) == ([], [])


class DiedError(PermissionError):
    """No request succeeds any more, as if the process had died. Nobody tries again what is not permitted."""


def died(left: int, write: Callable[[], None], monkeypatch: pytest.MonkeyPatch) -> bool:
    """Whether a writer died, which does so before its change number `left` of the store."""
    real = S3FileSystem._call_s3
    counter = itertools.count(1)
    is_dead = False

    async def call(self: S3FileSystem, method: str, *args: Any, **kwargs: Any) -> Any:
        nonlocal is_dead
        # How many signs of life there are depends on how fast the machine is.
        if method in CHANGES and not str(kwargs.get("Key")).endswith(".alive"):
            is_dead = is_dead or next(counter) == left
        if is_dead:
            raise DiedError
        return await real(self, method, *args, **kwargs)

    with monkeypatch.context() as patch, suppress(OSError):
        patch.setattr(S3FileSystem, "_call_s3", call)
        write()
    return is_dead


@pytest.mark.parametrize("mode", ["append", "overwrite"])
def test_a_writer_that_died_has_written_all_or_nothing(
    place: Place, mode: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    # A lock is stale at once.
    monkeypatch.setattr(lock, "new_record", partial(lock_record.new_record, 200))
    old, new = [0, 1, 2], [100, 101, 102] if mode == "overwrite" else [0, 1, 2, 100, 101, 102]
    seen = []
    for step in itertools.count(1):
        at = Place(f"{place.url.rpartition('/')[2]}-{step}", place.options)
        at.write(0)
        is_dead = died(step, lambda at=at: at.write(100, mode=mode), monkeypatch)  # type: ignore[misc]
        found = at.rows()
        assert found in (old, new), step
        at.write(900)
        assert (at.rows(), at.faults()) == ([*found, 900, 901, 902], []), step
        # What only a week's age tells from files of a writer that lives.
        left = [one for one in at.others() if not one.endswith((".alive", ".tmp"))]
        assert [one for one in left if not one.startswith("_temporary/")] == [], step
        seen.append(found == new)
        if not is_dead:
            break
    assert seen == sorted(seen), "what was seen once stays"
    assert (seen[0], seen[-1], len(seen) > 10) == (False, True, True)
