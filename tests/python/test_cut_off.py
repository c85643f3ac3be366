"""Files that somebody truncates while they are mapped: an error, where touching the map would end the process."""

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from safetensors.numpy import save_file

HEAD = """
import os, sys
import numpy as np
import safetensors_spark as sts
from safetensors_spark.dataset import open_dataset, open_store

folder, cut_off = sys.argv[1], lambda: os.truncate(f"{sys.argv[1]}/b.safetensors", 4096)

def fails(action):
    try:
        action()
    except sts.DamagedShardError as error:
        assert str(error).startswith(f"{folder}/b.safetensors has been truncated to 4096 bytes of 1"), error
    else:
        raise AssertionError("no error")
"""

SAMPLES = """
ds = open_dataset(folder)
assert ds[-1]["n"] == 1999
cut_off()
"""

STORE = """
store = open_store(f"{folder}/b.safetensors")
assert len(store["x"]) == 1000
cut_off()
"""

USES = {
    "a sample": SAMPLES + "fails(lambda: ds[1500])",
    "a slice": SAMPLES + "fails(lambda: ds[1500:1600])",
    "numbers": SAMPLES + "fails(lambda: ds.take([3, 1500]))",
    "a column": SAMPLES + "fails(lambda: ds['x'])",
    "other shards": SAMPLES + "assert ds[999]['n'] == 999",
    "the samples one by one": """
samples = iter(open_dataset(folder))
for _ in range(1001):
    next(samples)
cut_off()
fails(lambda: next(samples))
""",
    "batches of a second pass": """
batches = open_dataset(folder).batches(100)
assert sum(len(batch["n"]) for batch in batches) == 2000
cut_off()
fails(lambda: list(batches))
""",
    "batches that are chosen": """
import time
batches = iter(open_dataset(folder).batches(100, threads=0))
# Those of more and more samples are chosen together: the ninth with the tenth.
for _ in range(8):
    next(batches)
cut_off()
time.sleep(0.1)
fails(lambda: list(batches))
""",
    "a key": STORE + "fails(lambda: store['x'])",
    "many keys": STORE + "fails(lambda: store.get_many(['x', 'n']))",
    "stacked keys": STORE + "fails(lambda: store.stack(['x', 'x']))",
    "a file in another's place": """
store, ds = open_store(f"{folder}/b.safetensors"), open_dataset(folder)
assert store["n"][0] == 1000 and ds[1999]["n"] == 1999
os.rename(f"{folder}/b.safetensors", f"{folder}/old")
with open(f"{folder}/b.safetensors", "wb"):
    pass
assert store["n"][999] == 1999 and ds[1500]["n"] == 1500
""",
}


@pytest.mark.parametrize("use", USES)
def test_a_mapped_file_that_is_cut_off(use: str, tmp_path: Path) -> None:
    for name, begin in (("a", 0), ("b", 1000)):
        n = np.arange(begin, begin + 1000)
        save_file({"x": np.zeros((1000, 250), np.float32), "n": n}, tmp_path / f"{name}.safetensors")
    run = subprocess.run(
        [sys.executable, "-c", HEAD + USES[use], str(tmp_path)], capture_output=True, text=True, timeout=120
    )
    assert (run.returncode, run.stderr) == (0, "")
