"""Files to read from far away, and where in them is what."""

from pathlib import Path
from typing import Any

import numpy as np
from safetensors.numpy import save_file

from official import load

NAMES = ("a", "b", "c")

SCHEMA = ", ".join(f"{name} struct<data: binary, shape: array<int>, dtype: string>" for name in NAMES)

# What is asked for before a header's length is known.
FIRST = (0, 65535)


class Model:
    """Files of three tensors: `large`; `long`, with a header of more than the first request; `small`, all in that."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.save("large.safetensors", 50_000, 1, 0)
        self.save("long.safetensors", 50_000, 100_000, 1)
        self.save("small.safetensors", 10, 1, 2)
        self.files = sorted(folder.iterdir())

    def save(self, file: str, size: int, note: int, number: int) -> Path:
        arrays = {name: np.full(size, ord(name) + number, "<f4") for name in NAMES}
        save_file(arrays, self.folder / file, {"note": "x" * note})
        return self.folder / file

    def tensors(self, *names: str) -> list[dict[str, dict[str, Any]]]:
        """Each file's tensors of these names, as the official library loads them."""
        loaded = [load(file) for file in self.files]
        return [
            {name: {"data": t[name].data.hex(), "shape": list(t[name].shape), "dtype": t[name].dtype} for name in names}
            for t in loaded
        ]

    def start(self, file: str) -> int:
        """Where the tensors begin."""
        return 8 + int.from_bytes((self.folder / file).read_bytes()[:8], "little")

    def place(self, file: str, name: str) -> tuple[int, int]:
        """The first byte of a tensor and the last."""
        size = 4 * 50_000
        first = self.start(file) + NAMES.index(name) * size
        return first, first + size - 1

    def headers(self) -> dict[str, list[tuple[int, int]]]:
        """The requests for the headers."""
        small = (0, (self.folder / "small.safetensors").stat().st_size - 1)
        rest = (65536, self.start("long.safetensors") - 1)
        return {"large.safetensors": [FIRST], "long.safetensors": [FIRST, rest], "small.safetensors": [small]}
