"""`safetensors-spark factory`."""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from safetensors_spark._commands import factory_report, tables
from safetensors_spark._errors import PipelineError, SafetensorsSparkError

if TYPE_CHECKING:
    from safetensors_spark._commands import Commands
    from safetensors_spark.factory import Pipeline
    from safetensors_spark.pipeline import Backend

_RUNTIMES = ("local", "processes", "threads", "sync", "ray")


def add_to(commands: Commands) -> None:
    parser = commands.add_parser("factory", help="curate datasets of the Hugging Face library")
    actions = parser.add_subparsers(title="actions", metavar="ACTION", required=True)
    text = "Run the pipeline that CONFIG describes, stage by stage. Finished stages are not computed again."
    one = actions.add_parser("run", help="run a pipeline that a YAML file describes", description=text)
    one.add_argument("config", metavar="CONFIG", help="a YAML file")
    one.add_argument("--out", required=True, metavar="FOLDER", help="the output folder, with a folder for each stage")
    one.add_argument(
        "--mode",
        default="incremental",
        choices=("incremental", "overwrite"),
        help="continue from what is there, or make all of it again; incremental by default",
    )
    one.add_argument(
        "--runtime", default="local", choices=_RUNTIMES, help="where tasks run; `local` means processes on this machine"
    )
    one.add_argument("--max-parallelism", type=int, metavar="N", help="tasks at a time; by default one for each core")
    one.add_argument(
        "--input", nargs="+", metavar="FILE", help="files or patterns, or a folder, instead of the configuration's"
    )
    one.add_argument("--dry-run", action="store_true", help="only print the plan")
    one.set_defaults(run=run)
    factory_report.add_to(actions)


def run(args: argparse.Namespace) -> int:
    try:
        return _run(args)
    except (SafetensorsSparkError, OSError):
        raise
    except Exception as error:
        # Of an operator: it has notes that say where.
        told = [f"{type(error).__name__}: {error}", *getattr(error, "__notes__", ())]
        raise PipelineError("\n".join(told)) from error


def _run(args: argparse.Namespace) -> int:
    from safetensors_spark.factory import load_config, plan
    from safetensors_spark.factory import run as run_pipeline
    from safetensors_spark.factory._input import DatasetInput, input_of
    from safetensors_spark.factory._sink import sink_of

    config = load_config(args.config)
    pipeline, sink, hooks = config.pipeline(), sink_of(config.sink), config.new_hooks()
    configured = config.input if isinstance(config.input, DatasetInput) else None
    source = config.input if args.input is None else input_of(args.input, configured)
    if source is None:
        raise PipelineError(f"{args.config} has no `input`: add one, or name files by --input.")
    dataset, backend = source.open(), _backend(args)
    if args.dry_run:
        found = plan(pipeline, dataset, args.out, mode=args.mode, backend=backend)
        print(found)
        return 1 if any(stage.changes for stage in found.stages) else 0
    left = run_pipeline(pipeline, dataset, args.out, mode=args.mode, backend=backend, hooks=hooks)
    tables.show(_table(pipeline, args.out))
    sink(left)
    return 0


def _backend(args: argparse.Namespace) -> Backend:
    from safetensors_spark.pipeline import create_backend

    try:
        return create_backend("processes" if args.runtime == "local" else args.runtime, args.max_parallelism)
    except ValueError as error:
        raise PipelineError(f"{error}. See `safetensors-spark factory run --help`.") from None


def _table(pipeline: Pipeline, out: str) -> tables.Table:
    rows = [tuple(map(str, row)) for row in _rows(pipeline, out)]
    return tables.Table(pipeline.name, ("stage", "operator", "rows in", "rows out"), rows)


def _rows(pipeline: Pipeline, out: str) -> Iterator[tuple[Any, ...]]:
    from safetensors_spark.factory._stage_manifest import read_manifest

    for stage in pipeline.stages:
        manifest = read_manifest(f"{out}/{stage.name}" if "://" in out else str(Path(out).expanduser() / stage.name))
        if manifest is None:
            raise PipelineError(
                f"the manifest of stage `{stage.name}` in {out} no longer exists: another process has changed it."
            )
        yield stage.name, "", f"{manifest['input_rows']:,}", f"{manifest['output_rows']:,}"
        # Each operator gets what the one before has left.
        counts = [manifest["operators"].get(one.id, {"rows": 0})["rows"] for one in stage.operators]
        for one, begin, end in zip(stage.operators, counts, [*counts[1:], manifest["output_rows"]], strict=True):
            yield "", one.id, f"{begin:,}", f"{end:,}"
