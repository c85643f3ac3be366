"""What each row tells of its way."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import datasets
import pyarrow as pa  # type: ignore[import-untyped]
import pyarrow.parquet as pq  # type: ignore[import-untyped]
import pytest

from factory.conftest import Halves, Longer, Upper
from safetensors_spark.factory import (
    ChangedStageError,
    ContractError,
    Pipeline,
    Score,
    Stage,
    load_pipeline,
    run,
)
from safetensors_spark.factory.operators.exact_dedup import ExactDedup
from safetensors_spark.factory.operators.length import TextLength, WordCount
from safetensors_spark.pipeline import Backend, create_backend

SIZES: dict[str, Any] = {"shard_bytes": 16_000, "window_bytes": 6000}


class Labelled(Score):
    type = "labelled"
    version = "7"

    @property
    def reads(self) -> tuple[str, ...]:
        return ("n",)

    @property
    def writes(self) -> Mapping[str, pa.DataType]:
        return {"size_label": pa.string(), "is_odd": pa.bool_(), "share": pa.float32(), "list": pa.list_(pa.int8())}

    def score(self, batch: pa.RecordBatch) -> Any:
        numbers = batch["n"].to_pylist()
        return {
            "size_label": ["large" if n > 500 else "small" if n else None for n in numbers],
            "is_odd": [n % 2 == 1 for n in numbers],
            "share": [n / 4 if n % 2 else None for n in numbers],
            "list": [[1]] * len(numbers),
        }


def _recipe() -> Pipeline:
    first = Stage("first", [TextLength(), Labelled(), Longer(limit=99), Upper(), WordCount()], provenance=True)
    return Pipeline(
        "p", (first, Stage("plain", [Longer(limit=100)]), Stage("last", [Halves(), Labelled2()], provenance=True))
    )


class Labelled2(Score):
    type = "again"

    @property
    def reads(self) -> tuple[str, ...]:
        return ("half",)

    @property
    def writes(self) -> Mapping[str, pa.DataType]:
        return {"half_label": pa.string()}

    def score(self, batch: pa.RecordBatch) -> Any:
        return {"half_label": [text and text[:2] for text in batch["half"].to_pylist()]}


def _pairs(entries: list[dict[str, Any]], key: str) -> dict[str, Any]:
    assert len({one[key] for one in entries}) == len(entries)
    return {one[key]: next(value for name, value in one.items() if name != key) for one in entries}


def test_rows_tell_scores_tags_and_versions(rows: Any, tmp_path: Path, sync: Backend) -> None:
    found = run(_recipe(), rows, tmp_path, backend=sync, **SIZES)
    assert found["n"][:] == [n for n in range(101, 1000) for _ in range(2)]
    old, new = found[2 * (503 - 101)], found[2 * (503 - 101) + 1]
    assert _pairs(old["__fdf__/scores"], "field") == {"text_length": 9, "share": 503 / 4, "word_count": 2}
    assert old["__fdf__/tags"] == ["size_label=large", "is_odd=true"]
    assert new["__fdf__/tags"] == ["size_label=large", "is_odd=true", "half_label=B5"]
    assert new["__fdf__/scores"] == old["__fdf__/scores"]
    versions = {
        "first/text_length_1": "1",
        "first/labelled_1": "7",
        "first/longer_1": "1",
        "first/upper_1": "1",
        "first/word_count_1": "1",
        "last/halves_1": "1",
        "last/again_1": "1",
    }
    assert _pairs(old["__fdf__/operator_versions"], "operator") == versions
    assert list(_pairs(old["__fdf__/operator_versions"], "operator")) == list(versions)
    # A null is no score.
    assert _pairs(found[2 * (502 - 101)]["__fdf__/scores"], "field") == {"text_length": 9, "word_count": 2}


def test_dropped_rows_tell_what_they_have_passed(rows: Any, tmp_path: Path, sync: Backend) -> None:
    run(_recipe(), rows, tmp_path, backend=sync, **SIZES)
    lost = [
        row for path in sorted((tmp_path / "first" / "dropped").iterdir()) for row in pq.read_table(path).to_pylist()
    ]
    assert [row["n"] for row in lost] == list(range(100))
    assert lost[0]["__fdf__/tags"] == ["is_odd=false"]
    assert _pairs(lost[7]["__fdf__/scores"], "field") == {"text_length": 5, "share": 1.75}
    names = ["first/text_length_1", "first/labelled_1", "first/longer_1"]
    assert list(_pairs(lost[7]["__fdf__/operator_versions"], "operator")) == names


def test_features_and_bytes_are_those_of_any_backend(rows: Any, tmp_path: Path, sync: Backend) -> None:
    found = run(_recipe(), rows, tmp_path / "a", backend=sync, **SIZES)
    again = run(_recipe(), rows, tmp_path / "b", backend=create_backend("processes", 2, progress=False), **SIZES)
    assert found[:] == again[:]
    assert found.features["__fdf__/tags"] == datasets.List(datasets.Value("string"))
    stream = run(_recipe(), rows.to_iterable_dataset(2), tmp_path / "c", backend=sync, **SIZES)
    assert list(stream) == list(found)


def test_a_deduplicator_may_begin_such_a_stage(tmp_path: Path, sync: Backend, monkeypatch: pytest.MonkeyPatch) -> None:
    rows = datasets.Dataset.from_dict({"text": ["a", "b", "a"]})
    monkeypatch.setattr(ExactDedup, "version", "5")
    found = run(
        Pipeline("p", (Stage("s", [ExactDedup(), TextLength()], provenance=True),)), rows, tmp_path, backend=sync
    )
    names = [list(_pairs(one, "operator")) for one in found["__fdf__/operator_versions"]]
    assert names == [["s/exact_dedup_1", "s/text_length_1"]] * 2
    assert found["__fdf__/operator_versions"][0][0]["version"] == "5"
    (path,) = (tmp_path / "s" / "dropped").iterdir()
    assert list(_pairs(pq.read_table(path).to_pylist()[0]["__fdf__/operator_versions"], "operator")) == [
        "s/exact_dedup_1"
    ]


def test_rows_are_asked_for_it_in_yaml(rows: Any, tmp_path: Path, sync: Backend) -> None:
    text = "name: p\nstages:\n  - name: s\n    provenance: {}\n    operators: [{{type: word_count}}]\n"
    file = tmp_path / "p.yaml"
    file.write_text(text.format("true"))
    assert load_pipeline(file).stages[0].provenance
    run(load_pipeline(file), rows, tmp_path / "out", backend=sync)
    file.write_text(text.format("false"))
    with pytest.raises(ChangedStageError, match="`provenance` is False, and was True"):
        run(load_pipeline(file), rows, tmp_path / "out", backend=sync)


def test_its_fields_are_no_operators(rows: Any, tmp_path: Path, sync: Backend) -> None:
    class Own(Labelled2):
        @property
        def reads(self) -> tuple[str, ...]:
            return ("n",)

        @property
        def writes(self) -> Mapping[str, pa.DataType]:
            return {"__fdf__/tags": pa.string()}

    with pytest.raises(ContractError, match="fields of `__fdf__/` are the factory's own"):
        run(Pipeline("p", (Stage("s", [Own()]),)), rows, tmp_path, backend=sync)
