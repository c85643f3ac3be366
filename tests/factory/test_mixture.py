"""Mixtures of datasets of Hugging Face's library."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import datasets
import pytest
from pydantic import ValidationError

from factory.conftest import Longer
from safetensors_spark.factory import Caps, ConfigError, Curriculum, Pipeline, Stage, mix, run
from safetensors_spark.factory._mixture_config import MixtureConfig
from safetensors_spark.pipeline import Backend, create_backend


def _rows(first: int, count: int) -> Any:
    return datasets.Dataset.from_dict({"n": list(range(first, first + count))})


def _numbers(stream: Any) -> list[int]:
    return [row["n"] for row in stream]


def _counts(numbers: list[int]) -> list[int]:
    """How many are of each dataset, whose numbers begin at a million times its place."""
    return [sum(n // 1_000_000 == place for n in numbers) for place in range(3)]


@pytest.fixture
def pair() -> list[Any]:
    return [(_rows(0, 3000).to_iterable_dataset(num_shards=6), 0.7), (_rows(1_000_000, 1000), 0.3)]


def test_rows_have_the_shares_of_weights() -> None:
    weights = (5, 3, 2)
    parts = [(_rows(place * 1_000_000, 160_000), weight) for place, weight in enumerate(weights)]
    found: list[int] = []
    for batch in mix(parts, seed=7, shards=2).with_format("numpy").iter(1000):
        found += batch["n"].tolist()
        if len(found) >= 300_000:
            break
    assert len(found) == 300_000
    counts = _counts(found)
    expected = [len(found) * weight / 10 for weight in weights]
    # The bound that one of a thousand fair mixtures is beyond.
    assert sum((now - fair) ** 2 / fair for now, fair in zip(counts, expected, strict=True)) < 13.8
    assert found[:160_000] != sorted(found[:160_000])


def test_rows_of_a_dataset_keep_their_order(pair: list[Any]) -> None:
    found = _numbers(mix(pair, shards=1))
    assert [n for n in found if n < 1_000_000] == list(range(sum(n < 1_000_000 for n in found)))
    assert found == _numbers(mix(pair, shards=1))
    assert found != _numbers(mix(pair, shards=1, seed=1))


def test_shards_have_the_same_rows_however_they_are_divided(pair: list[Any]) -> None:
    mixed = mix(pair)
    assert mixed.num_shards == 6
    found = _numbers(mixed)
    for count in (2, 3, 6):
        assert [n for index in range(count) for n in _numbers(mixed.shard(count, index))] == found


def test_workers_of_a_data_loader_divide_the_rows(pair: list[Any]) -> None:
    torch = pytest.importorskip("torch")
    mixed = mix(pair)
    loader = torch.utils.data.DataLoader(mixed, batch_size=None, num_workers=2, multiprocessing_context="spawn")
    assert sorted(_numbers(loader)) == sorted(_numbers(mixed))


@pytest.mark.parametrize("stopping", ["first_exhausted", "all_exhausted", "all_exhausted_without_replacement"])
def test_a_state_goes_on_at_its_row(pair: list[Any], stopping: Any) -> None:
    def mixed() -> Any:
        return mix([*pair, (_rows(2_000_000, 100), 0.1, Caps(rows=50))], stopping=stopping)

    stream = mixed()
    expected = _numbers(stream)
    for place in (0, 1, 137, len(expected) // 2, len(expected) - 1, len(expected)):
        rows = iter(stream)
        begun = [next(rows)["n"] for _ in range(place)]
        state = json.loads(json.dumps(stream.state_dict()))
        again = mixed()
        again.load_state_dict(state)
        # A state before the first row is that of the iteration before.
        if place:
            assert begun + _numbers(again) == expected


def test_mixtures_end_as_stopping_says() -> None:
    parts = [(_rows(0, 100), 1), (_rows(1_000_000, 1000), 1)]
    first = _counts(_numbers(mix(parts)))
    assert first[0] == 100
    assert 50 < first[1] < 200
    again = _counts(_numbers(mix(parts, stopping="all_exhausted")))
    assert again[1] == 1000
    assert 800 < again[0] < 1200
    once = _numbers(mix(parts, stopping="all_exhausted_without_replacement"))
    assert sorted(once) == [*range(100), *range(1_000_000, 1_001_000)]


def test_nothing_is_taken_of_what_has_no_weight_or_no_rows() -> None:
    parts = [(_rows(0, 10), 1), (_rows(1_000_000, 10), 0)]
    for stopping in ("first_exhausted", "all_exhausted", "all_exhausted_without_replacement"):
        assert _numbers(mix(parts, stopping=stopping)) == list(range(10))
    none = _rows(0, 10).to_iterable_dataset().filter(lambda row: row["n"] > 99)
    assert _numbers(mix([(none, 1)], stopping="all_exhausted")) == []


def test_caps_hold_over_all_shards() -> None:
    size = 200
    columns = {
        "n": list(range(size)),
        "ids": [list(range(n % 5)) for n in range(size)],
        "image": [None if n % 2 else f"{n}" for n in range(size)],
        "text": ["é" * 5] * size,
    }
    rows = datasets.Dataset.from_dict(columns)

    def taken(shards: int, **caps: int) -> list[Any]:
        part = (rows, 1, Caps(**caps))
        return list(mix([part], shards=shards, tokens="ids", stopping="all_exhausted_without_replacement"))

    for shards in (1, 4, 7):
        assert len(taken(shards, rows=50)) == 50
        # Of each shard at most one row of four tokens is too long for what is left.
        assert 100 - shards * 4 < sum(len(row["ids"]) for row in taken(shards, tokens=100)) <= 100
        assert sum(row["image"] is not None for row in taken(shards, images=40)) == 40
        sizes = [8 + 8 * len(row["ids"]) + len(row["image"] or "") + 10 for row in taken(shards, bytes=2000)]
        assert 2000 - shards * 53 < sum(sizes) <= 2000
    assert taken(1, rows=0) == []
    assert len(taken(1, rows=500)) == size


def test_a_capped_dataset_does_not_begin_again() -> None:
    parts: list[Any] = [(_rows(0, 10), 1, Caps(rows=25)), (_rows(1_000_000, 300), 1)]
    assert _counts(_numbers(mix(parts, stopping="all_exhausted"))) == [25, 300, 0]


def test_weights_follow_a_curriculum() -> None:
    curriculum = Curriculum([(0, {"a": 1, "b": 0}), (10, {"a": 0, "b": 1})])
    parts = [(_rows(0, 900), curriculum["a"]), (_rows(1_000_000, 900), curriculum["b"])]
    for shards in (1, 3):
        mixed = mix(parts, shards=shards, step_samples=30, stopping="first_exhausted")
        for index in range(shards):
            found = _numbers(mixed.shard(shards, index))
            assert _counts(found[: 300 // shards]) == [300 // shards, 0, 0]
            assert _counts(found[300 // shards :])[0] == 0
    linear = Curriculum([(0, {"a": 1, "b": 0}), (100, {"a": 0, "b": 1})], interpolate="linear")
    parts = [(_rows(0, 9000), linear["a"]), (_rows(1_000_000, 9000), linear["b"])]
    found = _numbers(mix(parts, step_samples=50))
    # Of 2,000 rows whose weights of `a` fall from 0.6 to 0.2: four standard deviations.
    assert 715 < _counts(found[2000:4000])[0] < 885


def test_the_factory_takes_mixtures(pair: list[Any], tmp_path: Path, sync: Backend) -> None:
    recipe = Pipeline("p", (Stage("s", [Longer(limit=100)]),))
    expected = [n for n in _numbers(mix(pair)) if n > 100]
    found = run(recipe, mix(pair), tmp_path / "one", backend=sync)
    assert isinstance(found, datasets.IterableDataset)
    assert _numbers(found) == expected
    workers = create_backend("processes", 2, progress=False)
    assert _numbers(run(recipe, mix(pair), tmp_path / "two", backend=workers)) == expected
    before = (tmp_path / "one" / "s" / "manifest.json").read_text()
    run(recipe, mix(pair), tmp_path / "one", backend=sync)
    assert (tmp_path / "one" / "s" / "manifest.json").read_text() == before
    other = run(recipe, mix(pair, seed=5), tmp_path / "one", backend=sync)
    assert _numbers(other) == [n for n in _numbers(mix(pair, seed=5)) if n > 100]


def test_what_cannot_be_mixed_is_named(pair: list[Any]) -> None:
    rows = _rows(0, 5)
    with pytest.raises(ConfigError, match=r"only dataset 2 has the field `m`.*remove_columns"):
        mix([(rows, 1), (rows.add_column("m", [1] * 5), 1)])
    with pytest.raises(ConfigError, match=r"their field `n` is .*int64.*float32.*cast_column"):
        mix([(rows, 1), (rows.cast_column("n", datasets.Value("float32")), 1)])
    with pytest.raises(ConfigError, match="8 shards needs as many of each stream, but dataset 1 has 6"):
        mix(pair, shards=8)
    with pytest.raises(ConfigError, match=r"dataset 1 of the mixture has 5 rows.*8 shards"):
        mix([(rows, 1)], shards=8)
    with pytest.raises(ConfigError, match=r"counts the field `token_count`, but rows have n.*`tokens=`"):
        mix([(rows, 1, Caps(tokens=5))])
    with pytest.raises(ConfigError, match="`n` has a str, which tells no number of tokens"):
        list(mix([(rows.cast_column("n", datasets.Value("string")), 1, Caps(tokens=5))], tokens="n"))
    with pytest.raises(ValueError, match="no datasets"):
        mix([])
    with pytest.raises(ValueError, match="all 0"):
        mix([(rows, 0)])
    with pytest.raises(ValueError, match="needs weights that are numbers"):
        mix([(rows, lambda _: 1.0)], stopping="all_exhausted")
    with pytest.raises(ValueError, match="stopping is 'never'"):
        mix([(rows, 1)], stopping="never")  # type: ignore[arg-type]
    with pytest.raises(TypeError, match=r"expected pairs of a datasets.Dataset"):
        mix([([1, 2], 1)])


def test_a_configuration_describes_a_mixture(tmp_path: Path) -> None:
    for name, first in (("web", 0), ("code", 1_000_000)):
        _rows(first, 500).to_parquet(tmp_path / f"{name}.parquet")
    config = MixtureConfig.model_validate(
        {
            "mixture": [
                {"path": "parquet", "data_files": "web.parquet", "weight": 0.7},
                {"path": "parquet", "data_files": "code.parquet", "weight": 0.3, "max_rows": 40},
            ],
            "stopping": "all_exhausted_without_replacement",
            "seed": 3,
        }
    )
    assert _counts(_numbers(config.resolved(tmp_path).open())) == [500, 40, 0]
    with pytest.raises(ConfigError, match="no file is"):
        config.resolved(tmp_path / "none").open()
    with pytest.raises(ValidationError, match="max_row\n"):
        MixtureConfig.model_validate({"mixture": [{"path": "json", "weight": 1, "max_row": 5}]})


def test_a_column_that_begins_with_nulls_has_the_type_of_the_others(tmp_path: Path, sync: Backend) -> None:
    def some(first: int) -> Any:
        for number in range(first, first + 300):
            yield {"n": number, "text": None if number % 600 > 2 else str(number)}

    rows = [datasets.IterableDataset.from_generator(some, gen_kwargs={"first": first}) for first in (0, 600)]
    mixed = mix([(rows[0], 1), (rows[1], 1)], stopping="all_exhausted_without_replacement")
    found = list(run(Pipeline("p", (Stage("s", [Longer(limit=0)]),)), mixed, tmp_path, backend=sync))
    assert len(found) == 599
    assert {row["text"] for row in found if row["n"] in (1, 600)} == {"1", "600"}
