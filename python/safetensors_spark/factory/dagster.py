"""Stages of the factory as assets of Dagster: `dagster_assets(pipeline, source, out)`.

import dagster
from safetensors_spark.factory import load_config
from safetensors_spark.factory.dagster import dagster_assets

config = load_config("web.yaml")
web = dagster_assets(config.pipeline(), config.input.open, "web", hooks=config.new_hooks())
defs = dagster.Definitions(assets=[web])
"""

# Dagster looks at the types of arguments themselves, so that annotations are none of the future here.
import os
import re
from collections.abc import Iterator, Sequence
from typing import Any

from pydantic import Field, PrivateAttr

from safetensors_spark._extras import require

require("factory-dagster", ("dagster",))

import dagster  # noqa: E402

from safetensors_spark._errors import counted  # noqa: E402
from safetensors_spark.factory._hook import Hook, PartitionEnd, StageEnd, StageStart  # noqa: E402
from safetensors_spark.factory._pipeline import Pipeline  # noqa: E402
from safetensors_spark.factory._run import run_stages  # noqa: E402
from safetensors_spark.pipeline import Backend  # noqa: E402
from safetensors_spark.pipeline._fingerprint import fingerprint  # noqa: E402

__all__ = ["DagsterLog", "FactoryRun", "dagster_assets"]


class FactoryRun(dagster.Config):
    """What may be chosen when assets are materialized."""

    mode: str = Field(default="incremental", description="`overwrite` makes all again, `incremental` what is missing.")


class DagsterLog(Hook):
    """Logs stages and shards to the context of an op or an asset.

        run(pipeline, dataset, "web", hooks=[DagsterLog(context=context)])

    Attributes:
        ended: the stages that are whole, as they came.
    """

    type = "dagster"
    context: Any = Field(description="What Dagster gives the function of an op or an asset.")
    _ended: list[StageEnd] = PrivateAttr(default_factory=list)

    @property
    def ended(self) -> tuple[StageEnd, ...]:
        return tuple(self._ended)

    def on_stage_start(self, event: StageStart) -> None:
        self.context.log.info(f"stage {event.stage} begins: {counted(event.shards, 'shard')}")

    def on_partition_end(self, event: PartitionEnd) -> None:
        self.context.log.info(
            f"stage {event.stage}, shard {event.shard}: {event.rows_in:,} rows in, {event.rows_out:,} rows out, "
            f"{event.seconds:,.2f} seconds"
        )

    def on_stage_end(self, event: StageEnd) -> None:
        # First: a log that fails loses no stage.
        self._ended.append(event)
        self.context.log.info(f"stage {event.stage} is whole: {counted(event.manifest['output_rows'], 'row')}")


def dagster_assets(
    pipeline: Pipeline,
    source: Any,
    out: str | os.PathLike[str],
    *,
    backend: Backend | None = None,
    hooks: Sequence[Hook] = (),
    key_prefix: Sequence[str] = (),
    group_name: str | None = None,
    deps: Sequence[Any] = (),
    **options: Any,
) -> Any:
    """The stages of a pipeline as assets, each of which depends on the one before.

    They are one definition, whose op calls `run` once: what is there of the same rows and recipe is not made again. If
    only some stages are selected, the others up to the last of these are made too where they do not exist. The run's
    configuration takes `mode`, as `run` does. Materializations tell rows, shards, seconds, and where the files are.
    When a stage fails, those before it are materialized.

    Args:
        source: the dataset, or a function without arguments that opens it, which is called in each run.
        out: the folder of the run, seen from where ops run.
        backend: where tasks run; by default processes of the machine of the op.
        hooks: further hooks.
        key_prefix: what keys begin with; behind it are the names of pipeline and stage.
        group_name: of the assets; by default the pipeline's name.
        deps: what the first stage depends on, such as the asset of the dataset.
        options: of `dagster.multi_asset`, such as `retry_policy` or `pool`.

    Returns a `dagster.AssetsDefinition`.
    """
    name = re.sub(r"[^A-Za-z0-9_]", "_", pipeline.name)
    keys = {stage.name: dagster.AssetKey([*key_prefix, pipeline.name, stage.name]) for stage in pipeline.stages}
    before = [list(deps), *([key] for key in keys.values())]
    specs = [
        dagster.AssetSpec(
            keys[stage.name],
            deps=needed,
            description=f"Rows that {', '.join(one.id for one in stage.operators)} leave.",
            group_name=group_name or name,
            # Of parameters alone: a definition is loaded often, and files of models are large.
            code_version=fingerprint([stage.config, stage.on_error, stage.provenance]),
            kinds={"parquet"},
        )
        for stage, needed in zip(pipeline.stages, before, strict=False)
    ]

    def stages(context: dagster.AssetExecutionContext, config: FactoryRun) -> Iterator[Any]:
        log = DagsterLog(context=context)
        chosen = [stage for stage, key in keys.items() if key in context.selected_asset_keys]
        last = next(stage for stage in reversed(list(keys)) if stage in chosen)
        failed = None
        try:
            dataset = source() if callable(source) else source
            run_stages(pipeline, dataset, out, config.mode, backend, [log, *hooks], last=last)  # type: ignore[arg-type]
        except Exception as error:
            failed = error
        for event in log.ended:
            if event.stage in chosen:
                yield dagster.MaterializeResult(asset_key=keys[event.stage], metadata=_metadata(event))
        if failed is not None:
            raise failed

    return dagster.multi_asset(name=name, specs=specs, can_subset=True, **options)(stages)


def _metadata(event: StageEnd) -> dict[str, Any]:
    manifest, value = event.manifest, dagster.MetadataValue
    operators = manifest["operators"]
    lines = [f"| {name} | {one['rows']:,} | {one['dropped']:,} |" for name, one in operators.items()]
    found = {
        "dagster/row_count": value.int(manifest["output_rows"]),
        "rows_in": value.int(manifest["input_rows"]),
        "rows_out": value.int(manifest["output_rows"]),
        "dropped": value.int(sum(one["dropped"] for one in operators.values())),
        "shards": value.int(len(manifest["shards"])),
        "shards_made": value.int(event.shards_made),
        "seconds": value.float(event.seconds),
        "path": value.path(event.folder),
        "operators": value.md("\n".join(["| operator | rows | dropped |", "|---|---:|---:|", *lines])),
    }
    if profiles := manifest.get("profiles"):
        found["profiles"] = value.json(profiles)
    return found
