"""A worker process: it runs tasks until nobody sends any more.

It is started as a program of its own, and not as a copy of the caller's: so scripts need no
`if __name__ == "__main__"`, and nothing of the caller's threads and locks is in it.
"""

from __future__ import annotations

import os
import pickle
import signal
import threading
from multiprocessing.connection import Connection
from typing import Any

from safetensors_spark.pipeline._failures import sent
from safetensors_spark.pipeline._scratch import use_scratch
from safetensors_spark.pipeline._task import run


def main(number: int, scratch: str) -> None:
    """Run the tasks that come by a socket of this number.

    Args:
        scratch: the folder for what is too much for memory, which the caller deletes.
    """
    use_scratch(scratch)
    # The terminal's Ctrl-C is sent to all processes of a group: the caller decides what it means.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    # Functions that read the standard input have none, and do not take what the caller's end is seen by.
    pipe = os.dup(0)
    nothing = os.open(os.devnull, os.O_RDONLY)
    os.dup2(nothing, 0)
    os.close(nothing)
    threading.Thread(target=_end_with_caller, args=(pipe,), daemon=True).start()
    with Connection(number) as connection:
        # The caller sees the death of this process by the socket, which a child that lives would keep open.
        os.register_at_fork(after_in_child=connection.close)
        serve(connection)


def _end_with_caller(pipe: int) -> None:
    """Its end of the pipe is closed however it ends."""
    # Not by `sys.stdin`, whose lock this thread would still have when the process ends.
    os.read(pipe, 1)
    os._exit(1)


def serve(connection: Connection) -> None:
    """Run the tasks that come, each with the work that came last."""
    work: Any = None
    while True:
        try:
            content = connection.recv_bytes()
        except EOFError:
            return
        try:
            found, task = pickle.loads(content)
            work = work if found is None else pickle.loads(found)
            answer = pickle.dumps((True, run(work, task)), 5)
        except BaseException as error:
            # Some, such as `asyncio.CancelledError`, are no `Exception`. They would end this process.
            answer = pickle.dumps((False, sent(error)), 5)
        connection.send_bytes(answer)
