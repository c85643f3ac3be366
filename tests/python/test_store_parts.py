"""Look-ups in an index of several parts."""

import shutil
from pathlib import Path

import fsspec
import pytest

import safetensors_spark as sts
from handmade import Handmade, new_part
from safetensors_spark.dataset import open_store


def test_a_key_in_two_parts_is_refused(tmp_path: Path) -> None:
    dataset, second = Handmade(tmp_path / "store"), new_part()
    entries = dataset.shard(a=[1.0], b=[2.0], c=[3.0])
    dataset.part(entries[:2])
    dataset.part(entries[1:], second)
    dataset.commit()
    url = f"memory://{tmp_path.name}/store"
    fsspec.filesystem("memory").put(f"{dataset.folder}/", f"/{tmp_path.name}/store/", recursive=True)
    shutil.rmtree(dataset.folder)
    store = open_store(url)
    assert [float(array[0]) for array in store.get_many(["c", "a"])] == [3.0, 1.0]
    with pytest.raises(sts.InvalidIndexError, match=f"{second} cannot be read: its entry for `b` is in _tensor_index"):
        store.get_many(["a", "b", "c"])
