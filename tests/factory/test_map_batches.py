"""Functions of users on batches."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import pyarrow as pa  # type: ignore[import-untyped]
import pytest

from safetensors_spark.factory import ChangedStageError, ContractError, NewRows, Pipeline, Stage, load_pipeline, run
from safetensors_spark.factory.operators.map_batches import MapBatches
from safetensors_spark.pipeline import Backend, create_backend

YAML = """
name: own
stages:
  - name: s
    operators:
      - type: map_batches
        function: my_functions:doubled
        inputs: [n]
        outputs: {twice: int64, pair: "list<int32>[2]"}
"""
MODULE = """
def doubled(batch):
    numbers = batch["n"].to_pylist()
    return {"twice": [2 * n for n in numbers], "pair": [[n, n] for n in numbers]}
"""


def _doubled(batch: pa.RecordBatch) -> dict[str, Any]:
    return {"twice": [2 * n for n in batch["n"].to_pylist()]}


def test_a_function_makes_fields(rows: Any, tmp_path: Path) -> None:
    recipe = Pipeline("p", (Stage("s", [MapBatches(function=_doubled, inputs=("n",), outputs={"twice": "int64"})]),))
    found = run(recipe, rows, tmp_path, backend=create_backend("processes", 2, progress=False))
    assert found["twice"][:] == [2 * n for n in range(1000)]
    assert found[0]["__fdf__/generated_by"] == ["map_batches_1"]
    assert recipe.stages[0].config[0]["function"] == f"{__name__}:_doubled"


def test_a_function_makes_rows(rows: Any, tmp_path: Path, sync: Backend) -> None:
    def again(batch: pa.RecordBatch) -> NewRows:
        return NewRows([0], {"copy": [True]})

    recipe = Pipeline("p", (Stage("s", [MapBatches(function=again, inputs=("n",), outputs={"copy": "bool"})]),))
    assert len(run(recipe, rows, tmp_path, backend=sync)) == 1001


def test_a_changed_function_is_a_changed_stage(rows: Any, tmp_path: Path, sync: Backend) -> None:
    for factor in (1, 2):

        def times(batch: pa.RecordBatch, factor: int = factor) -> dict[str, Any]:
            return {"twice": [factor * n for n in batch["n"].to_pylist()]}

        recipe = Pipeline("p", (Stage("s", [MapBatches(function=times, inputs=("n",), outputs={"twice": "int64"})]),))
        if factor == 2:
            with pytest.raises(ChangedStageError, match="code of operators"):
                run(recipe, rows, tmp_path, backend=sync)
        else:
            run(recipe, rows, tmp_path, backend=sync)


def test_a_configuration_names_a_function(
    rows: Any, tmp_path: Path, sync: Backend, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.delitem(sys.modules, "my_functions", raising=False)
    (tmp_path / "my_functions.py").write_text(MODULE)
    (tmp_path / "own.yaml").write_text(YAML)
    found = run(load_pipeline(tmp_path / "own.yaml"), rows, tmp_path / "out", backend=sync)
    assert found[7]["pair"] == [7, 7]
    assert found.features["pair"].length == 2


@pytest.mark.parametrize(
    ("change", "told"),
    [
        ({"function": "no_module:f"}, "names no function"),
        ({"function": "math:pi"}, "is a float, expected a function"),
        ({"outputs": {"a": "int65"}}, "`int65` is not a type"),
        ({"outputs": {}}, "at least 1"),
    ],
)
def test_what_names_nothing_is_told(change: dict[str, Any], told: str) -> None:
    given: dict[str, Any] = {"function": _doubled, "inputs": ["n"], "outputs": {"twice": "int64"}}
    with pytest.raises(ValueError, match=told):
        MapBatches(**given | change)


def test_what_is_not_declared_is_refused(rows: Any, tmp_path: Path, sync: Backend) -> None:
    recipe = Pipeline("p", (Stage("s", [MapBatches(function=_doubled, inputs=("n",), outputs={"other": "int64"})]),))
    with pytest.raises(ContractError, match="map_batches_1 returned the field `twice`, which it does not declare"):
        run(recipe, rows, tmp_path, backend=sync)
