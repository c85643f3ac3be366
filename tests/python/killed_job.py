"""Writes that are killed at one of their steps, and the write after each; prints what readers find, as JSON lines."""

import json
import os
import shutil
import signal
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet  # type: ignore[import-untyped]  # noqa: F401

from safetensors_spark._files.commit import lock, lock_record
from safetensors_spark.dataset import DatasetWriter, open_dataset, open_store, verify

# Calls that change what is on the disk. A call is a step; the process dies before it.
CHANGES = {"os.rename", "os.remove", "os.mkdir", "os.rmdir", "shutil.rmtree", "os.truncate", "os.link"}


def options(kind: str) -> dict[str, Any]:
    return {"batch_size": 2, "generate_index": True} if kind == "batch" else {"name_col": "k", "generate_index": True}


def write(path: Path, kind: str, mode: Any, first: int) -> None:
    """Three rows, numbered from `first` on."""
    numbers = np.arange(first, first + 3)
    rows = {"x": numbers} if kind == "batch" else {"k": [f"{n:05d}" for n in numbers], "x": numbers}
    with DatasetWriter(path, mode=mode, **options(kind)) as writer:
        writer.write(rows)


def seen(path: Path, kind: str) -> list[int] | None:
    """The rows that a reader finds; None if there is no dataset."""
    try:
        if kind == "batch":
            return [int(row["x"]) for row in open_dataset(path)]
        store = open_store(path)
        return [int(store[key]) for key in sorted(store)]
    except FileNotFoundError:
        return None


def kill_at(step: int, path: Path) -> None:
    """Let this process die before its call number `step` that changes something under the path."""
    left = step

    def look(event: str, args: tuple[Any, ...]) -> None:
        nonlocal left
        # How many signs of life there are depends on how fast the machine is.
        if str(args[0] if args else "").endswith(".alive"):
            return
        is_change = event in CHANGES or (
            event == "open" and isinstance(args[2], int) and args[2] & (os.O_WRONLY | os.O_RDWR)
        )
        if is_change and str(path) in str(args[0]):
            left -= 1
            if left == 0:
                os.kill(os.getpid(), signal.SIGKILL)

    sys.addaudithook(look)


def forked(body: Callable[[], Any]) -> tuple[int, Any]:
    """What the function returns in a process of its own, and by which signal that process ended."""
    out, into = os.pipe()
    if child := os.fork():
        os.close(into)
        with os.fdopen(out) as answers:
            text = answers.read()
        _, status = os.waitpid(child, 0)
        return os.WTERMSIG(status), json.loads(text or "null")
    os.close(out)
    try:
        with os.fdopen(into, "w") as answers:
            answers.write(json.dumps(body()))
        os._exit(0)
    except BaseException as error:
        print(repr(error), file=sys.stderr)
        os._exit(1)


def after(path: Path, kind: str) -> dict[str, Any]:
    """What is there after the death, and after the next write."""
    found = seen(path, kind)
    faults = [] if found is None else verify(path).faults
    write(path, kind, "append", 900)
    manifest = json.loads((path / "dataset_manifest.json").read_text())
    named = {one["file"] for one in manifest["shards"] + manifest["index_parts"]} | {"dataset_manifest.json"}
    return {
        "found": found,
        "then": seen(path, kind),
        "faults": [str(fault) for fault in [*faults, *verify(path).faults]],
        "notes": list(verify(path).notes),
        "others": sorted(one.name for one in path.iterdir() if one.name not in named),
    }


def main(folder: Path, kind: str, mode: str, has_old: bool) -> None:
    base = folder / "base"
    # Also where it is not used: what is imported here, the forked processes need not import.
    write(base, kind, "append", 0)
    seen(base, kind)
    verify(base)
    setattr(lock, "new_record", partial(lock_record.new_record, 200))  # noqa: B010
    step = 0
    while True:
        step += 1
        path = folder / f"step{step}"
        if has_old:
            shutil.copytree(base, path)

        def job(path: Path = path, step: int = step) -> None:
            kill_at(step, path)
            write(path, kind, mode, 100)

        killed, _ = forked(job)
        _, answer = forked(lambda path=path: after(path, kind))  # type: ignore[misc]
        print(json.dumps({"step": step, "killed": killed == signal.SIGKILL, **(answer or {})}), flush=True)
        if killed != signal.SIGKILL:
            return


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2], sys.argv[3], sys.argv[4] == "old")
