"""Folders named `key=value` as one dataset."""

import logging
import pickle
from pathlib import Path
from typing import Any

import fsspec
import numpy as np
import pytest
from safetensors.numpy import save_file

from safetensors_spark import SafetensorsSparkError
from safetensors_spark.dataset import DatasetWriter, inspect, mix, open_dataset, open_store, verify, write_dataset

NULL = "__HIVE_DEFAULT_PARTITION__"


def events(root: Path, *folders: str, rows: int = 10) -> Path:
    """A dataset in each folder, whose `x` counts the rows of all, with tokens of different lengths and text."""
    for number, folder in enumerate(folders):
        numbers = np.arange(number * rows, (number + 1) * rows)
        batch = {
            "x": numbers.astype(np.float32)[:, None] * np.ones(3, np.float32),
            "tokens": [np.arange(each % 4) for each in numbers],
            "text": [f"row {each}" for each in numbers],
        }
        write_dataset([batch], root / folder, batch_size=4, ragged=["tokens"])
    return root


def files(root: Path, *folders: str) -> Path:
    """A file with a sample in each folder, without a manifest."""
    for number, folder in enumerate(folders):
        (root / folder).mkdir(parents=True)
        save_file({"x": np.array([number], np.uint8)}, root / folder / "file.safetensors")
    return root


DAYS = [f"day=2026-11-2{day}/lang={lang}" for day in (0, 1) for lang in ("de", "en")]


