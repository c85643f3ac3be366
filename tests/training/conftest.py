from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
import pytest
from safetensors.numpy import save_file

# The session that Spark's own tests have.
Folder = Callable[[Sequence[int]], Path]


@pytest.fixture(scope="session")
def numbered(tmp_path_factory: pytest.TempPathFactory) -> Folder:
    """Makes folders whose shards have so many samples each: `n` is a sample's number, `x` are six floats of it."""

    def make(counts: Sequence[int]) -> Path:
        folder = tmp_path_factory.mktemp("numbered")
        begin = 0
        for shard, count in enumerate(counts):
            n = np.arange(begin, begin + count)
            x = (n[:, None, None] + np.zeros((1, 2, 3))).astype(np.float32)
            save_file({"n": n, "x": x}, folder / f"{shard:05}.safetensors")
            begin += count
        return folder

    return make
