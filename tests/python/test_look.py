"""Opening a dataset while writers commit: what is opened is one commit, with all of its files."""

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import safetensors_spark as sts
from handmade import Handmade, new_part
from safetensors_spark._files.look import look
from safetensors_spark._files.storage import LocalFolder
from safetensors_spark._files.verify import verify_contents
from safetensors_spark.dataset import open_store
from safetensors_spark.dataset._tables import HeaderTable, PartsTable

Between = Callable[..., None]


@pytest.fixture
def dataset(tmp_path: Path) -> Handmade:
    made = Handmade(tmp_path / "store")
    made.part(made.shard(a=[1.0]))
    made.commit()
    return made


@pytest.fixture
def between(monkeypatch: pytest.MonkeyPatch) -> Between:
    """Runs an action after each of the first calls that list the folder or read its manifest."""

    def run(*actions: Callable[[], Any]) -> None:
        left = list(actions)

        def patch(method: str) -> None:
            call = getattr(LocalFolder, method)

            def patched(self: LocalFolder, *args: Any) -> Any:
                found = call(self, *args)
                if left:
                    left.pop(0)()
                return found

            monkeypatch.setattr(LocalFolder, method, patched)

        patch("names")
        patch("read")

    return run


def append(dataset: Handmade) -> None:
    dataset.part(dataset.shard(b=[2.0]), new_part())
    dataset.commit()


def overwrite(dataset: Handmade) -> None:
    old = [dataset.folder / shard["file"] for shard in dataset.shards]
    dataset.shards, dataset.parts = [], []
    dataset.part(dataset.shard(a=[3.0], b=[4.0]))
    dataset.commit()
    for shard in old:
        shard.unlink()


def append_and_merge(dataset: Handmade) -> None:
    """Replaces the one index part by one of another length."""
    more = dataset.shard(**{f"k{number:04}": [1.0] for number in range(500)})
    first = dataset.entries(0)
    dataset.part(first + more)
    dataset.commit()


@pytest.mark.parametrize("commit", [append, overwrite, append_and_merge])
def test_a_commit_while_a_dataset_is_opened(
    dataset: Handmade, between: Between, commit: Callable[[Handmade], None]
) -> None:
    between(lambda: commit(dataset))
    contents = look(dataset.folder)
    assert [contents.length(shard) for shard in contents.shards] == [shard.bytes for shard in contents.shards]
    assert all(part.file in contents.names for part in contents.manifest.index_parts)  # type: ignore[union-attr]
    assert verify_contents(contents, 1, lambda _: None).faults == []


def test_an_append_while_a_store_is_opened_leaves_it_the_index(dataset: Handmade, between: Between) -> None:
    append(dataset)
    between(lambda: append(dataset))
    store = open_store(dataset.folder)
    assert isinstance(store._table, PartsTable)
    assert float(store["a"][0]) == 1.0


@pytest.mark.parametrize("with_manifest", [True, False])
def test_an_index_that_is_replaced_before_the_first_look_up(dataset: Handmade, with_manifest: bool) -> None:
    store, before = open_store(dataset.folder), (dataset.folder / "dataset_manifest.json").read_bytes()
    append_and_merge(dataset)
    if not with_manifest:
        (dataset.folder / "dataset_manifest.json").write_bytes(before)
    assert {key: float(array[0]) for key, array in store.items()} == {"a": 1.0}
    assert isinstance(store._table, HeaderTable)


def test_a_dataset_that_changes_all_the_time(dataset: Handmade, between: Between) -> None:
    between(*[lambda: overwrite(dataset)] * 20)
    with pytest.raises(sts.DatasetChangedError, match=f"{dataset.folder} changes faster than it can be listed"):
        look(dataset.folder)


def test_a_lost_shard_is_found_when_it_is_needed(dataset: Handmade) -> None:
    (dataset.folder / dataset.shards[0]["file"]).unlink()
    contents = look(dataset.folder)
    assert [contents.length(shard) for shard in contents.shards] == [None]


def test_files_that_vanish_while_a_folder_is_listed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("_commit.lock", "a.safetensors"):
        (tmp_path / name).write_bytes(b"12")
    scandir = os.scandir

    def scan(path: Path) -> Any:
        entries = scandir(path)
        found = list(entries)
        (tmp_path / "_commit.lock").unlink()
        return _Entries(found)

    monkeypatch.setattr(os, "scandir", scan)
    assert LocalFolder(tmp_path).names() == {"a.safetensors": 2}


class _Entries(list[os.DirEntry[str]]):
    """A listing that has been read, as `os.scandir` gives one."""

    def __enter__(self) -> "_Entries":
        return self

    def __exit__(self, *_: object) -> None:
        pass
