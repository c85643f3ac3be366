"""Stages as assets of Dagster, by Dagster itself."""

import json
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest
from pydantic import Field

from factory.conftest import Longer, Upper
from safetensors_spark.factory import Hook, PartitionEnd, Pipeline, Stage, report, run
from safetensors_spark.factory.operators.length import TextLength
from safetensors_spark.pipeline import Backend

if find_spec("dagster") is None:
    pytest.skip("Dagster has no wheels for this Python", allow_module_level=True)

import dagster

from safetensors_spark.factory.dagster import DagsterLog, dagster_assets


class Fails(Upper):
    type = "fails"

    def refine(self, batch: Any) -> Any:
        raise ArithmeticError("not so loud")


def _recipe(limit: int = 99, last: Any = Upper) -> Pipeline:
    stages = (Stage("a-b.c", [TextLength()]), Stage("short", [Longer(limit=limit)]), Stage("loud", [last()]))
    return Pipeline("web-1.0", stages)


@pytest.fixture
def instance(monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.setenv("DAGSTER_DISABLE_TELEMETRY", "1")
    with dagster.DagsterInstance.ephemeral() as found:
        yield found


def _metadata(result: Any) -> dict[str, dict[str, Any]]:
    """By stage, in the order of their materializations."""
    found = [event.step_materialization_data.materialization for event in result.get_asset_materialization_events()]
    return {one.asset_key.path[-1]: {name: value.value for name, value in one.metadata.items()} for one in found}


def test_each_stage_is_an_asset_and_is_made_once(rows: Any, tmp_path: Path, sync: Backend, instance: Any) -> None:
    opened = []

    def source() -> Any:
        opened.append(True)
        return rows

    assets = dagster_assets(_recipe(), source, tmp_path, backend=sync, key_prefix=["raw"], deps=["texts"])
    assert not opened
    keys = [dagster.AssetKey(["raw", "web-1.0", name]) for name in ("a-b.c", "short", "loud")]
    assert {key: set(assets.asset_deps[key]) for key in assets.keys} == {
        keys[0]: {dagster.AssetKey("texts")},
        keys[1]: {keys[0]},
        keys[2]: {keys[1]},
    }
    assert {assets.get_asset_spec(key).group_name for key in keys} == {"web_1_0"}
    first = dagster.materialize([assets], instance=instance)
    assert first.success
    found = _metadata(first)
    assert list(found) == ["a-b.c", "short", "loud"]
    short = found["short"]
    assert [short[name] for name in ("rows_in", "rows_out", "dropped", "dagster/row_count")] == [1000, 900, 100, 900]
    assert (short["shards"], short["shards_made"], short["path"]) == (1, 1, str(tmp_path / "short"))
    assert short["seconds"] > 0
    assert "| longer_1 | 1,000 | 100 |" in short["operators"]
    files = {path: path.stat().st_mtime_ns for path in tmp_path.rglob("*.parquet")}
    again = dagster.materialize([assets], instance=instance)
    assert [one["shards_made"] for one in _metadata(again).values()] == [0, 0, 0]
    assert {path: path.stat().st_mtime_ns for path in tmp_path.rglob("*.parquet")} == files
    assert len(run(_recipe(), rows, tmp_path, backend=sync)) == 900


def test_some_stages_are_selected(rows: Any, tmp_path: Path, sync: Backend, instance: Any) -> None:
    assets = dagster_assets(_recipe(), rows, tmp_path, backend=sync)
    key = dagster.AssetKey(["web-1.0", "short"])
    assert list(_metadata(dagster.materialize([assets], selection=[key], instance=instance))) == ["short"]
    assert sorted(path.parent.name for path in tmp_path.rglob("manifest.json")) == ["a-b.c", "short"]
    assert json.loads((tmp_path / "pipeline.json").read_text())["stages"] == ["a-b.c", "short", "loud"]
    assert [stage.name for stage in report(tmp_path).stages] == ["a-b.c", "short"]


def test_stages_before_one_that_fails_are_materialized(rows: Any, tmp_path: Path, sync: Backend, instance: Any) -> None:
    assets = dagster_assets(_recipe(last=Fails), rows, tmp_path, backend=sync)
    result = dagster.materialize([assets], instance=instance, raise_on_error=False)
    assert not result.success
    assert list(_metadata(result)) == ["a-b.c", "short"]
    with pytest.raises(ArithmeticError, match="not so loud"):
        dagster.materialize([assets], instance=instance)


def test_the_mode_is_chosen_for_a_run(rows: Any, tmp_path: Path, sync: Backend, instance: Any) -> None:
    def made(assets: Any, **config: Any) -> Any:
        ops = {"ops": {"web_1_0": {"config": config}}}
        result = dagster.materialize([assets], instance=instance, run_config=ops, raise_on_error=False)
        return _metadata(result)["short"]["rows_out"] if result.success else None

    before, after = (dagster_assets(_recipe(limit), rows, tmp_path, backend=sync) for limit in (99, 499))
    codes = [
        next(iter(one.get_asset_spec(key).code_version for key in one.keys if key.path[-1] == "short"))
        for one in (before, after)
    ]
    assert codes[0] != codes[1]
    assert made(before) == 900
    assert made(after) is None
    assert made(after, mode="overwrite") == 500
    assert made(after) == 500
    assert made(after, mode="again") is None


def test_hooks_and_options_of_assets(rows: Any, tmp_path: Path, sync: Backend, instance: Any) -> None:
    class Seen(Hook):
        shards: list[int] = Field(default_factory=list)

        def on_partition_end(self, event: PartitionEnd) -> None:
            self.shards.append(event.shard)

    hook = Seen()
    assets = dagster_assets(
        _recipe(), rows, tmp_path, backend=sync, hooks=[hook], group_name="texts", pool="disk", op_tags={"team": "data"}
    )
    assert dagster.materialize([assets], instance=instance).success
    assert hook.shards == [0, 0, 0]
    assert (assets.op.pool, assets.op.tags["team"]) == ("disk", "data")
    assert {spec.group_name for spec in assets.specs} == {"texts"}


def test_an_op_logs_a_run(rows: Any, tmp_path: Path, sync: Backend, instance: Any) -> None:
    def curate(context: dagster.OpExecutionContext) -> int:
        return len(run(_recipe(), rows, tmp_path, backend=sync, hooks=[DagsterLog(context=context)]))

    op = dagster.op(curate)
    job = dagster.job(name="job")(lambda: op() and None)
    result = job.execute_in_process(instance=instance)
    assert result.output_for_node("curate") == 900
    told = [entry.user_message for entry in instance.all_logs(result.run_id)]
    assert "stage short begins: 1 shard" in told
    assert "stage short is whole: 900 rows" in told
    assert sum(one.startswith("stage short, shard 0: 1,000 rows in, 900 rows out, ") for one in told) == 1


def test_provenance_is_another_version_of_a_stage(rows: Any, tmp_path: Path) -> None:
    codes = set()
    for provenance in (False, True):
        recipe = Pipeline("p", (Stage("s", [TextLength()], provenance=provenance),))
        assets = dagster_assets(recipe, rows, tmp_path)
        codes |= {assets.get_asset_spec(key).code_version for key in assets.keys}
    assert len(codes) == 2
