"""Tasks in processes on this machine."""

from __future__ import annotations

import pickle
import shutil
import socket
import subprocess
import sys
import tempfile
from collections.abc import Collection
from contextlib import suppress
from multiprocessing.connection import Connection, wait
from typing import Any

import cloudpickle

from safetensors_spark.pipeline._failures import LostWorkerError, received
from safetensors_spark.pipeline._pool import ATTEMPTS
from safetensors_spark.pipeline._shard_file import Footer
from safetensors_spark.pipeline._task import Task, Work

_PROGRAM = """
import pickle, sys
sys.path[:], scratch = pickle.load(sys.stdin.buffer)
from safetensors_spark.pipeline._backends.worker import main
main({number}, scratch)
"""


class _Worker:
    """A process, and the connection to it. It has one task at a time, so its death is the fault of one task."""

    def __init__(self, scratch: str) -> None:
        ours, theirs = socket.socketpair()
        with theirs:
            command = [sys.executable, "-c", _PROGRAM.format(number=theirs.fileno())]
            self._process = subprocess.Popen(command, stdin=subprocess.PIPE, pass_fds=[theirs.fileno()])
        assert self._process.stdin is not None
        # What it imports is what this process would.
        pickle.dump((sys.path, scratch), self._process.stdin)
        self._process.stdin.flush()
        self.connection = Connection(ours.detach())
        self._work: Work | None = None

    def start(self, work: Work, content: bytes, task: Task) -> None:
        # A stage's functions are sent once.
        found = None if work is self._work else content
        self._work = work
        # Rows may have functions of the user's script, which the worker cannot import.
        content = bytes(cloudpickle.dumps((found, task), 5))
        # If it died before, reading the answer tells.
        with suppress(OSError, EOFError):
            self.connection.send_bytes(content)

    def result(self) -> Footer:
        try:
            succeeded, answer = pickle.loads(self.connection.recv_bytes())
        except (EOFError, OSError):
            code = self._process.wait()
            raise LostWorkerError(f"the worker process {self._process.pid} died ({_died(code)})") from None
        if succeeded:
            footer: Footer = answer
            return footer
        raise received(answer)

    def close(self, *, kill: bool) -> None:
        self.connection.close()
        if kill:
            self._process.kill()
        assert self._process.stdin is not None
        self._process.stdin.close()
        self._process.wait()


class ProcessPool:
    """So many processes, which are started when there is something to do."""

    attempts = ATTEMPTS
    restarts = False

    def __init__(self, processes: int) -> None:
        self.slots = processes
        self._idle: list[_Worker] = []
        self._all: set[_Worker] = set()
        self._work: Work | None = None
        self._content = b""
        self._scratch: str | None = None

    def start(self, work: Work, task: Task) -> _Run:
        if work is not self._work:
            self._work, self._content = work, bytes(cloudpickle.dumps(work, 5))
        if self._scratch is None:
            self._scratch = tempfile.mkdtemp(prefix="safetensors-spark-")
        worker = self._idle.pop() if self._idle else _Worker(self._scratch)
        self._all.add(worker)
        worker.start(work, self._content, task)
        return _Run(self, worker)

    def wait(self, running: Collection[Any]) -> Collection[Any]:
        by_connection = {run.worker.connection: run for run in running}
        return [by_connection[connection] for connection in wait(list(by_connection))]

    def ended(self, worker: _Worker, *, lost: bool) -> None:
        if lost:
            self._all.discard(worker)
            worker.close(kill=True)
        else:
            self._idle.append(worker)

    def close(self, *, kill: bool) -> None:
        for worker in self._all:
            worker.close(kill=kill)
        self._all.clear()
        self._idle.clear()
        if self._scratch is not None:
            shutil.rmtree(self._scratch, ignore_errors=True)
            self._scratch = None


class _Run:
    """A task in a worker."""

    def __init__(self, pool: ProcessPool, worker: _Worker) -> None:
        self._pool, self.worker = pool, worker

    def result(self) -> Footer:
        try:
            footer = self.worker.result()
        except LostWorkerError:
            self._pool.ended(self.worker, lost=True)
            raise
        except BaseException:
            self._pool.ended(self.worker, lost=False)
            raise
        self._pool.ended(self.worker, lost=False)
        return footer


def _died(code: int) -> str:
    if code == -9:
        return "signal 9: usually, the system ran out of memory"
    return f"signal {-code}" if code < 0 else f"exit code {code}"
