"""A wheel that was installed, in use: what each version of Python runs before a release, without the checkout."""

from __future__ import annotations

import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

import numpy as np

from safetensors_spark import __version__, jar_path
from safetensors_spark.dataset import open_dataset, open_store, verify, write_dataset


def main() -> None:
    with tempfile.TemporaryDirectory() as place:
        rows: dict[str, Any] = {"x": np.arange(24, dtype=np.float32).reshape(12, 2), "n": np.arange(12)}
        write_dataset(rows, f"{place}/rows", batch_size=5)
        dataset = open_dataset(f"{place}/rows")
        assert np.array_equal(dataset[:]["x"], rows["x"])
        assert not list(verify(f"{place}/rows").faults)
        keyed: dict[str, Any] = {"k": ["a", "b"], "x": rows["x"][:2]}
        write_dataset(keyed, f"{place}/keys", name_col="k")
        assert np.array_equal(open_store(f"{place}/keys")["b"], rows["x"][1])
        assert Path(jar_path()).is_file()
        told = subprocess.run(
            [sys.executable, "-m", "safetensors_spark", "--version"], capture_output=True, text=True, check=True
        )
        assert __version__ in told.stdout
    print(f"safetensors-spark {__version__} on Python {sys.version.split()[0]}: written, read and verified")


if __name__ == "__main__":
    main()
