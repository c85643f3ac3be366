"""What stages of a pipeline have made, damaged before the stage after them reads it."""

import json
import random
import struct
import tempfile
import zlib
from collections import Counter
from functools import partial
from pathlib import Path
from typing import Any

from reliability.attacks.apart import attacked
from reliability.attacks.errors import outcome
from reliability.check import Check, Outcome

CHUNKS = 50_000
END = struct.Struct("<IQ8s")
ROWS = [{"id": number, "text": f"word {number}", "more": [number, number + 1]} for number in range(50)]


def run(scale: float) -> Outcome:
    return attacked(attack, int(CHUNKS * scale))


def attack(count: int) -> dict[str, Any]:
    from safetensors_spark._files.commit.target import open_target
    from safetensors_spark.pipeline._shard_file import Footer, FrameWriter

    seen: Counter[str] = Counter()
    with tempfile.TemporaryDirectory() as scratch:
        path = Path(scratch, "chunk")
        with path.open("wb") as file:
            writer = FrameWriter(file, 1000)
            writer.write(ROWS)
            writer.finish(Footer(rows=len(ROWS)))
        content, target = path.read_bytes(), open_target(scratch)
        for number in range(count):
            changed = _changed(random.Random(number), content)
            path.write_bytes(changed)
            try:
                seen[outcome(partial(_read, target), path)] += 1
            except AssertionError as error:
                raise AssertionError(f"chunk {number}: {changed[-1500:]!r}") from error
    assert len(seen) > 1
    return {"seen": seen, "attempts": count}


def _read(target: Any) -> None:
    """Rows that are read in spite of it are the rows: a checksum has found what is not."""
    from safetensors_spark.pipeline._shard_file import ShardFile

    shard = ShardFile(target, "chunk")
    for frame in shard.frames:
        assert all(row in ROWS for row in shard.read(frame))


def _changed(chance: random.Random, content: bytes) -> bytes:
    """Any bytes, or the footer, whose checksum fits it again."""
    from reliability.attacks.odd import changed_bytes, changed_json

    if chance.random() < 0.4:
        return changed_bytes(chance, content)
    _, length, magic = END.unpack(content[-END.size :])
    begin = len(content) - END.size - length
    footer = changed_json(chance, content[begin : -END.size])
    if chance.random() < 0.1:
        footer = json.dumps([json.loads(content[begin : -END.size])]).encode()
    return content[:begin] + footer + END.pack(zlib.crc32(footer), len(footer), magic)


CHECK = Check(
    name="chunks",
    kind="attack",
    environment="pipeline",
    what="files between the stages of a pipeline, with changed bytes, and with changed footers whose checksums fit",
    holds="Either the rows are those that were written, or an error of ours names the file.",
    run=run,
)
