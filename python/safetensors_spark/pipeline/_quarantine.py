"""Rows for which a function fails, kept beside the output with their errors."""

from __future__ import annotations

import json
from typing import Any

from safetensors_spark._files.commit.target import open_target
from safetensors_spark.pipeline._failures import is_temporary
from safetensors_spark.pipeline._operations import RowOperation
from safetensors_spark.pipeline._whole_file import whole_file

# Of a row that is no JSON, and of the text of an error.
_LONGEST = 10_000


class Quarantine:
    """The rows of one shard. They are written when the shard is whole."""

    def __init__(self, folder: str, stage: int, shard: int) -> None:
        self._folder, self._name = folder, f"stage-{stage + 1}-shard-{shard:05d}.jsonl"
        self._lines: list[bytes] = []

    def add(self, operation: RowOperation, row: Any, error: Exception) -> None:
        """Keep a row. A lost connection is not the row's fault."""
        if is_temporary(error) or isinstance(error, MemoryError):
            raise error
        line = {"operation": str(operation), "error": f"{type(error).__qualname__}: {error}"[:_LONGEST], "row": row}
        self._lines.append(_line(line))

    def finish(self) -> int:
        """Write the rows. Returns how many there are."""
        target = open_target(self._folder)
        if self._lines:
            with whole_file(target, self._name, durable=True) as file:
                file.writelines(self._lines)
        else:
            target.delete(self._name)
        return len(self._lines)


def _line(line: dict[str, Any]) -> bytes:
    try:
        return json.dumps(line, ensure_ascii=False).encode() + b"\n"
    except (TypeError, ValueError):
        row = line["row"]
        text = row.decode("utf-8", "replace") if isinstance(row, bytes) else repr(row)
        return json.dumps(line | {"row": text[:_LONGEST]}).encode() + b"\n"
