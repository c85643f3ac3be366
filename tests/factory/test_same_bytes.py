"""Shards that look alike, and datasets and operators that are easily taken for others."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import datasets
import pyarrow as pa  # type: ignore[import-untyped]
import pyarrow.compute as pc  # type: ignore[import-untyped]
import pytest
from datasets.distributed import split_dataset_by_node

from factory.conftest import Longer, Upper
from safetensors_spark.factory import (
    ChangedStageError,
    ConfigError,
    ContractError,
    Filter,
    Generator,
    NewRows,
    Operator,
    Pipeline,
    Refiner,
    Score,
    Stage,
    mix,
    run,
)
from safetensors_spark.factory.operators.exact_dedup import ExactDedup
from safetensors_spark.factory.operators.expression_filter import ExpressionFilter
from safetensors_spark.factory.operators.length import WordCount
from safetensors_spark.pipeline import Backend, create_backend


def _stages(*operators: Operator) -> Pipeline:
    return Pipeline("p", tuple(Stage(f"s{number}", [one]) for number, one in enumerate(operators)))


def _rows_of(shards: list[int]) -> Iterator[dict[str, Any]]:
    for shard in shards:
        for row in range(4):
            yield {"text": f"shard {shard} row {row}"}


def _stream(shards: int) -> Any:
    return datasets.IterableDataset.from_generator(_rows_of, gen_kwargs={"shards": list(range(1, shards + 1))})


def _texts(found: Any) -> list[str]:
    return [row["text"] for row in found]


def test_shards_of_equal_sizes_are_told_apart_behind_the_first_stage(tmp_path: Path, sync: Backend) -> None:
    expected = [row["text"] for row in _rows_of([1, 2, 3, 4])]
    assert _texts(run(_stages(WordCount(), ExactDedup()), _stream(4), tmp_path / "a", backend=sync)) == expected
    recipe = _stages(WordCount(), WordCount(output="again"))
    run(recipe, _stream(3), tmp_path / "b", backend=sync)
    assert _texts(run(recipe, _stream(4), tmp_path / "b", backend=sync)) == expected


@pytest.mark.parametrize("mode", ["incremental", "overwrite"])
def test_other_rows_of_equal_sizes_are_made_anew(mode: Any, tmp_path: Path, sync: Backend) -> None:
    recipe = _stages(WordCount(), ExactDedup())
    texts = [["x cat", "x cat", "x dog", "x dog"], ["y cat", "y dog", "y cat", "y dog"]]
    found = []
    for some in texts:
        rows = datasets.Dataset.from_dict({"text": some})
        found.append(_texts(run(recipe, rows, tmp_path, backend=sync, mode=mode)))
    assert found == [["x cat", "x dog"], ["y cat", "y dog"]]


def test_another_epoch_or_node_is_another_input(tmp_path: Path, sync: Backend) -> None:
    rows = datasets.Dataset.from_dict({"text": [f"t{number}" for number in range(40)]})
    stream = rows.to_iterable_dataset()
    recipe = _stages(WordCount())
    first, second = (split_dataset_by_node(stream, rank, 2) for rank in range(2))
    assert _texts(run(recipe, first, tmp_path / "a", backend=sync)) == _texts(first)
    assert _texts(run(recipe, second, tmp_path / "a", backend=sync)) == _texts(second)
    shuffled = stream.shuffle(seed=1, buffer_size=10)
    before = _texts(run(recipe, shuffled, tmp_path / "b", backend=sync))
    shuffled.set_epoch(3)
    again = _texts(run(recipe, shuffled, tmp_path / "b", backend=sync))
    assert sorted(again) == sorted(before)
    assert again == _texts(run(recipe, shuffled, tmp_path / "c", backend=sync)) != before


_OWN = """
from functools import cached_property
from typing import ClassVar
import pyarrow as pa
from pydantic import PrivateAttr
from safetensors_spark.factory import Score

class Own(Score):
    type = "own"
    LIMIT: ClassVar[int] = 3
    _limit: int = PrivateAttr(3)

    class Inner:
        limit = 3

    @cached_property
    def cached(self):
        return 3

    reads = property(lambda self: ("text",))
    writes = property(lambda self: {"k": pa.int64()})

    def score(self, batch):
        return {"k": [self.LIMIT + self._limit + self.Inner.limit + self.cached] * batch.num_rows}
