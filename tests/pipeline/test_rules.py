"""Each rule alone, and the printed plan."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from pipeline.conftest import MakeBackend
from safetensors_spark import PipelineError
from safetensors_spark.pipeline import Dataset, col
from safetensors_spark.pipeline._rules import Chain, merge_filters, push_columns, push_counts, push_filters

PATHS = Dataset.from_list(["a.parquet"])
ROWS = PATHS.load_parquet()
A, B = col("a") > 1, col("b") == 2


def twice(row: Any) -> Any:
    return row


def once(_: Any, rows: Any) -> Any:
    return next(rows)


def shown(chain: Chain) -> str:
    return " | ".join(map(str, chain))


@pytest.mark.parametrize(
    ("rule", "dataset", "expected"),
    [
        (merge_filters, ROWS.filter(A).filter(B), "load parquet | filter (a > 1) & (b == 2)"),
        (merge_filters, PATHS.filter(A).map(twice).filter(B), "filter a > 1 | map twice | filter b == 2"),
        (push_filters, ROWS.filter(A), "load parquet where a > 1"),
        (push_filters, ROWS.map(twice).filter(A), "load parquet | map twice | filter a > 1"),
        (push_filters, ROWS.filter(bool).filter(A), "load parquet | filter bool | filter a > 1"),
        (push_filters, ROWS.select("a", "b").filter(A), "load parquet where a > 1 | select a, b"),
        (push_filters, ROWS.take_per_shard(3).filter(A), "load parquet | take 3 per shard | filter a > 1"),
        (push_columns, ROWS.select("a", "b").select("b"), "load parquet columns b"),
        (push_columns, ROWS.map(twice).select("b"), "load parquet | map twice | select b"),
        (push_counts, ROWS.count(), "load parquet columns none | map_shard _only | reduce sum"),
        (push_counts, ROWS.map(twice).count(), "load parquet | map twice | map_shard _only | reduce sum"),
        (push_columns, PATHS.load_parquet(["a"]).select("b"), "load parquet columns a | select b"),
    ],
)
def test_rules(rule: Callable[[Chain], Chain], dataset: Dataset[Any], expected: str) -> None:
    assert shown(rule(dataset.operations)) == expected


def test_a_filter_of_a_column_that_is_gone_is_an_error(sync: MakeBackend, tmp_path: Path) -> None:
    (tmp_path / "a.jsonl").write_text("{}")
    rows = Dataset.from_files(tmp_path, "*.jsonl").load_jsonl()
    with pytest.raises(PipelineError, match="`filter b > 1` needs the column `b`, but only a are left"):
        sync().plan(rows.select("a").filter(col("b") > 1))


def test_the_plan_is_printed(files: Path, sync: MakeBackend, capsys: pytest.CaptureFixture[str]) -> None:
    dataset = Dataset.from_files(files, "**/*.gz").load_jsonl().filter(col("score") > 0.5).select("id", "kind")
    grouped = dataset.group_by(twice, once, num_output_shards=2).map(twice).reshard(3).write_jsonl("out/{shard}.jsonl")
    size = sum(path.stat().st_size for path in files.rglob("*.gz"))
    expected = (
        f"source: files {files}/**/*.gz: 4 shards, {size:,} bytes\n"
        "stage 1: 4 shards: load jsonl columns id, kind where score > 0.5\n"
        "  divided by twice\n"
        "stage 2: 2 shards: group_by twice: once | map twice\n"
        "stage 3: 3 shards: reshard 3 | write jsonl out/{shard}.jsonl"
    )
    assert str(sync().plan(grouped)) == expected
    assert list(sync(dry_run=True).execute(grouped)) == []
    assert capsys.readouterr().out == expected + "\n"
    assert not Path("out").exists()


def test_records_without_columns_are_counted(tmp_path: Path, sync: MakeBackend) -> None:
    shards: list[list[dict[str, Any]]] = [[{"a": n, "b": n % 2} for n in range(10)], [{"a": None, "b": 0}]]
    rows = Dataset.from_list(shards).flat_map(lambda shard: shard)
    some = Dataset.from_list([{"a": np.int64(n), "b": np.int64(n % 2)} for n in range(10)])
    paths = {
        "jsonl": sync().execute(rows.write_jsonl(f"{tmp_path}/{{shard}}.jsonl")),
        "parquet": sync().execute(rows.write_parquet(f"{tmp_path}/{{shard}}.parquet")),
        "safetensors": sync().execute(some.write_safetensors(tmp_path / "data")),
    }
    for kind, made in paths.items():
        read = Dataset.from_list(list(made))
        read = read.load_safetensors() if kind == "safetensors" else read.load_file()
        assert list(sync().execute(read.count())) == [10 if kind == "safetensors" else 11]
        assert list(sync().execute(read.filter((col("a") > 4) & (col("a") * 2 < 18)).count())) == [4]
