"""The command `safetensors-spark`.

Exit codes, for every subcommand:

    0  done; nothing is wrong
    1  something is wrong: what was checked does not hold, or Spark cannot be used here
    2  the command could not do its work: wrong arguments, a missing extra, an unusable environment
    130  it was interrupted: the shell's number for programs that SIGINT ends
    141  whoever read the output went away, as `head` does: the shell's number for programs that this ends
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Sequence

import safetensors_spark
from safetensors_spark._commands import (
    cache,
    convert,
    demo,
    doctor,
    factory,
    inspect,
    jar_path,
    pipeline,
    publish,
    verify,
)
from safetensors_spark._errors import SafetensorsSparkError, printable

_COMMANDS = (jar_path, doctor, inspect, verify, convert, pipeline, factory, publish, cache, demo)


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command line (without arguments: this process's) and return its exit code."""
    args = parser().parse_args(argv)
    try:
        code = int(args.run(args))
        sys.stdout.flush()
        return code
    except BrokenPipeError:
        # Else Python says at its end that it cannot write what is left.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 141
    except KeyboardInterrupt:
        print("safetensors-spark: interrupted", file=sys.stderr)
        return 130
    except (SafetensorsSparkError, OSError, RuntimeError) as error:
        print(printable(f"safetensors-spark: {error}"), file=sys.stderr)
        return 2


def parser() -> argparse.ArgumentParser:
    """The parser of all commands."""
    whole = argparse.ArgumentParser(
        prog="safetensors-spark", description="Read and write safetensors files with Apache Spark."
    )
    whole.add_argument("--version", action="version", version=f"%(prog)s {safetensors_spark.__version__}")
    commands = whole.add_subparsers(title="commands", metavar="COMMAND", required=True)
    for command in _COMMANDS:
        command.add_to(commands)
    return whole
