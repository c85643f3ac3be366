"""Files that a pipeline reads: JSON lines, Parquet and datasets that nobody should have written."""

import gzip
import json
import random
import tempfile
from collections import Counter
from functools import partial
from pathlib import Path
from typing import Any

from reliability.attacks.apart import attacked
from reliability.attacks.errors import outcome
from reliability.check import Check, Outcome

INPUTS = 3000


def run(scale: float) -> Outcome:
    return attacked(attack, int(INPUTS * scale))


def attack(count: int) -> dict[str, Any]:
    from reliability.attacks.odd_files import SWAPS

    seen: Counter[str] = Counter()
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch)
        (folder / "secret").mkdir()
        (folder / "secret" / "a.safetensors").write_bytes(b"secret")
        (folder / "in").mkdir()
        files = _files(folder / "good")
        for number in range(count):
            chance = random.Random(number)
            name = chance.choice(sorted(files))
            path = folder / "in" / name
            for left in (folder / "in").iterdir():
                left.rmdir() if left.is_dir() and not left.is_symlink() else left.unlink()
            if chance.random() < 0.9:
                path.write_bytes(_changed(chance, name, files[name]))
            else:
                chance.choice(list(SWAPS.values()))(path)
            try:
                seen[outcome(partial(_read, path.parent), path.parent)] += 1
            except AssertionError as error:
                raise AssertionError(f"input {number}: {name}") from error
    return {"seen": seen, "attempts": count}


def _read(folder: Path) -> None:
    from safetensors_spark.pipeline import Dataset, create_backend

    list(create_backend("sync", progress=False).execute(Dataset.from_files(folder, "*").load_file()))


def _files(folder: Path) -> dict[str, bytes]:
    import numpy as np
    import pyarrow as pa  # type: ignore[import-untyped]
    import pyarrow.parquet as pq  # type: ignore[import-untyped]

    from reliability.attacks.chunks import ROWS
    from safetensors_spark.dataset import write_dataset

    lines = "\n".join(map(json.dumps, ROWS)).encode()
    folder.mkdir()
    pq.write_table(pa.Table.from_pylist(ROWS), folder / "a.parquet")
    write_dataset([{"x": np.arange(8)}], folder / "dataset", batch_size=8)
    shard = next((folder / "dataset").glob("*.safetensors"))
    found = {path.name: path.read_bytes() for path in (folder / "a.parquet",)}
    return found | {"a.safetensors": shard.read_bytes(), "a.jsonl": lines, "a.jsonl.gz": gzip.compress(lines)}


def _changed(chance: random.Random, name: str, content: bytes) -> bytes:
    from reliability.attacks.odd import TEXTS, changed_bytes

    if name.startswith("a.jsonl") and chance.random() < 0.7:
        lines = [json.dumps({"id": 1, "x": "mark"}).replace('"mark"', chance.choice(TEXTS)) for _ in range(3)]
        text = "\n".join(lines).encode()
        return gzip.compress(text) if name.endswith("gz") else text
    return changed_bytes(chance, content)


CHECK = Check(
    name="inputs",
    kind="attack",
    environment="pipeline",
    what="JSON lines with deep and absurd values, damaged gzip, Parquet and safetensors files, pipes, folders, "
    "devices and links, read by a pipeline",
    holds="Each is read, or an error of ours names the file.",
    run=run,
)
