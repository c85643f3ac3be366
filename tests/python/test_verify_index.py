"""`verify` on indexes: which are as a writer makes them, and what is wrong with the others."""

from pathlib import Path

import pytest

from handmade import Handmade, new_part
from safetensors_spark._files.look import look
from safetensors_spark._files.verify import verify_contents
from safetensors_spark.dataset import verify


@pytest.fixture
def dataset(tmp_path: Path) -> Handmade:
    return Handmade(tmp_path / "dataset")


def faults(dataset: Handmade) -> list[tuple[str, str]]:
    dataset.commit()
    return [(fault.file, fault.what) for fault in verify(dataset.folder).faults]


def test_an_empty_key_comes_first(dataset: Handmade) -> None:
    dataset.part(dataset.shard(**{"": [1.0], "a": [2.0]}))
    assert faults(dataset) == []


def test_batches_repeat_their_columns_in_each_shard(tmp_path: Path) -> None:
    dataset = Handmade(tmp_path / "batches", mode="batch")
    first, second, third = (dataset.shard(v=[float(number)]) for number in range(3))
    dataset.part(first + second)
    dataset.part(third, new_part())
    assert faults(dataset) == []
    dataset.part(second + first)
    ((file, what),) = faults(dataset)
    assert (file, what) == (
        "_tensor_index.parquet",
        "its entry for `v` does not come after the one before it",
    )


def test_a_key_in_two_parts_while_another_is_missing(dataset: Handmade) -> None:
    entries = dataset.shard(a=[1.0], b=[2.0])
    second = new_part()
    dataset.part(entries[:1])
    dataset.part(entries[:1], second)
    shard = dataset.shards[0]["file"]
    assert faults(dataset) == [
        (second, f"its entry for `a` in {shard} is the second one for that key"),
        (
            "_tensor_index.parquet",
            "the 2 parts of the index have 2 entries, and the shards have 2 tensors: 1 of them without a correct "
            f"entry, `b` of {shard} for one",
        ),
    ]


def test_a_key_in_two_shards(dataset: Handmade) -> None:
    dataset.part(dataset.shard(a=[1.0]) + dataset.shard(a=[2.0]))
    ((_, what),) = faults(dataset)
    assert what == f"its entry for `a` in {dataset.shards[1]['file']} is the second one for that key"


def test_an_entry_counts_once_however_wrong_it_is(dataset: Handmade) -> None:
    first, second = dataset.shard(a=[1.0], b=[2.0])
    dataset.part([second, first | {"data_start": 0}])
    whats = [what for _, what in faults(dataset)]
    assert whats[0] == "its entry for `a` does not come after the one before it"
    assert not any("entries are wrong" in what for what in whats)


def test_an_entry_without_a_key(dataset: Handmade) -> None:
    (entry,) = dataset.shard(a=[1.0])
    dataset.part([entry | {"tensor_key": None}])
    ((_, what), *_) = faults(dataset)
    assert "it has empty cells" in what


def test_a_part_that_an_append_has_merged_meanwhile(dataset: Handmade) -> None:
    second = new_part()
    dataset.part(dataset.shard(a=[1.0]))
    dataset.part(dataset.shard(b=[2.0]), second)
    dataset.commit()
    contents = look(dataset.folder)
    (dataset.folder / second).unlink()
    report = verify_contents(contents, 1, lambda _: None)
    assert (report.faults, report.notes) == ([], [f"{second} does not exist: readers ignore the index"])