"""
_RUN = """
import sys, datasets
from own_limits import Own
from safetensors_spark.factory import *
from safetensors_spark.pipeline import create_backend
rows = datasets.Dataset.from_dict({"text": ["a"]})
found = run(Pipeline("p", (Stage("s", [Own()]),)), rows, sys.argv[1], backend=create_backend("sync", progress=False))
print("made", found[0]["k"])
"""


def test_constants_of_an_operator_are_its_code(tmp_path: Path) -> None:
    def again(content: str) -> subprocess.CompletedProcess[str]:
        (tmp_path / "own_limits.py").write_text(content)
        command = [sys.executable, "-B", "-c", _RUN, str(tmp_path / "out")]
        return subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)

    for _ in range(2):
        done = again(_OWN)
        assert "made 12" in done.stdout, done.stderr
    for line in ("LIMIT: ClassVar[int] = 3", "PrivateAttr(3)", "        limit = 3", "        return 3"):
        changed = again(_OWN.replace(line, line.replace("3", "30")))
        assert changed.returncode != 0
        assert ChangedStageError.__name__ in changed.stderr


class _OfText:
    @property
    def reads(self) -> tuple[str, ...]:
        return ("text",)


class Masked(_OfText, Filter):
    type = "masked"

    def reasons(self, batch: pa.RecordBatch) -> Any:
        return pc.equal(batch["text"], "a")


class Half(_OfText, Score):
    type = "half"
    how: str = "floats"

    @property
    def writes(self) -> Mapping[str, pa.DataType]:
        return {"k": pa.list_(pa.int64()) if self.how == "lists" else pa.int64()}

    def score(self, batch: pa.RecordBatch) -> Any:
        if self.how == "stops":
            next(iter([]))
        return {"k": [[0.5]] * batch.num_rows if self.how == "lists" else [0.5] * batch.num_rows}


class Orphans(_OfText, Generator):
    type = "orphans"

    @property
    def writes(self) -> Mapping[str, pa.DataType]:
        return {"k": pa.int64()}

    def generate(self, batch: pa.RecordBatch) -> Any:
        return NewRows([0, None], {"k": [7, 8]})


@pytest.mark.parametrize(
    ("operator", "told"),
    [
        (Masked(), "masked_1 returned bool for reasons"),
        (Half(), "half_1 returned values of `k` that are no int64"),
        (Half(how="lists"), "half_1 returned values of `k` that are no list"),
        (Orphans(), "orphans_1 returned parents that are no rows"),
    ],
)
def test_what_operators_may_not_return(operator: Operator, told: str, tmp_path: Path, sync: Backend) -> None:
    rows = datasets.Dataset.from_dict({"text": ["a", "b"]})
    with pytest.raises(ContractError, match=told):
        run(_stages(operator), rows, tmp_path, backend=sync)


@pytest.mark.parametrize("backend", ["sync", "processes"])
def test_an_operator_that_stops_an_iteration_ends_the_run(backend: Any, tmp_path: Path) -> None:
    rows = datasets.Dataset.from_dict({"text": ["a", "b"]})
    with pytest.raises(RuntimeError, match="StopIteration was raised") as raised:
        run(_stages(Half(how="stops")), rows, tmp_path, backend=create_backend(backend, progress=False))
    assert "In operator `half_1`" in raised.value.__notes__


@pytest.mark.parametrize("kind", [pa.time32("s"), pa.decimal256(50, 3), pa.date64(), pa.list_(pa.time32("s"))], ids=str)
def test_types_that_operators_cannot_have(kind: pa.DataType, tmp_path: Path, sync: Backend) -> None:
    table = pa.table({"n": [20, 30], "at": pa.nulls(2, kind)})
    rows = datasets.Dataset(table)
    # They pass, if no operator asks for them.
    assert len(run(_stages(Longer(limit=25)), rows, tmp_path / "a", backend=sync)) == 1
    with pytest.raises(ContractError, match="longer_1 reads `at` of the type"):
        run(_stages(Longer(field="at", limit=1)), rows, tmp_path / "b", backend=sync)


@pytest.mark.parametrize(
    "kind", [pa.string_view(), pa.list_(pa.binary_view()), pa.struct([("a", pa.struct([]))])], ids=str
)
def test_types_that_files_cannot_have(kind: pa.DataType, tmp_path: Path, sync: Backend) -> None:
    rows = datasets.Dataset(pa.table({"n": [20, 30], "odd": pa.nulls(2, kind)}))
    with pytest.raises(ContractError, match=r"rows have `odd` of the type .*, which the factory cannot keep\. Cast it"):
        run(_stages(Longer(limit=25)), rows, tmp_path, backend=sync)
    assert len(run(_stages(Longer(limit=25)), rows.remove_columns("odd"), tmp_path, backend=sync)) == 1


def test_a_dataset_with_a_transform_is_refused(tmp_path: Path, sync: Backend) -> None:
    rows = datasets.Dataset.from_dict({"text": ["a b"]}).with_transform(lambda batch: {"text": ["X"]})
    with pytest.raises(ConfigError, match="has a transform"):
        run(_stages(WordCount()), rows, tmp_path, backend=sync)


def test_nothing_may_be_left_of_a_stream(tmp_path: Path, sync: Backend) -> None:
    stream = datasets.Dataset.from_dict({"text": ["a"]}).to_iterable_dataset()
    for _ in range(2):
        found = run(_stages(ExpressionFilter(expression="text = 'z'")), stream, tmp_path, backend=sync)
        assert isinstance(found, datasets.IterableDataset)
        assert list(found) == []
        assert list(found.features) == ["text"]


_SCRIPT = """
import sys, datasets
from safetensors_spark.factory import Pipeline, Stage, run
from safetensors_spark.factory.operators.length import WordCount

