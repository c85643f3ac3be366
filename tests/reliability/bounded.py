"""Calls a function in a process of its own, which has so much memory and so much time.

`python -m reliability.bounded MODULE FUNCTION ARGUMENTS` is that process.
"""

import json
import os
import resource
import subprocess
import sys
from collections.abc import Callable
from importlib import import_module
from typing import Any

# Of addresses: libraries reserve far more than they use.
ADDRESSES = 6 << 30


def call(work: Callable[..., Any], *arguments: Any, seconds: float, addresses: int = ADDRESSES) -> Any:
    """What a function of a module returns, as JSON. Raises AssertionError if it raises, dies, or is late."""
    command = [sys.executable, "-m", "reliability.bounded", work.__module__, work.__name__, json.dumps(arguments)]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path)), "ADDRESSES": str(addresses)}
    try:
        done = subprocess.run(command, capture_output=True, text=True, env=environment, timeout=seconds)
    except subprocess.TimeoutExpired as late:
        raise AssertionError(f"{work.__name__}{arguments} is not done after {seconds} s: {late.stderr!r}") from None
    assert done.returncode == 0, f"{work.__name__}{arguments} ended with {done.returncode}:\n{done.stderr[-5000:]}"
    return json.loads(done.stdout.splitlines()[-1])


def resident_mb() -> int:
    """The most memory that this process has had so far."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024


def _main(module: str, name: str, arguments: str) -> None:
    addresses = int(os.environ["ADDRESSES"])
    resource.setrlimit(resource.RLIMIT_AS, (addresses, addresses))
    print(json.dumps(getattr(import_module(module), name)(*json.loads(arguments))))


if __name__ == "__main__":
    _main(*sys.argv[1:])
