"""Kills a function before each of its file operations in turn, in a process of its own."""

import os
import sys
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

# Calls that change what is on the disk.
CHANGES = {"os.rename", "os.remove", "os.rmdir", "os.mkdir", "os.link", "os.truncate", "os.utime", "shutil.rmtree"}
KILLED = 77


def kill_at(step: int, folder: Path) -> None:
    """Let this process die before its operation number `step` below the folder."""
    left = step

    def look(event: str, args: tuple[Any, ...]) -> None:
        nonlocal left
        is_change = event in CHANGES or (
            event == "open" and isinstance(args[2], int) and args[2] & (os.O_WRONLY | os.O_RDWR)
        )
        if is_change and str(folder) in _place(event, args):
            left -= 1
            if left == 0:
                os._exit(KILLED)

    sys.addaudithook(look)


def _place(event: str, args: tuple[Any, ...]) -> str:
    """The path of a change, also where it is told by an open folder and a name, as `shutil.rmtree` does."""
    has_folder = event in ("os.remove", "os.rmdir") and args[1] != -1
    return str(Path(f"/proc/self/fd/{args[1]}").readlink() / args[0]) if has_folder else str(args[0])


def forked(action: Callable[[], Any]) -> int:
    """The exit code of a process that does this."""
    child = os.fork()
    if child == 0:
        try:
            action()
            os._exit(0)
        except BaseException as error:
            print(repr(error), file=sys.stderr)
            os._exit(1)
    _, status = os.waitpid(child, 0)
    return os.waitstatus_to_exitcode(status)


def killed_at_each_step(action: Callable[[Path], Any], folders: Callable[[int], Path]) -> Iterator[Path]:
    """For each operation the folder as it was left. The last one is of the action that was not killed."""
    step = 0
    while True:
        step += 1
        folder = folders(step)
        code = forked(partial(_killed, action, step, folder))
        assert code in (0, KILLED), f"step {step} ended with {code}"
        yield folder
        if code == 0:
            return


def _killed(action: Callable[[Path], Any], step: int, folder: Path) -> None:
    kill_at(step, folder)
    action(folder)