def louder(row):
    return {"text": row["text"] + "!"}

def rows():
    yield {"text": "b"}

if __name__ == "__main__":
    one = datasets.Dataset.from_dict({"text": ["a"]}).to_iterable_dataset()
    streams = [one.map(louder), one.map(lambda row: {"text": row["text"] + "?"}), one.filter(lambda row: True),
               datasets.IterableDataset.from_generator(rows)]
    for number, stream in enumerate(streams):
        print([row["text"] for row in run(Pipeline("p", (Stage("s", [WordCount()]),)), stream, f"out{number}")])
"""


def test_streams_may_have_functions_of_a_script(tmp_path: Path) -> None:
    (tmp_path / "script.py").write_text(_SCRIPT)
    done = subprocess.run([sys.executable, "script.py"], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert done.stdout.split() == ["['a!']", "['a?']", "['a']", "['b']"]


@pytest.mark.parametrize("name", ["x[1]", "x?y*z", "x y#%ü", "[!a]"])
def test_folders_may_be_named_like_patterns(name: str, tmp_path: Path, sync: Backend) -> None:
    rows = datasets.Dataset.from_dict({"text": ["a", "b"]})
    for source in (rows, rows.to_iterable_dataset()):
        found = run(_stages(WordCount(), Upper()), source, tmp_path / name, backend=sync)
        assert _texts(found) == ["A", "B"]


def test_dropped_rows_are_put_in_again_without_their_reasons(tmp_path: Path, sync: Backend) -> None:
    rows = datasets.Dataset.from_dict({"text": ["a", "b c"]})
    run(_stages(ExpressionFilter(expression="text = 'z'")), rows, tmp_path / "a", backend=sync)
    files = str(tmp_path / "a" / "s0" / "dropped" / "*.parquet")
    lost = datasets.load_dataset("parquet", data_files=files, split="train", cache_dir=str(tmp_path / "cache"))
    with pytest.raises(ContractError, match="rows have the field `__fdf__/dropped_by`"):
        run(_stages(WordCount()), lost, tmp_path / "b", backend=sync)
    again = lost.remove_columns(["__fdf__/dropped_by", "__fdf__/dropped_because"])
    assert len(run(_stages(WordCount()), again, tmp_path / "b", backend=sync)) == 2


def test_a_stage_has_another_name_than_the_file_beside_it() -> None:
    with pytest.raises(ConfigError, match=r"'pipeline.json' is not a valid stage name"):
        Stage("pipeline.json", [WordCount()])


def test_mixtures_of_nothing_and_of_too_much() -> None:
    one = datasets.Dataset.from_dict({"text": ["a"]})
    with pytest.raises(ConfigError, match="dataset 2 of the mixture has no rows"):
        mix([(one, 0.5), (one.select([]), 0.5)])
    with pytest.raises(ValueError, match="sum of the weights is too large"):
        mix([(one, 1e308), (one, 1e308)])


class Numbers(Refiner):
    """Makes numbers of texts."""

    type = "numbers"
    to: str = "int64"

    @property
    def reads(self) -> tuple[str, ...]:
        return ("text",)

    @property
    def writes(self) -> dict[str, Any]:
        return {"text": pa.type_for_alias(self.to)}

    def refine(self, batch: pa.RecordBatch) -> Any:
        return {"text": batch.column(0).cast(pa.type_for_alias(self.to))}


def test_rows_that_are_dropped_keep_values_of_their_type(tmp_path: Path, sync: Backend) -> None:
    rows = datasets.Dataset.from_dict({"n": [1, 20], "text": ["1", "2"]})
    for stage in (
        Stage("s", [Longer(limit=10), Numbers()]),
        Stage("s", [Numbers(), Longer(limit=10)]),
        Stage("s", [Numbers()], on_error="quarantine"),
    ):
        with pytest.raises(ContractError, match="numbers_1 writes `text` as int64, and rows have string: those that"):
            run(Pipeline("p", (stage,)), rows, tmp_path / "no", backend=sync)
    found = run(Pipeline("p", (Stage("a", [Numbers()]), Stage("b", [Longer(limit=10)]))), rows, tmp_path, backend=sync)
    assert found["text"][:] == [2]
    wider = Pipeline("p", (Stage("s", [Longer(limit=10), Numbers(to="large_string")]),))
    assert run(wider, rows, tmp_path / "wider", backend=sync)["text"][:] == ["2"]