def test_partitions_are_one_dataset_with_their_keys_as_columns(tmp_path: Path) -> None:
    dataset = open_dataset(events(tmp_path / "events", *DAYS))
    assert [column.name for column in dataset.columns] == ["x", "tokens", "text", "day", "lang"]
    assert (len(dataset), len(dataset.shards), dataset.manifest) == (40, 12, None)
    sample = dataset[25]
    assert (sample["x"].tolist(), sample["tokens"].tolist(), sample["text"]) == ([25, 25, 25], [0], "row 25")
    assert (sample["day"], sample["lang"]) == (np.datetime64("2026-11-21"), "de")
    assert list(dataset["lang"]) == ["de"] * 10 + ["en"] * 10 + ["de"] * 10 + ["en"] * 10
    assert dataset["day"].tolist() == np.repeat(np.array(["2026-11-20", "2026-11-21"], "M8[D]"), 20).tolist()
    for batch in (dataset[8:12], dataset.take([8, 9, 10, 11]), dataset.take(np.arange(40) // 4 == 2)):
        assert (batch["x"][:, 0].tolist(), list(batch["lang"])) == ([8, 9, 10, 11], ["de", "de", "en", "en"])
    assert [each["x"][0] for each in dataset] == list(range(40))
    assert "40 samples of x F32 [3], tokens I64 [] (ragged), text text, day I32 [] (date), lang text" in repr(dataset)


VALUES = {
    "ints": (["1", "-2", "007", "+5"], [1, -2, 7, 5], "int32"),
    "longs": (["1", "3000000000"], [1, 3000000000], "int64"),
    "longs_with_zeros": (["0" * 200 + "1", "3000000000"], [1, 3000000000], "int64"),
    "least_long": (["-9223372036854775808"], [-(2**63)], "int64"),
    "wider_than_longs": (["1", "12345678901234567890"], ["1", "12345678901234567890"], None),
    "doubles": (["1.5", "2", "-.5", "1e3"], [1.5, 2, -0.5, 1000], "float64"),
    "doubles_and_longs": (["1.5", "3000000000"], ["1.5", "3000000000"], None),
    "dates": (["2026-11-21", "2024-02-29"], ["2026-11-21", "2024-02-29"], "M8[D]"),
    "no_dates": (["2026-02-30", "2026-11-21"], ["2026-02-30", "2026-11-21"], None),
    "times": (
        ["2026-11-21 10%3A00%3A00", "2026-11-21 10%3A00%3A00.5", "2026-11-22"],
        ["2026-11-21T10:00:00", "2026-11-21T10:00:00.5", "2026-11-22"],
        "M8[us]",
    ),
    "strings": (["de", "1", "2026-11-21"], ["de", "1", "2026-11-21"], None),
    "escaped": (["a%2Fb", "100%25", "a b", "ключ", "%3D"], ["a/b", "100%", "a b", "ключ", "="], None),
    "empty": ([""], [""], None),
    "booleans_are_strings": (["true", "false"], ["true", "false"], None),
    "what_only_java_takes_for_a_number": (["1d", "NaN", "0x1p3", "٣"], ["1d", "NaN", "0x1p3", "٣"], None),
}


@pytest.mark.parametrize(("texts", "values", "dtype"), VALUES.values(), ids=VALUES)
def test_types_are_those_that_spark_infers(tmp_path: Path, texts: list[str], values: list[Any], dtype: Any) -> None:
    dataset = open_dataset(files(tmp_path / "tree", *(f"k={text}" for text in texts)))
    expected = dict(zip(texts, values, strict=True))
    for order, text in enumerate(sorted(texts)):
        found = dataset[order]["k"]
        assert found == (expected[text] if dtype is None else np.array(expected[text], dtype))
        assert dtype is None or found.dtype == dtype
    assert dtype is None or dataset["k"].dtype == dtype


def test_batches_shuffled_and_resumed_have_the_values_of_their_rows(tmp_path: Path) -> None:
    root = events(tmp_path / "events", *(f"k={number}" for number in range(12)))
    dataset = open_dataset(root)

    def right(batch: dict[str, Any]) -> list[float]:
        assert batch["k"].dtype == np.int32
        assert (batch["x"][:, 0] // 10 == batch["k"]).all()
        return batch["x"][:, 0].tolist()  # type: ignore[no-any-return]

    batches = dataset.batches(7, shuffle=True, seed=3)
    iterator = iter(batches)
    taken = [x for _ in range(4) for x in right(next(iterator))]
    again = pickle.loads(pickle.dumps(dataset)).batches(5, shuffle=True, seed=3)
    again.load_state_dict(batches.state_dict())
    taken += [x for batch in again for x in right(batch)]
    assert sorted(taken) == list(range(120))
    shares = [open_dataset(root).batches(4, shuffle=True, rank=rank, world_size=3) for rank in range(3)]
    assert sorted(x for share in shares for batch in share for x in right(batch)) == list(range(120))


def test_ragged_columns_and_tokens_of_all_partitions(tmp_path: Path) -> None:
    root = events(tmp_path / "events", "k=a", "k=bb")
    for batch in open_dataset(root).batches(6, shuffle=True):
        for x, tokens, k in zip(batch["x"][:, 0], batch["tokens"], batch["k"], strict=True):
            assert (len(tokens), k) == (int(x) % 4, "a" if x < 10 else "bb")
    tokens = open_dataset(root, columns=["tokens"])
    total = sum(number % 4 for number in range(20))
    assert len(tokens.blocks(3)) == total // 3
    assert sum(batch["document_ids"].shape[0] for batch in tokens.pack(6).batches(1)) == len(tokens.pack(6))
    assert sum(len(batch["tokens"]) for batch in open_dataset(root).batches(max_tokens=5, shuffle=True)) == 20
    both = open_dataset(root, columns=["tokens", "k"])
    for make in (lambda: both.blocks(3), lambda: both.pack(6)):
        with pytest.raises(SafetensorsSparkError, match="the column `k` is of partitions, and"):
            make()
    with pytest.raises(SafetensorsSparkError, match="`tokens` names `k`"):
        both.batches(max_tokens=5, tokens="k")


def test_partitions_are_mixed_with_other_datasets(tmp_path: Path) -> None:
    one = open_dataset(events(tmp_path / "one", "k=1", "k=2"), columns=["x", "k"])
    other = open_dataset(events(tmp_path / "other", "k=7"), columns=["x", "k"])
    drawn = np.concatenate([batch["k"] for batch in mix([(one, 1), (other, 1)]).batches(5)])
    assert sorted(set(drawn.tolist())) == [1, 2, 7]


def test_columns_of_partitions_alone_open_no_file(tmp_path: Path) -> None:
    root = events(tmp_path / "events", "k=1", "k=2")
    for file in root.rglob("*.safetensors"):
        file.write_bytes(b"no safetensors file")
    dataset = open_dataset(root, columns=["k"])
    assert dataset["k"].tolist() == [1] * 10 + [2] * 10
    assert [int(dataset[number]["k"]) for number in (0, 19, -1)] == [1, 2, 2]
    assert sum(int(batch["k"].sum()) for batch in dataset.batches(3, shuffle=True)) == 30


def test_columns_without_those_of_partitions(tmp_path: Path) -> None:
    root = files(tmp_path / "tree", "k=1", f"k={NULL}")
    assert open_dataset(root, columns=["x"])["x"].tolist() == [0, 1]
    with pytest.raises(SafetensorsSparkError, match=rf"`k={NULL}` has no value of the column `k`.*`columns`"):
        open_dataset(root)


def test_folders_that_are_no_partitions_are_left_out(tmp_path: Path) -> None:
    root = files(tmp_path / "tree", "k=1", ".k=2", "k=3/_temporary/0", "other", "_j")
    (root / "k=4" / "empty").mkdir(parents=True)
    assert open_dataset(root)["k"].tolist() == [1]
    assert open_dataset(files(tmp_path / "hidden", "_k=7"))["_k"].tolist() == [7]


def test_a_dataset_is_what_its_manifest_says_whatever_folders_it_has(tmp_path: Path) -> None:
    root = events(tmp_path, "data")
    files(root / "data", "k=1")
    assert [column.name for column in open_dataset(root / "data").columns] == ["x", "tokens", "text"]


@pytest.mark.parametrize(
    ("folders", "words"),
    [
        (["k=1", "j=1"], "different partition columns: j in `j=1`, and k in `k=1`"),
        (["k=1", "k=2/j=1"], "different partition columns: k in `k=1`, and k, j in `k=2/j=1`"),
        (["k=1/k=2"], "gives the partition column `k` twice"),
        (["k=1/K=2"], "gives the partition column `K` twice"),
        (["x=1"], "`x` is a column of the files, and folders are named `x=...`"),
        (["X=1"], "`x` is a column of the files, and folders are named `X=...`"),
        ([".", "k=1"], "holds both safetensors files and folders of partitions such as `k=1`"),
        (["k=1", "k=1/j=2"], "k=1 holds both safetensors files and folders of partitions such as `j=2`"),
    ],
)
def test_trees_that_make_no_dataset_say_what_to_do(tmp_path: Path, folders: list[str], words: str) -> None:
    for number, folder in enumerate(folders):
        (tmp_path / folder).mkdir(parents=True, exist_ok=True)
        save_file({"x": np.array([number], np.uint8)}, tmp_path / folder / "file.safetensors")
    with pytest.raises(SafetensorsSparkError) as caught:
        open_dataset(tmp_path)
    assert words in str(caught.value)
    assert "one by one" in str(caught.value)


def test_partitions_that_differ_in_their_columns(tmp_path: Path) -> None:
    write_dataset([{"x": [1.0], "y": [1]}], tmp_path / "k=1", batch_size=1)
    write_dataset([{"x": [2.0], "z": [1]}], tmp_path / "k=2", batch_size=1)
    with pytest.raises(SafetensorsSparkError, match="`k=1` has a column `y`, and `k=2` has none"):
        open_dataset(tmp_path)
    assert open_dataset(tmp_path, columns=["k", "x"])["x"].tolist() == [1, 2]
    assert open_dataset(tmp_path, columns=["k", "x"])[1].keys() == {"k", "x"}
    write_dataset([{"x": ["text"], "y": [1]}], tmp_path / "k=3", batch_size=1)
    with pytest.raises(SafetensorsSparkError, match="column `x` is fixed in one partition, and text in another"):
        open_dataset(tmp_path, columns=["x"])


def test_datasets_by_key_are_no_partitions(tmp_path: Path) -> None:
    write_dataset([{"id": ["a"], "x": [[1.0]]}], tmp_path / "k=1", name_col="id")
    with pytest.raises(SafetensorsSparkError, match="k=1 was written by key"):
        open_dataset(tmp_path)
    with pytest.raises(SafetensorsSparkError, match="holds folders of partitions, such as `k=1`: open one of them"):
        open_store(tmp_path)
    assert inspect(tmp_path).samples is None
    assert [tensor.file.rpartition("/")[0] for tensor in inspect(tmp_path).tensors] == ["k=1"]


def test_datasets_without_rows_among_partitions(tmp_path: Path) -> None:
    events(tmp_path, "k=1")
    with DatasetWriter(tmp_path / "k=2", batch_size=4):
        pass
    assert open_dataset(tmp_path)["k"].tolist() == [1] * 10


def test_inspect_and_verify_look_at_all_partitions(tmp_path: Path) -> None:
    root = events(tmp_path / "events", "k=1", "k=2")
    found = inspect(root)
    assert (found.kind, found.samples, len(found.shards)) == ("partitions", 20, 6)
    assert [column.name for column in found.columns] == ["x", "tokens", "text", "k"]
    assert found.shards[3].file.startswith("k=2/part-")
    report = verify(root)
    assert (report.faults, report.files) == ([], 6)
    assert open_dataset(root).verify().faults == []
    shard = root / found.shards[3].file
    content = bytearray(shard.read_bytes())
    content[-1] ^= 1
    shard.write_bytes(content)
    (fault,) = verify(root).faults
    assert fault.file == found.shards[3].file
    assert "CRC-32C" in fault.what
    assert inspect(files(tmp_path / "tree", "k=1", "k=2")).samples == 2


def test_a_partition_that_is_written_again_while_it_is_read(tmp_path: Path) -> None:
    root = events(tmp_path / "events", "k=1", "k=2")
    dataset = open_dataset(root)
    write_dataset([{"x": [[0.0] * 3]}], root / "k=2", batch_size=1, mode="overwrite")
    assert dataset[3]["x"][0] == 3
    with pytest.raises(SafetensorsSparkError, match="k=2 has been written again since it was opened"):
        dataset[15]


def test_a_file_that_is_replaced_before_it_is_read(tmp_path: Path) -> None:
    root = files(tmp_path / "tree", "k=1", "k=2")
    dataset = open_dataset(root)
    save_file({"x": np.array([9], np.uint8)}, root / "k=2" / "new")
    (root / "k=2" / "new").replace(root / "k=2" / "file.safetensors")
    with pytest.raises(SafetensorsSparkError, match=r"k=2/file\.safetensors has been replaced"):
        dataset[1]


def test_a_link_to_a_folder_above_is_an_error(tmp_path: Path) -> None:
    root = files(tmp_path / "tree", "k=1/j=1")
    (root / "k=1" / "j=2").symlink_to(root)
    with pytest.raises(SafetensorsSparkError, match="gives the partition column `k` twice"):
        open_dataset(root)


def test_partitions_behind_fsspec(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO)
    root = events(tmp_path / "events", "k=a%2Fb", "k=c")
    memory = fsspec.filesystem("memory")
    memory.put(str(root), "/partitions", recursive=True)
    try:
        dataset = open_dataset("memory://partitions", cache_dir=tmp_path / "cache")
        assert list(dataset["k"]) == ["a/b"] * 10 + ["c"] * 10
        assert dataset["x"][:, 0].tolist() == list(range(20))
        assert sum("downloaded" in record.message for record in caplog.records) == 6
        assert verify("memory://partitions").faults == []
    finally:
        memory.rm("/partitions", recursive=True)
