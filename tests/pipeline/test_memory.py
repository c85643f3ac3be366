"""Memory is bounded by what a task is given, not by rows."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

SCRIPT = """
import resource, sys
from safetensors_spark.pipeline import Dataset, create_backend

what, count, folder = sys.argv[1], int(sys.argv[2]), sys.argv[3]

def make(shard):
    for number in range(count):
        yield {"key": (number * 7919 + shard) % 1009, "text": f"{shard} {number} " + "x" * 1000}

rows = Dataset.from_list(range(4)).flat_map(make)
if what == "group":
    rows = rows.group_by(lambda row: row["key"], lambda key, found: {"key": key, "rows": sum(1 for _ in found)})
backend = create_backend("sync", progress=False, memory=sys.argv[4])
results = backend.execute(rows.write_jsonl(folder + "/{shard}.jsonl"))
print(results.manifest["rows"], resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024)
"""


def peak(tmp_path: Path, what: str, count: int, memory: str) -> tuple[int, int]:
    command = [sys.executable, "-c", SCRIPT, what, str(count), str(tmp_path / what / str(count)), memory]
    rows, most = subprocess.run(command, check=True, capture_output=True, text=True).stdout.split()
    return int(rows), int(most)


@pytest.mark.parametrize("what", ["write", "group"])
def test_memory_does_not_grow_with_rows(what: str, tmp_path: Path) -> None:
    few, before = peak(tmp_path, what, 100, "32MiB")
    # 160 MB of text: 20 times the 8 MiB that a group_by may keep at a time.
    many, after = peak(tmp_path, what, 40_000, "32MiB")
    assert (few, many) == ((400, 160_000) if what == "write" else (400, 1009))
    assert after - before < 48 << 20
