"""What each operation makes of rows, on every backend."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from enum import Enum
from pathlib import Path
from typing import Any

import pytest

from pipeline.conftest import ALL, MakeBackend
from safetensors_spark import PipelineError
from safetensors_spark.pipeline import Dataset, ShardInfo, col, counters, load_jsonl


def test_rows_pass_functions_in_order(backend: MakeBackend) -> None:
    dataset = Dataset.from_list([[1, 2, 3], [4, 5]]).flat_map(lambda row: row).map(lambda row: row * 10)
    assert list(backend().execute(dataset.filter(lambda row: row != 30))) == [10, 20, 40, 50]


def test_a_flat_map_of_a_loader_and_the_method_are_the_same(files: Path, backend: MakeBackend) -> None:
    paths = Dataset.from_files(files, "**/*.jsonl.gz")
    assert list(backend().execute(paths.flat_map(load_jsonl))) == ALL
    assert list(backend().execute(paths.load_jsonl())) == list(backend().execute(paths.load_file())) == ALL


def test_filters_by_expressions_and_selections(files: Path, backend: MakeBackend) -> None:
    dataset = Dataset.from_files(f"{files}/**/*.gz").load_jsonl().filter((col("score") > 0.5) & (col("kind") == "k1"))
    expected = [{"id": row["id"]} for row in ALL if row["score"] > 0.5 and row["kind"] == "k1"]
    assert list(backend().execute(dataset.select("id"))) == expected


def test_windows_are_of_one_shard(backend: MakeBackend) -> None:
    dataset = Dataset.from_list(["abcde", "fg"]).flat_map(str)
    windows = dataset.window(2)
    assert list(backend().execute(windows)) == [["a", "b"], ["c", "d"], ["e"], ["f", "g"]]
    assert list(backend().execute(dataset.take_per_shard(1))) == ["a", "f"]


def test_windows_end_where_the_function_says(backend: MakeBackend) -> None:
    def below_ten(total: int, row: int) -> tuple[bool, int]:
        return total + row < 10, total + row

    dataset = Dataset.from_list([[5, 4, 6, 3, 12, 1]]).flat_map(lambda row: row)
    assert list(backend().execute(dataset.window_by(below_ten, 0))) == [[5, 4], [6, 3], [12], [1]]


@pytest.mark.parametrize("last", [2, 3])
def test_a_function_that_raises_stop_iteration_loses_no_rows(last: int, sync: MakeBackend) -> None:
    def fails(row: int) -> list[int]:
        return [row if row < last else next(iter([]))]

    rows = Dataset.from_list([[1, 2, 3]]).flat_map(list)
    for dataset in (rows.map(fails), rows.filter(fails), rows.flat_map(fails)):
        with pytest.raises(PipelineError, match=r"fails: the function raised StopIteration") as raised:
            sync().execute(dataset)
        assert f"In shard 0 of 1, row 1, of stage 1: {dataset.operations[0]}" in raised.value.__notes__[0]
        (stage,) = sync(on_error="quarantine").execute(dataset).manifest["stages"]
        assert (stage["rows"], stage["quarantined"]) == (last - 1, 4 - last)
    assert list(sync().execute(rows.map(lambda row: row).take_per_shard(1))) == [1]


def test_each_window_begins_with_a_state_of_its_own(backend: MakeBackend) -> None:
    def below_ten(seen: Any, row: int) -> tuple[bool, Any]:
        seen.append(row)
        return sum(seen) < 10, seen

    dataset = Dataset.from_list([[5, 4, 6, 3, 12, 1], [1, 2]]).flat_map(lambda row: row)
    assert list(backend().execute(dataset.window_by(below_ten, []))) == [[5, 4], [6, 3], [12], [1], [1, 2]]


def ten_times(row: Any) -> Any:
    return row * 10


def test_paths_that_were_written_are_rows(tmp_path: Path, backend: MakeBackend) -> None:
    written = Dataset.from_list([[1, 2], [], [3]]).flat_map(list).write_jsonl(f"{tmp_path}/a/{{shard}}.jsonl")
    paths = [f"{tmp_path}/a/{shard}.jsonl" for shard in range(3)]
    assert list(backend().execute(written.count())) == [3]
    again = written.load_jsonl().map(ten_times).write_jsonl(f"{tmp_path}/b/{{shard}}.jsonl")
    assert list(backend().execute(again)) == [path.replace("/a/", "/b/") for path in paths]
    assert [Path(tmp_path, "b", f"{shard}.jsonl").read_text() for shard in range(3)] == ["10\n20\n", "", "30\n"]
    assert list(backend().execute(written.reshard(2))) == paths
    names = [f"{shard} {path}" for shard, path in enumerate(paths)]
    numbered = written.map_shard(lambda rows, shard: (f"{shard.shard_idx} {row}" for row in rows))
    assert list(backend().execute(numbered)) == names


def test_map_shard_gets_all_rows_and_the_shard(backend: MakeBackend) -> None:
    def numbered(rows: Iterator[str], shard: ShardInfo) -> Iterator[str]:
        for number, row in enumerate(rows):
            yield f"{shard.shard_idx}/{shard.total_shards} {number}: {row}"

    dataset = Dataset.from_list(["ab", "c"]).flat_map(str).map_shard(numbered)
    assert list(backend().execute(dataset)) == ["0/2 0: a", "0/2 1: b", "1/2 0: c"]


@pytest.mark.parametrize("shards", [1, 3, 7])
def test_reshard_keeps_rows_and_their_order(shards: int, backend: MakeBackend) -> None:
    dataset = Dataset.from_list([5, 0, 1, 4]).flat_map(range).reshard(shards)
    sizes = dataset.map_shard(lambda rows, shard: [len(list(rows))])
    assert list(backend().execute(dataset)) == [0, 1, 2, 3, 4, 0, 0, 1, 2, 3]
    counts = list(backend().execute(sizes))
    assert len(counts) == shards
    assert sum(counts) == 10
    assert max(counts) - min(counts) <= 1


def test_group_by_brings_rows_of_a_key_together(files: Path, backend: MakeBackend) -> None:
    def reducer(key: str, rows: Iterator[dict[str, Any]]) -> dict[str, Any]:
        return {"kind": key, "ids": [row["id"] for row in rows]}

    expected = defaultdict(list)
    for row in ALL:
        expected[row["kind"]].append(row["id"])
    dataset = Dataset.from_files(f"{files}/**/*.gz").load_jsonl().group_by(lambda row: row["kind"], reducer)
    found = list(backend().execute(dataset))
    assert {row["kind"]: row["ids"] for row in found} == expected
    assert len(found) == 5


def test_rows_of_a_key_are_sorted(files: Path, backend: MakeBackend) -> None:
    def reducer(key: str, rows: Iterator[dict[str, Any]]) -> Iterator[tuple[str, int]]:
        yield from ((key, row["id"]) for row in rows)

    dataset = Dataset.from_files(f"{files}/**/*.gz").load_jsonl()
    grouped = dataset.group_by(lambda row: row["kind"], reducer, sort_by=lambda row: -row["id"], num_output_shards=1)
    expected = sorted(((row["kind"], row["id"]) for row in ALL), key=lambda pair: (pair[0], -pair[1]))
    assert list(backend().execute(grouped)) == expected


def test_a_combiner_changes_nothing_but_the_work(backend: MakeBackend) -> None:
    def total(key: int, rows: Iterator[tuple[int, int]]) -> tuple[int, int]:
        return key, sum(count for _, count in rows)

    def partly(key: int, rows: Iterator[tuple[int, int]]) -> Iterator[tuple[int, int]]:
        yield total(key, rows)

    dataset = Dataset.from_list([1000, 2000]).flat_map(range).map(lambda row: (row % 3, 1))
    found = {}
    for combiner in (None, partly):
        grouped = dataset.group_by(lambda row: row[0], total, num_output_shards=2, combiner=combiner)
        found[combiner] = list(backend().execute(grouped))
    assert found[None] == found[partly]
    assert dict(found[None]) == {0: 1001, 1: 1000, 2: 999}


def test_deduplicate_keeps_the_first_row(files: Path, backend: MakeBackend) -> None:
    dataset = Dataset.from_files(f"{files}/**/*.gz").load_jsonl().deduplicate(lambda row: row["kind"])
    assert sorted(row["id"] for row in backend().execute(dataset)) == [0, 1, 2, 3, 4]


def test_keys_are_equal_as_python_has_it(backend: MakeBackend) -> None:
    keys = [1, 1.0, True, "1", b"1", None, float("nan"), float("nan"), (1, "a"), (1.0, "a"), 2**70]
    dataset = Dataset.from_list(keys).group_by(lambda row: row, lambda key, rows: len(list(rows)))
    assert sorted(backend().execute(dataset)) == [1, 1, 1, 1, 2, 2, 3]


def test_keys_that_say_something_else_of_themselves_are_their_text(backend: MakeBackend) -> None:
    class Kind(str, Enum):
        A = "a"

    class Silent(str):
        def __str__(self) -> str:
            return ""

    rows = Dataset.from_list([Kind.A, "a", Silent("b"), Silent("c")])
    found = rows.group_by(lambda row: row, lambda _, some: [str.__str__(one) for one in some], num_output_shards=1)
    assert list(backend().execute(found)) == [["a", "a"], ["b"], ["c"]]


def test_a_key_of_another_type_is_an_error(sync: MakeBackend) -> None:
    with pytest.raises(PipelineError, match="a key is a set"):
        sync().execute(Dataset.from_list([{1}]).deduplicate(lambda row: row))


def test_reduce_and_count(files: Path, backend: MakeBackend) -> None:
    assert list(backend().execute(Dataset.from_list(range(10)).reduce(sum))) == [45]
    assert list(backend().execute(Dataset.from_files(f"{files}/**/*.gz").load_jsonl().count())) == [1000]
    assert list(backend().execute(Dataset.from_list([]).count())) == [0]


def test_sorted_shards_are_joined(files: Path, backend: MakeBackend) -> None:
    rows = Dataset.from_files(f"{files}/**/*.gz").load_jsonl()
    left = rows.group_by(
        lambda row: row["id"] // 2, lambda key, found: {"half": key, "rows": len(list(found))}, None, 3
    )
    right = rows.filter(col("id") < 100).map(lambda row: {"half": row["id"], "kind": row["kind"]})
    right = right.deduplicate(lambda row: row["half"], 3)
    joined = left.sorted_merge_join(right, lambda row: row["half"], lambda row: row["half"])
    found = sorted(backend().execute(joined), key=lambda row: row["half"])
    assert found == [{"half": half, "rows": 2, "kind": f"k{half % 5}"} for half in range(100)]
    kept = left.sorted_merge_join(right, lambda row: row["half"], lambda row: row["half"], how="left")
    assert len(list(backend().execute(kept))) == 500


def test_shards_that_are_not_sorted_are_not_joined(sync: MakeBackend) -> None:
    left, right = Dataset.from_list([[2, 1]]).flat_map(list), Dataset.from_list([[1, 2]]).flat_map(list)
    with pytest.raises(PipelineError, match="the rows on the left are not sorted: the key 1 "):
        sync().execute(left.sorted_merge_join(right, int, int, lambda one, other: one))
    with pytest.raises(PipelineError, match="there are 1 on the left and 2 on the right"):
        sync().execute(left.sorted_merge_join(Dataset.from_list([1, 2]), int, int))


def test_counters_are_of_all_stages(backend: MakeBackend) -> None:
    def seen(row: int) -> int:
        counters.increment("rows")
        counters.increment("sum", row)
        return row

    def reducer(key: int, rows: Iterator[int]) -> int:
        counters.increment("keys")
        return sum(rows)

    dataset = Dataset.from_list(range(6)).map(seen).group_by(lambda row: row % 2, reducer)
    assert backend().execute(dataset).counters == {"rows": 6, "sum": 15, "keys": 2}


def test_counters_of_a_joins_right_side_count(tmp_path: Path, backend: MakeBackend) -> None:
    def counted(row: int) -> int:
        counters.increment("rows")
        return row

    left, right = (Dataset.from_list(range(count)).map(counted).deduplicate(int, 1) for count in (3, 4))
    joined = left.sorted_merge_join(right, int, int, lambda one, _: one).write_jsonl(f"{tmp_path}/{{shard}}.jsonl")
    # And again, when nothing is made.
    for _ in range(2):
        assert backend().execute(joined).counters == {"rows": 7}


def test_rows_of_any_kind_pass_between_stages(backend: MakeBackend) -> None:
    rows: list[Any] = [
        {"a": 1, "b": None, "c": [1, 2], "d": b"\xff", "e": 1.5, "f": True, "g": "\udc80"},
        {"a": 2**80, "b": {"c": (1, 2)}},
        ("a", frozenset({1})),
        {"a": 1.0},
        {"a": 1},
        {1: 2},
        {},
        [],
        None,
        "text",
    ]
    found = list(backend().execute(Dataset.from_list([rows]).flat_map(lambda row: row).reshard(2)))
    assert found == rows
    assert [type(row["a"]) for row in found[3:5]] == [float, int]


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda dataset: dataset.map(3), "map takes a function, not int"),
        (lambda dataset: dataset.window(0), "window is 0"),
        (lambda dataset: dataset.reshard(-1), "reshard is -1"),
        (lambda dataset: dataset.select(), "select takes the names"),
        (lambda dataset: dataset.load_parquet("a"), "columns is 'a', expected a list"),
        (lambda dataset: dataset.sorted_merge_join(dataset, int, int, how="outer"), "how is 'outer'"),
    ],
)
def test_wrong_arguments_are_errors_at_once(call: Any, message: str) -> None:
    with pytest.raises((TypeError, ValueError), match=message):
        call(Dataset.from_list([1]))


def test_records_are_needed_where_columns_are(sync: MakeBackend) -> None:
    for dataset in (Dataset.from_list([1]).filter(col("a") > 1), Dataset.from_list([1]).select("a")):
        with pytest.raises(PipelineError, match="a row is a int"):
            sync().execute(dataset)
    with pytest.raises(PipelineError, match="has no column `b`; it has a"):
        sync().execute(Dataset.from_list([{"a": 1}]).select("b"))


def test_rows_that_are_one_object_are_changed_apart(backend: MakeBackend) -> None:
    row = {"a": [1]}

    def changes(row: dict[str, list[int]]) -> dict[str, list[int]]:
        row["a"].append(len(row["a"]))
        return row

    dataset = Dataset.from_list([row] * 3).map(changes)
    for _ in range(2):
        assert list(backend().execute(dataset)) == [{"a": [1, 1]}] * 3
    assert row == {"a": [1]}
