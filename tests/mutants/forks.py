"""Runs pytest in forks of a process that has imported what tests take long to import.

Each line of standard input is a JSON object: `package`, the folder of the package under test; `tests`, pytest's
arguments; and `seconds`, of a processor, after which a mutant is taken for one that never ends. The answer is a line
with pytest's exit code, or that of the signal, and the seconds that it took.
"""

from __future__ import annotations

import importlib.util
import json
import os
import resource
import signal
import sys
import time
from contextlib import suppress
from typing import NoReturn

import pytest

HEAVY = (
    "numpy",
    "pyarrow.parquet",
    "fsspec",
    "hypothesis",
    "jsonschema",
    "pyspark.sql",
    "huggingface_hub",
    "pandas",
    "safetensors.numpy",
)


# A mutant may wait for ever without a processor.
_LONGEST = 600


def main() -> None:
    for name in HEAVY:
        if importlib.util.find_spec(name.partition(".")[0]):
            importlib.import_module(name)
    for line in sys.stdin:
        print(*run(**json.loads(line)), flush=True)


def run(package: str, tests: list[str], seconds: int) -> tuple[int, float]:
    child = os.fork()
    if child == 0:
        _test(package, tests, seconds)
    ends = time.monotonic() + _LONGEST
    done = 0
    while not done:
        time.sleep(0.02)
        if time.monotonic() > ends:
            _kill(child)
        done, status, usage = os.wait4(child, os.WNOHANG)
    _kill(child)
    return os.waitstatus_to_exitcode(status), usage.ru_utime + usage.ru_stime


def _test(package: str, tests: list[str], seconds: int) -> NoReturn:
    resource.setrlimit(resource.RLIMIT_CPU, (seconds, seconds))
    # A group of its own, so that what tests start ends with it.
    os.setsid()
    silent = os.open(os.environ.get("MUTANTS_LOG", os.devnull), os.O_WRONLY | os.O_CREAT | os.O_APPEND)
    for stream in (0, 1, 2):
        os.dup2(silent, stream)
    sys.path.insert(0, package)
    os.environ["PYTHONPATH"] = package
    os._exit(int(pytest.main(["-x", "-q", "-p", "no:cacheprovider", *tests])))


def _kill(group: int) -> None:
    with suppress(ProcessLookupError):
        os.killpg(group, signal.SIGKILL)


if __name__ == "__main__":
    main()
