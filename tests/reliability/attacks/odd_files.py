"""Files that are none: pipes, folders, devices, links to themselves, to nowhere or elsewhere, holes of a terabyte."""

import os
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path

from reliability.attacks.victims import WEIGHTS

Swap = Callable[[Path], object]

HUGE = 1 << 40


def _hole(path: Path) -> None:
    path.touch()
    os.truncate(path, HUGE)


# What replaces a file.
SWAPS: dict[str, Swap] = {
    "a pipe": os.mkfifo,
    "a folder": Path.mkdir,
    "a link to itself": lambda path: path.symlink_to(path.name),
    "a link to its folder": lambda path: path.symlink_to("."),
    "a link to nowhere": lambda path: path.symlink_to("nowhere"),
    "a link to a device without end": lambda path: path.symlink_to("/dev/zero"),
    "a link to a file of another folder": lambda path: path.symlink_to("../secret/a.safetensors"),
    "a file of a terabyte": _hole,
    "an empty file": Path.touch,
}


def scenes(victims: dict[str, Path], folder: Path) -> Iterator[tuple[str, str, Path]]:
    """The kind of a dataset, what is odd about it, and where it is, one after the other in the same place."""
    for kind in victims:
        for file in _files(victims[kind]):
            for what, swap in SWAPS.items():
                path = _copy(victims[kind], folder)
                (path / file).unlink()
                swap(path / file)
                yield kind, f"{file.split('-')[0]} is {what}", path
    for what, swap in SWAPS.items():
        for name in (
            "more.safetensors",
            "part=1",
            "_tensor_index-x.parquet",
            "_commit.lock",
            "\udcff.safetensors",
            "a\nb.safetensors",
        ):
            path = _copy(victims["files"], folder)
            swap(path / name)
            yield "files", f"{name!r} is {what}", path
        path = _copy(victims["files"], folder)
        shutil.rmtree(path)
        swap(path)
        yield "files", f"the dataset is {what}", path
        path = _copy(victims["files"], folder)
        shutil.rmtree(path)
        (path / "k=1").mkdir(parents=True)
        swap(path / "k=1" / "a.safetensors")
        yield "files", f"a file of a partition is {what}", path
    yield from _loops(victims["files"], folder)


def _loops(victim: Path, folder: Path) -> Iterator[tuple[str, str, Path]]:
    """Partitions that go on for ever."""
    for link, to in (("k=1", "."), ("k=1/l=1", ".."), ("k=1/l=1", "../..")):
        path = _copy(victim, folder)
        for file in path.iterdir():
            file.unlink()
        (path / link).parent.mkdir(exist_ok=True)
        (path / link).symlink_to(to)
        yield "files", f"{link} leads to {to}", path


def _files(victim: Path) -> list[str]:
    """One of each kind."""
    names = sorted(file.name for file in victim.iterdir())
    fixed = [name for name in names if name in ("dataset_manifest.json", WEIGHTS, "_tensor_index.parquet")]
    return [*fixed, next(name for name in names if name.endswith(".safetensors"))]


def _copy(victim: Path, folder: Path) -> Path:
    path = folder / "odd"
    if path.is_symlink() or path.is_file() or path.is_fifo():
        path.unlink()
    elif path.exists():
        shutil.rmtree(path)
    shutil.copytree(victim, path)
    return path
