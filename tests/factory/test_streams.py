"""Rows of streams, and of inputs that change, are those that iterating the dataset gives."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import datasets
import pytest
from datasets import Features, Value

from factory.conftest import Longer
from safetensors_spark.factory import ConfigError, Pipeline, Stage, run
from safetensors_spark.factory.operators.length import TextLength
from safetensors_spark.pipeline import Backend


def _rows(shards: list[int]) -> Iterator[dict[str, Any]]:
    for shard in shards:
        for number in range(3 + 10 * shard):
            yield {"n": 100 * shard + number, "text": f"{shard} {number}"}


def _stream() -> Any:
    features = datasets.Features({"n": datasets.Value("int64"), "text": datasets.Value("string")})
    return datasets.IterableDataset.from_generator(_rows, gen_kwargs={"shards": [0, 1, 2]}, features=features)


RECIPE = Pipeline("p", (Stage("s", [TextLength()]),))
CHAINS: dict[str, Callable[[Any], Any]] = {
    "as it is": lambda stream: stream,
    "map": lambda stream: stream.map(lambda row: {"n": row["n"] + 1}),
    "filter": lambda stream: stream.filter(lambda row: row["n"] % 2),
    "take": lambda stream: stream.take(20),
    "skip": lambda stream: stream.skip(10),
    "repeat": lambda stream: stream.repeat(2),
    "numbers": lambda stream: stream.map(lambda row, number: {"n": number}, with_indices=True),
    "some of it": lambda stream: stream.map(lambda row: row).take(25).filter(lambda row: row["n"] > 1),
    "concatenated": lambda stream: datasets.concatenate_datasets([stream, stream.take(4)]),
    "interleaved": lambda stream: datasets.interleave_datasets(
        [stream, stream.skip(5)], probabilities=[0.5, 0.5], seed=1
    ),
    "shuffled": lambda stream: stream.shuffle(seed=3, buffer_size=7),
}


@pytest.mark.parametrize("chain", CHAINS)
def test_a_stream_has_the_rows_that_iterating_it_gives(chain: str, tmp_path: Path, sync: Backend) -> None:
    stream = CHAINS[chain](_stream())
    expected = [row["n"] for row in stream]
    assert [row["n"] for row in run(RECIPE, stream, tmp_path, backend=sync)] == expected


def test_shards_stay_where_their_rows_are_the_streams(tmp_path: Path, sync: Backend) -> None:
    run(RECIPE, CHAINS["map"](_stream()), tmp_path / "a", backend=sync)
    run(RECIPE, CHAINS["take"](_stream()), tmp_path / "b", backend=sync)
    assert [len(list((tmp_path / name / "s" / "data").iterdir())) for name in "ab"] == [3, 1]


def test_inputs_in_another_order_or_twice_are_other_inputs(tmp_path: Path, sync: Backend) -> None:
    paths = {}
    for name, count in (("a", 3), ("b", 50)):
        rows = datasets.Dataset.from_dict({"text": [f"{name}{number}" for number in range(count)]})
        paths[name] = f"{tmp_path}/{name}.parquet"
        rows.to_parquet(paths[name])
    for order in ("ab", "ba", "aa", "aab", "b"):
        files = [paths[name] for name in order]
        stream = datasets.load_dataset("parquet", data_files=files, split="train", streaming=True)
        found = run(RECIPE, stream, tmp_path / "out", backend=sync)
        assert [row["text"] for row in found] == [row["text"] for row in stream]
        names = sorted((tmp_path / "out" / "s" / "data").iterdir())
        whole = datasets.load_dataset("parquet", data_files=[str(one) for one in names], split="train", streaming=True)
        assert [row["text"] for row in whole] == [row["text"] for row in stream]


@pytest.mark.parametrize(
    ("first", "later", "kind", "told"),
    [
        ("7", "7.5", "float64", "later rows of the stream have other types than those before: .*int64.*double"),
        ("", "a", "string", "rows of the stream have `n` as double, and the first ones as null"),
    ],
)
def test_rows_of_text_may_turn_out_to_have_other_types(
    first: str, later: str, kind: str, told: str, tmp_path: Path, sync: Backend
) -> None:
    # The library looks at some thousand lines at a time.
    lines = [f"t{number},{first if number < 12_000 else later}" for number in range(25_000)]
    (tmp_path / "a.csv").write_text("\n".join(["text,n", *lines]))

    def opened(**options: Any) -> Any:
        files = str(tmp_path / "a.csv")
        return datasets.load_dataset("csv", data_files=files, split="train", streaming=True, **options)

    with pytest.raises(ConfigError, match=told) as raised:
        run(RECIPE, opened(), tmp_path / "out", backend=sync)
    assert "While shard 0 of stage `s` was read" in raised.value.__notes__
    features = Features({"text": Value("string"), "n": Value(kind)})
    rows = list(run(RECIPE, opened(features=features), tmp_path / "out", backend=sync))
    assert [len(rows), str(rows[-1]["n"])] == [25_000, later]


class Fails(Longer):
    """Drops nothing, and raises at a number, as a service would."""

    type = "fails"
    at: int | None = None

    def reasons(self, batch: Any) -> Any:
        limit = int(Path(self.field_of_now).read_text())
        if limit in batch[0].to_pylist():
            raise RuntimeError("stop")
        return [None if n % (limit % 7 + 2) else "divided" for n in batch[0].to_pylist()]

    field_of_now: str = ""


def test_an_overwrite_that_fails_leaves_the_old_stage(tmp_path: Path, sync: Backend) -> None:
    rows = datasets.Dataset.from_dict({"n": list(range(400))})
    (now := tmp_path / "now").write_text("1000")
    recipe = Pipeline("p", (Stage("s", [Fails(limit=0, field_of_now=str(now))]),))
    sizes: dict[str, Any] = {"shard_bytes": 800, "window_bytes": 400, "file_bytes": 400}
    before = list(run(recipe, rows, tmp_path / "out", backend=sync, **sizes))
    now.write_text("250")
    with pytest.raises(RuntimeError, match="stop"):
        run(recipe, rows, tmp_path / "out", backend=sync, mode="overwrite", **sizes)
    data = tmp_path / "out" / "s" / "data"
    named = json.loads((tmp_path / "out" / "s" / "manifest.json").read_text())["outputs"]
    assert len(list(data.iterdir())) > len(named)
    assert list(run(recipe, rows, tmp_path / "out", backend=sync, **sizes)) == before
    # Nor has it left rows of its own, for those who read the folder.
    assert sorted(f"data/{path.name}" for path in data.iterdir()) == sorted(named)
    for limit in ("1001", "1002"):
        now.write_text(limit)
        after = list(run(recipe, rows, tmp_path / "out", backend=sync, mode="overwrite", **sizes))
        fresh = list(run(recipe, rows, tmp_path / limit, backend=sync, **sizes))
        assert after == fresh != before
        assert list(run(recipe, rows, tmp_path / "out", backend=sync, **sizes)) == fresh
        files = [len(list((tmp_path / name / "s" / "data").iterdir())) for name in ("out", limit)]
        assert files[0] == files[1]
