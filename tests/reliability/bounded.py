"""Calls a function in a process of its own, which has so much memory and so much time.

`python -m reliability.bounded MODULE FUNCTION ARGUMENTS` is that process.
"""

import json
import os
import resource
import signal
import subprocess
import sys
import tempfile
from collections.abc import Callable, Collection
from contextlib import suppress
from importlib import import_module
from typing import Any, TextIO

# Of addresses: libraries reserve far more than they use.
ADDRESSES = 6 << 30


def call(
    work: Callable[..., Any],
    *arguments: Any,
    seconds: float,
    addresses: int = ADDRESSES,
    may_end_by: Collection[signal.Signals] = (),
) -> Any:
    """What a function of a module returns, as JSON; None where it ended by one of the signals that it may end by.

    Raises AssertionError if it raises, dies otherwise, or is late. What it has started ends with it.
    """
    command = [sys.executable, "-m", "reliability.bounded", work.__module__, work.__name__, json.dumps(arguments)]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path)), "ADDRESSES": str(addresses)}
    # Files, not pipes: a process that it has started may hold a pipe for as long as it likes.
    with tempfile.TemporaryFile("w+") as said, tempfile.TemporaryFile("w+") as failed:
        child = subprocess.Popen(command, stdout=said, stderr=failed, env=environment, start_new_session=True)
        try:
            code = child.wait(seconds)
        except subprocess.TimeoutExpired:
            raise AssertionError(f"{work.__name__}{arguments} is not done after {seconds} s: {_text(failed)}") from None
        finally:
            with suppress(ProcessLookupError):
                os.killpg(child.pid, signal.SIGKILL)
            child.wait()
        if -code in may_end_by:
            return None
        assert code == 0, f"{work.__name__}{arguments} ended with {code}:\n{_text(failed)}"
        return json.loads(_text(said).splitlines()[-1])


def _text(file: TextIO) -> str:
    file.seek(0)
    return file.read()[-50_000:]


def resident_mb() -> int:
    """The most memory that this process has had so far."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024


def _main(module: str, name: str, arguments: str) -> None:
    addresses = int(os.environ["ADDRESSES"])
    resource.setrlimit(resource.RLIMIT_AS, (addresses, addresses))
    print(json.dumps(getattr(import_module(module), name)(*json.loads(arguments))))


if __name__ == "__main__":
    _main(*sys.argv[1:])
