"""Small datasets, and what an attacker makes of their files."""

import json
import random
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

from reliability.attacks.odd import NUMBERS, PATHS, changed_bytes, changed_json

ROWS = 12
TEXTS = ["", "a", "é😀", "three words here", "\U0010ffff"]
WEIGHTS = "model.safetensors.index.json"


def build(folder: Path) -> dict[str, Path]:
    """Batches, tensors by key, a checkpoint, and a folder of files, each in a few shards; beside them `secret`."""
    import numpy as np
    from safetensors.numpy import save_file

    from safetensors_spark.dataset import write_dataset

    x = np.arange(2 * ROWS, dtype=np.float32).reshape(ROWS, 2)
    rows: dict[str, Any] = {
        "x": x,
        "n": np.arange(ROWS),
        "t": [TEXTS[row % len(TEXTS)] for row in range(ROWS)],
        "r": [np.arange(row % 4) + row for row in range(ROWS)],
    }
    found = {name: folder / name for name in ("batches", "keys", "checkpoint", "files")}
    # Shards of a few kilobytes: one for each write.
    for first in range(0, ROWS, 4):
        part = {name: values[first : first + 4] for name, values in rows.items()}
        write_dataset([part], found["batches"], mode="append" if first else "error", batch_size=4, ragged=["r"])
        keyed = {"k": [f"k{row:02}" for row in range(first, first + 4)], "x": part["x"]}
        mode = "append" if first else "error"
        write_dataset([keyed], found["keys"], mode=mode, name_col="k", generate_index=True)
    for name in ("checkpoint", "files"):
        found[name].mkdir()
        for file in "ab":
            tensors = {f"{file}{number}" if name == "checkpoint" else f"c{number}": x + number for number in range(3)}
            save_file(tensors, found[name] / f"{file}.safetensors")
    weights = {f"{file}{number}": f"{file}.safetensors" for file in "ab" for number in range(3)}
    (found["checkpoint"] / WEIGHTS).write_text(
        json.dumps({"metadata": {"total_size": 6 * x.nbytes}, "weight_map": weights})
    )
    (folder / "secret").mkdir()
    save_file({"x": x + 666, "a0": x + 666}, folder / "secret" / "a.safetensors")
    return found


Damage = Callable[[random.Random, Path], str]


def damaged(chance: random.Random, victims: dict[str, Path], target: Path) -> tuple[str, str]:
    """Makes a damaged copy of one of them in the folder; its kind, and what was done."""
    kind = chance.choice(list(victims))
    if target.exists():
        shutil.rmtree(target)
    shutil.copytree(victims[kind], target)
    return kind, chance.choice(DAMAGES[kind])(chance, target)


def _manifest(chance: random.Random, target: Path) -> str:
    return _rewritten(target / "dataset_manifest.json", changed_json, chance)


def _weights(chance: random.Random, target: Path) -> str:
    return _rewritten(target / WEIGHTS, changed_json, chance)


def _shard(chance: random.Random, target: Path) -> str:
    """As the fuzz of headers changes files."""
    from fuzz_mutations import mutated

    what = _rewritten(chance.choice(_shards(target)), mutated, chance)
    return what + (_fit(target) if chance.random() < 0.7 else "")


