"""Work in forks of this process, which has imported everything: they take no second to begin, as a new process does."""

import importlib
import multiprocessing
import os
import runpy
import sys
from collections.abc import Callable, Mapping
from subprocess import CompletedProcess, TimeoutExpired
from tempfile import TemporaryFile
from types import TracebackType
from typing import Any, TextIO

# What these import stays. They themselves are forgotten in each fork.
import safetensors_spark.publish._sync  # noqa: F401

_FORKS = multiprocessing.get_context("fork")
# The client reads its environment when it is imported, so each fork does that again.
_FORGOTTEN = ("huggingface_hub", "safetensors_spark.publish")


class Fork:
    """A process that does the work in an environment of its own. It is killed at the end of the block, if it lives."""

    def __init__(self, work: Callable[[], Any], environment: Mapping[str, str]) -> None:
        self._streams = TemporaryFile(), TemporaryFile()  # noqa: SIM115
        self._process = _FORKS.Process(target=self._run, args=(work, environment))
        self._process.start()

    @property
    def pid(self) -> int:
        assert self._process.pid is not None
        return self._process.pid

    @property
    def is_alive(self) -> bool:
        return self._process.is_alive()

    def __enter__(self) -> "Fork":
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.kill()
        for stream in self._streams:
            stream.close()

    def kill(self) -> None:
        self._process.kill()
        self._process.join()

    def done(self, timeout: float = 120) -> CompletedProcess[str]:
        """Wait for its end. What it has printed, and its exit code."""
        self._process.join(timeout)
        if self._process.exitcode is None:
            raise TimeoutExpired(["fork"], timeout, *map(_text, self._streams))
        return CompletedProcess(["fork"], self._process.exitcode, *map(_text, self._streams))

    def _run(self, work: Callable[[], Any], environment: Mapping[str, str]) -> None:
        for number, stream in enumerate(self._streams, start=1):
            os.dup2(stream.fileno(), number)
        # Those of pytest hold back what is written.
        sys.stdout, sys.stderr = map(_writer, (1, 2))
        os.environ.clear()
        os.environ.update(environment)
        for name in [name for name in sys.modules if f"{name}.".startswith(tuple(f"{one}." for one in _FORGOTTEN))]:
            del sys.modules[name]
        # Here already, so that it is imported once for forks of this fork.
        importlib.import_module("safetensors_spark.publish._sync")
        work()


def run_code(code: str, environment: Mapping[str, str], timeout: float = 120) -> CompletedProcess[str]:
    """What a fork that runs the code prints, and its exit code."""
    with Fork(lambda: exec(compile(code, "<code>", "exec"), {"__name__": "__main__"}), environment) as fork:
        return fork.done(timeout)


def run_module(module: str, arguments: list[str], environment: Mapping[str, str]) -> CompletedProcess[str]:
    """The same of `python -m`."""
    with Fork(module_work(module, arguments), environment) as fork:
        return fork.done()


def module_work(module: str, arguments: list[str]) -> Callable[[], Any]:
    def work() -> None:
        sys.argv = [module, *arguments]
        runpy.run_module(module, run_name="__main__", alter_sys=True)

    return work


def _writer(number: int) -> TextIO:
    return open(number, "w", buffering=1, closefd=False)


def _text(stream: Any) -> str:
    # The fork has the same position: reading by a place leaves it alone.
    return os.pread(stream.fileno(), os.fstat(stream.fileno()).st_size, 0).decode()
