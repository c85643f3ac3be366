"""Rows for which a function fails, kept beside the output with their errors."""

from __future__ import annotations

import json
import re
import shutil
import tempfile
from collections.abc import Sequence
from typing import Any, BinaryIO, cast

from safetensors_spark._files.commit.target import open_target
from safetensors_spark.pipeline._failures import ChangedFileError, is_temporary, text_of
from safetensors_spark.pipeline._operations import Operation
from safetensors_spark.pipeline._whole_file import whole_file

# Of a row that is not JSON, and of the text of an error.
_LONGEST = 10_000
_NAME = re.compile(r"stage-(\d+)-shard-(\d+)\.jsonl")


class Quarantine:
    """The rows of one shard. They are written when the shard is whole."""

    def __init__(self, folder: str, stage: int, shard: int) -> None:
        self._folder, self._name = folder, f"stage-{stage + 1}-shard-{shard:05d}.jsonl"
        # On the disk, since all rows of a shard may fail.
        self._lines: BinaryIO | None = None
        self._count = 0

    def add(self, operation: Operation, row: Any, error: Exception) -> None:
        """Keep a row. A lost connection, or another file, is not the row's fault."""
        if is_temporary(error) or isinstance(error, MemoryError | ChangedFileError):
            raise error
        line = {"operation": str(operation), "error": text_of(error)[:_LONGEST], "row": row}
        if self._lines is None:
            self._lines = cast(BinaryIO, tempfile.TemporaryFile(prefix="safetensors-spark-"))  # noqa: SIM115
        self._lines.write(_line(line))
        self._count += 1

    def finish(self, *, is_skipped: bool) -> int:
        """Write the rows. Returns how many there are.

        Args:
            is_skipped: the shard was not made again, so the rows are those of who has made it.
        """
        target = open_target(self._folder)
        if is_skipped:
            return (target.read(self._name) or b"").count(b"\n")
        if self._lines is not None:
            self._lines.seek(0)
            with self._lines as lines, whole_file(target, self._name, durable=True) as file:
                shutil.copyfileobj(lines, file)
        else:
            target.delete(self._name)
        return self._count


def delete_others(folder: str, shards: Sequence[int]) -> None:
    """Delete the rows of shards that are gone, where an earlier run had more.

    Args:
        shards: how many each stage has.
    """
    target = open_target(folder)
    for name in target.names():
        found = _NAME.fullmatch(name)
        if found is not None and (int(found[1]) > len(shards) or int(found[2]) >= shards[int(found[1]) - 1]):
            target.delete(name)


def _line(line: dict[str, Any]) -> bytes:
    try:
        return json.dumps(line, ensure_ascii=False).encode() + b"\n"
    except (TypeError, ValueError):
        row = line["row"]
        text = row.decode("utf-8", "replace") if isinstance(row, bytes) else repr(row)
        return json.dumps(line | {"row": text[:_LONGEST]}).encode() + b"\n"
