"""Samples of rows by quotas of buckets."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import datasets
import pyarrow as pa  # type: ignore[import-untyped]
import pyarrow.parquet as pq  # type: ignore[import-untyped]
import pytest
from pydantic import ValidationError

from safetensors_spark.factory import ConfigError, ContractError, Pipeline, Stage, run
from safetensors_spark.factory.operators.quota_sample import Bucket, QuotaSample
from safetensors_spark.pipeline import Backend

GOOD, FAIR = Bucket(name="good", where="score >= 8"), Bucket(name="fair", where="score >= 4", keep=0.25)


def _table(rows: int) -> pa.Table:
    scores = [None if n % 10 == 9 else n % 10 for n in range(rows)]
    return pa.table({"id": [f"row {n}" for n in range(rows)], "score": scores})


def _kept(operator: QuotaSample, table: pa.Table) -> list[str]:
    (batch,) = table.combine_chunks().to_batches()
    reasons = operator.reasons(batch)
    return [one for one, reason in zip(batch["id"].to_pylist(), reasons, strict=True) if reason is None]


def test_buckets_keep_their_shares() -> None:
    table = _table(300_000)
    operator = QuotaSample(buckets=(GOOD, FAIR), key="id", others=0.1, seed=3)
    kept = _kept(operator, table)
    counts = Counter(int(one.split()[1]) % 10 for one in kept)
    assert counts[8] == 30_000
    # Four buckets of `score` are fair, and five, with those of no score, are in no bucket.
    sizes = {0.25: sum(counts[n] for n in (4, 5, 6, 7)), 0.1: sum(counts[n] for n in (0, 1, 2, 3, 9))}
    chi = sum((sizes[p] - n * p) ** 2 / (n * p * (1 - p)) for p, n in ((0.25, 120_000), (0.1, 150_000)))
    # One of a thousand fair samples is beyond.
    assert chi < 13.8
    assert kept != _kept(operator.model_copy(update={"seed": 4}), table)


def test_order_and_larger_shares_change_nothing_of_a_row() -> None:
    table, few = _table(5000), QuotaSample(buckets=(GOOD, FAIR), key="id")
    turned = table.take(list(reversed(range(5000))))
    assert _kept(few, turned) == _kept(few, table)[::-1]
    more = QuotaSample(buckets=(GOOD, FAIR.model_copy(update={"keep": 0.5})), key="id")
    assert set(_kept(few, table)) < set(_kept(more, table))


def test_ratios_are_reached(tmp_path: Path, sync: Backend) -> None:
    rows = datasets.Dataset(_table(20_000))
    one = QuotaSample(buckets=(GOOD, FAIR), key="id")
    for dataset in (rows, rows.to_iterable_dataset()):
        assert one.sizes(dataset) == {"good": 2000, "fair": 8000}
    assert one.sizes(rows.select([])) == {"good": 0, "fair": 0}
    even = one.of_ratios({"good": 1, "fair": 2}, one.sizes(rows))
    assert [bucket.keep for bucket in even.buckets] == [1, 0.5]
    found = run(Pipeline("p", (Stage("s", [even]),)), rows, tmp_path, backend=sync)
    counts = even.sizes(found)
    assert counts["good"] == 2000
    assert abs(counts["fair"] - 4000) < 4 * (8000 * 0.25) ** 0.5
    reasons: Counter[str] = Counter()
    for file in (tmp_path / "s" / "dropped").iterdir():
        reasons.update(pq.read_table(file)["__fdf__/dropped_because"].to_pylist())
    assert reasons == {
        "sampled out of fair, of which 0.5 is kept": 8000 - counts["fair"],
        "sampled out of no bucket, of which 0 is kept": 10_000,
    }
    small = one.of_ratios({"good": 1, "fair": 1}, {"good": 2000, "fair": 8000}, rows=1000)
    assert [bucket.keep for bucket in small.buckets] == [0.25, 0.0625]


def test_what_is_wrong_is_named() -> None:
    one = QuotaSample(id="q", buckets=(GOOD, FAIR), key="id")
    sizes = {"good": 10, "fair": 100}
    with pytest.raises(ConfigError, match="bucket `good` has 10 rows, enough for 20"):
        one.of_ratios({"good": 1, "fair": 1}, sizes, rows=50)
    with pytest.raises(ConfigError, match="ratios are of good, expected one of each bucket: good, fair"):
        one.of_ratios({"good": 1}, sizes)
    with pytest.raises(ConfigError, match="expected numbers from 0 on"):
        one.of_ratios({"good": 0, "fair": 0}, sizes)
    (batch,) = pa.table({"score": [0.5]}).to_batches()
    by_score = one.model_copy(update={"key": "score"})
    with pytest.raises(ContractError, match="q: `score` is double, expected text, bytes or whole numbers"):
        by_score.reasons(batch)
    number = QuotaSample(id="q", buckets=(Bucket(name="x", where="score + 1"),), key="id")
    with pytest.raises(ContractError, match=r"q: `score \+ 1` is int64, expected true or false"):
        _kept(number, _table(5))
    with pytest.raises(ValidationError, match="two buckets have the name 'good'"):
        QuotaSample(buckets=(GOOD, GOOD), key="id")
    with pytest.raises(ValidationError, match="is not an expression of SQL"):
        Bucket(name="x", where="score >")
