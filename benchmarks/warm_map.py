"""Copying from a map of files that the page cache holds: as fast as the machine can look at all their bytes."""

import mmap
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np

from benchmarks.write import CORES

BUFFER = 4 << 20


def copies(folder: Path) -> None:
    """All bytes of the files, a piece at a time, by as many threads as Spark has cores."""
    files = sorted(folder.glob("*.safetensors"))
    with ThreadPoolExecutor(CORES) as threads:
        list(threads.map(copy, files))


def copy(file: Path) -> None:
    target = np.empty(BUFFER, np.uint8)
    with file.open("rb") as opened, mmap.mmap(opened.fileno(), 0, prot=mmap.PROT_READ) as mapped:
        source = np.frombuffer(mapped, np.uint8)
        for begin in range(0, len(source), len(target)):
            part = source[begin : begin + len(target)]
            target[: len(part)] = part
        # The map cannot be closed while an array looks at it.
        del source, part
