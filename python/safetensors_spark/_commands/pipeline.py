"""`safetensors-spark pipeline`."""

from __future__ import annotations

import argparse
import runpy
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from safetensors_spark._errors import PipelineError

if TYPE_CHECKING:
    from safetensors_spark._commands import Commands

# What the command on a cluster is told of the one here.
_PASSED = (
    "backend", "max_parallelism", "memory", "num_cpus", "num_gpus", "on_error", "no_resume", "entry_point", "dry_run",
)  # fmt: skip

# Not `__main__`: what a script does as a program is not done here.
_RUN_NAME = "__pipeline__"


def add_to(commands: Commands) -> None:
    parser = commands.add_parser(
        "pipeline",
        help="run a script with pipelines",
        description=(
            "Run SCRIPT, a Python file, and the function `main()` in it, whose `flow_backend()` is what is asked for "
            "here. Options may come before the script or behind it; others are the script's, as `sys.argv[1:]`."
        ),
    )
    _add_options(parser)
    parser.add_argument("script", metavar="SCRIPT", help="a Python file")
    parser.add_argument("args", nargs=argparse.REMAINDER, metavar="...", help="options, and arguments for the script")
    parser.set_defaults(run=run)


def _add_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--max-parallelism", type=int, metavar="N", help="tasks at a time; by default one for each core"
    )
    parser.add_argument("--memory", metavar="SIZE", help="of each task, such as 2GB")
    parser.add_argument("--num-cpus", type=float, metavar="N", help="of each task, on Ray")
    parser.add_argument("--num-gpus", type=float, metavar="N", help="of each task, on Ray")
    backends = ("processes", "threads", "sync", "ray", "spark")
    parser.add_argument("--backend", default="processes", choices=backends, help="where tasks run")
    parser.add_argument("--cluster", choices=("ray", "iris"), help="run the script itself there, too, as a Ray job")
    parser.add_argument(
        "--cluster-config", metavar="ADDRESS", help="of Ray's dashboard, such as http://head:8265; else RAY_ADDRESS"
    )
    parser.add_argument(
        "--on-error", default="raise", choices=("raise", "quarantine"), help="what to do with rows that fail"
    )
    parser.add_argument("--no-resume", action="store_true", help="do not reuse the results of earlier runs")
    parser.add_argument("--entry-point", default="main", metavar="NAME", help="the function to run")
    parser.add_argument("--dry-run", action="store_true", help="only print the plans")


def run(args: argparse.Namespace) -> int:
    from safetensors_spark.pipeline import create_backend, set_flow_backend

    behind = argparse.ArgumentParser(add_help=False, allow_abbrev=False)
    _add_options(behind)
    args, others = behind.parse_known_args(args.args, args)
    script = Path(args.script)
    if not script.is_file():
        raise FileNotFoundError(f"{script} does not exist")
    if args.cluster is not None:
        return _on_cluster(args, script, others)
    try:
        backend = create_backend(args.backend, args.max_parallelism, **_options(args))
    except ValueError as error:
        raise PipelineError(f"{error}. See `safetensors-spark pipeline --help`.") from None
    sys.argv = [str(script), *others]
    sys.path.insert(0, str(script.parent.absolute()))
    set_flow_backend(backend)
    try:
        found = runpy.run_path(str(script), run_name=_RUN_NAME)
        main = found.get(args.entry_point)
        if not callable(main):
            raise PipelineError(
                f"{script} has no function `{args.entry_point}`: define it, or name another one with --entry-point."
            )
        main()
    finally:
        set_flow_backend(None)
    return 0


def _on_cluster(args: argparse.Namespace, script: Path, others: Sequence[str]) -> int:
    from safetensors_spark._commands.submit import submit

    if args.cluster == "iris":
        raise PipelineError(
            "--cluster=iris: Iris is the cluster manager of another project, which no package brings. Use "
            "--cluster=ray, or --backend to choose where tasks run."
        )
    args.backend = "ray"
    options = []
    for name in _PASSED:
        value = getattr(args, name)
        option = f"--{name.replace('_', '-')}"
        options += [option] if value is True else [option, str(value)] if value not in (None, False) else []
    command = ["safetensors-spark", "pipeline", *options, script.name, *others]
    return submit(args.cluster_config, script.parent.absolute(), command)


def _options(args: argparse.Namespace) -> dict[str, Any]:
    asked = {"num_cpus": args.num_cpus, "num_gpus": args.num_gpus}
    resources = {name: value for name, value in asked.items() if value is not None}
    if resources and args.backend != "ray":
        raise PipelineError(f"{' and '.join(resources)}: only --backend=ray supports it")
    return {
        "resources": resources,
        "memory": args.memory,
        "dry_run": args.dry_run,
        "resume": not args.no_resume,
        "on_error": args.on_error,
    }
