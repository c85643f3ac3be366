"""Runs the checks of a kind: `python -m reliability attack`, with `project` and the folders of tests on PYTHONPATH."""

import argparse
import sys
import time
import traceback
from collections.abc import Iterator

from reliability.check import Check
from reliability.environments import CHECKS, ENVIRONMENTS, checks_of, is_here
from reliability.results import record


def main() -> int:
    arguments = _arguments()
    chosen = [check for check in _here(arguments.environment) if check.kind == arguments.kind]
    if arguments.only:
        chosen = [check for check in chosen if check.name == arguments.only]
    failed = [check.name for check in chosen if not _holds(check, arguments.scale, arguments.record)]
    if failed:
        print(f"{len(failed)} of {len(chosen)} checks failed: {', '.join(failed)}")
    return 1 if failed else 0


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="reliability", description="Attack the project, or use it for long.")
    parser.add_argument("kind", choices=["attack", "soak"])
    parser.add_argument("--scale", type=float, default=1.0, help="how much: 1 is the long form, 0.01 that of make test")
    parser.add_argument("--only", metavar="NAME", choices=[check.name for check in CHECKS], help="this check alone")
    parser.add_argument("--environment", choices=ENVIRONMENTS, help="of this alone; by default all that are here")
    parser.add_argument("--record", action="store_true", help="write what was seen to docs/reliability.json")
    return parser.parse_args()


def _here(environment: str | None) -> Iterator[Check]:
    for one in [environment] if environment else filter(is_here, ENVIRONMENTS):
        yield from checks_of(one)


def _holds(check: Check, scale: float, recorded: bool) -> bool:
    """Print a row of the table, and what went wrong below it."""
    begun = time.monotonic()
    try:
        outcome = check.run(scale)
    except Exception:
        _row(check, time.monotonic() - begun, "failed", traceback.format_exc())
        return False
    seconds = time.monotonic() - begun
    _row(check, seconds, f"{outcome.attempts:,}", outcome.seen)
    if recorded:
        record(check, outcome, seconds)
    return True


def _row(check: Check, seconds: float, attempts: str, seen: str) -> None:
    print(f"{check.environment:9} {check.name:32} {seconds:8.1f} s {attempts:>10}  {seen}", flush=True)


if __name__ == "__main__":
    sys.exit(main())