def _offsets(chance: random.Random, target: Path) -> str:
    """Some of the numbers that say where the rows of a ragged column begin are others."""
    from safetensors import deserialize

    path = chance.choice(_shards(target))
    content = bytearray(path.read_bytes())
    start = 8 + int.from_bytes(content[:8], "little")
    header = json.loads(content[8:start])
    names = [name for name in header if name.endswith(".offsets")]
    assert len(deserialize(bytes(content))) > len(names) > 0  # type: ignore[no-untyped-call]
    begin, end = header[chance.choice(names)]["data_offsets"]
    said = []
    for _ in range(chance.choice([1, 1, 2, 3])):
        at = start + begin + 8 * chance.randrange((end - begin) // 8)
        before = int.from_bytes(content[at : at + 8], "little", signed=True)
        odd = [before - 1, before + 1, -1, 0, 1 << 31, (1 << 63) - 1, -(1 << 63), 1 << 40, 5]
        number = max(min(chance.choice(odd), (1 << 63) - 1), -(1 << 63))
        content[at : at + 8] = number.to_bytes(8, "little", signed=True)
        said.append(f"byte {at}: {number}")
    path.write_bytes(content)
    return f"offsets of {path.name}, {', '.join(said)}" + _fit(target)


def _index_rows(chance: random.Random, target: Path) -> str:
    """An entry of the index is another, and the index is a sound Parquet file."""
    import pyarrow as pa  # type: ignore[import-untyped]
    import pyarrow.parquet as pq  # type: ignore[import-untyped]

    path = chance.choice(sorted(target.glob("_tensor_index*")))
    table = pq.read_table(path)
    rows = table.to_pylist()
    said = []
    for _ in range(chance.choice([1, 1, 2, 3])):
        row, name = chance.choice(rows), chance.choice(table.column_names)
        row[name] = _other(chance, name, row[name], rows)
        said.append(f"{name} {row[name]!r:.100}")
    if chance.random() < 0.2:
        chance.shuffle(rows)
    if chance.random() < 0.1:
        rows.pop()
    if chance.random() < 0.1:
        rows.append(dict(rows[0]))
    large = any(dim >= 1 << 31 for row in rows for dim in row["shape"] or ())
    types = dict(zip(table.column_names, table.schema.types, strict=True))
    if large:
        types["shape"] = pa.list_(pa.int64())
    schema = pa.schema(types, table.schema.metadata)
    pq.write_table(pa.Table.from_pylist(rows, schema), path)
    return f"rows of {path.name}: {', '.join(said)}"


def _other(chance: random.Random, name: str, value: Any, rows: list[dict[str, Any]]) -> Any:
    if chance.random() < 0.3:
        return chance.choice(rows)[name]
    if chance.random() < 0.05:
        return None
    if name == "file_name":
        return chance.choice(PATHS)
    if name == "tensor_key":
        return chance.choice([f"{value}x", "", "\U0010ffff", "k00", "K01"])
    if name == "dtype":
        return chance.choice(["F16", "F64", "U8", "BOOL", "F4", "F8_E4M3", "f32", "", "X", "C64"])
    numbers = [int(text) for text in NUMBERS if text.lstrip("-").isdigit() and len(text) < 20]
    fit = [number for number in numbers if -(1 << 63) <= number < 1 << 63]
    if name == "shape":
        return chance.choice(
            [[], [2, 1], [1, 2], [-2, -1], [0], [3], [abs(chance.choice(fit)) - 1], [1 << 32, 1 << 32], [2] * 70]
        )
    return chance.choice([min((value or 0) + chance.choice([-8, -1, 1, 8, 64]), max(fit)), chance.choice(fit)])


def _index_bytes(chance: random.Random, target: Path) -> str:
    return _rewritten(chance.choice(sorted(target.glob("_tensor_index*"))), changed_bytes, chance)


def _rewritten(path: Path, change: Callable[[random.Random, bytes], bytes], chance: random.Random) -> str:
    before = path.read_bytes()
    after = change(chance, before)
    path.write_bytes(after)
    at = next((at for at, (old, new) in enumerate(zip(before, after, strict=False)) if old != new), len(before))
    return f"{path.name} from byte {at} on: {after[max(at - 40, 0) : at + 80]!r}"


def _fit(target: Path) -> str:
    """Make the manifest fit the shards again, as who attacks would."""
    from safetensors_spark._files.checksum import checksum

    path = target / "dataset_manifest.json"
    if not path.exists():
        return ""
    manifest = json.loads(path.read_bytes())
    for shard in manifest["shards"]:
        with (target / shard["file"]).open("rb") as file:
            shard["bytes"], shard["crc32c"] = checksum(file, lambda _: None)
            file.seek(0)
            shard["header_bytes"] = min(8 + int.from_bytes(file.read(8), "little"), (1 << 63) - 1)
    path.write_text(json.dumps(manifest))
    return ", which the manifest fits"


def _shards(target: Path) -> list[Path]:
    return sorted(target.glob("*.safetensors"))


DAMAGES: dict[str, list[Damage]] = {
    "batches": [_manifest, _manifest, _shard, _offsets, _offsets],
    "keys": [_manifest, _shard, _index_rows, _index_rows, _index_bytes],
    "checkpoint": [_weights, _weights, _shard],
    "files": [_shard],
}
