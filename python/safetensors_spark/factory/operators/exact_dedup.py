"""Rows that are equal."""

from __future__ import annotations

from hashlib import blake2b
from typing import Any

import numpy as np
import pyarrow as pa  # type: ignore[import-untyped]
from pydantic import Field

from safetensors_spark.factory._operator import Deduplicator, Keys


class ExactDedup(Deduplicator):
    """Drops rows whose fields equal those of an earlier row, by a hash of 128 bits.

    Values are equal if they have the same bytes, and lists and structs if all their values are equal. A null equals a
    null, but a row with only nulls is kept.
    """

    type = "exact_dedup"

    fields: tuple[str, ...] = Field(default=("text",), min_length=1, description="The fields that are compared.")
    normalized: bool = Field(
        default=False, description="Whether texts are compared in lower case, with white space as one blank."
    )

    @property
    def reads(self) -> tuple[str, ...]:
        return self.fields

    def keys(self, batch: pa.RecordBatch) -> Keys:
        columns = [batch.column(name).to_pylist() for name in self.fields]
        rows, digests = [], []
        for row, values in enumerate(zip(*columns, strict=True)):
            if any(value is not None for value in values):
                rows.append(row)
                digests.append(blake2b(b"\0".join(map(self._bytes, values)), digest_size=16).digest())
        return Keys(np.array(rows, np.int64), np.frombuffer(b"".join(digests), np.uint64).reshape(-1, 2))

    def _bytes(self, value: Any) -> bytes:
        """The bytes of a value, which differ from those of every other value."""
        if isinstance(value, str):
            text = " ".join(value.lower().split()) if self.normalized else value
            return b"s" + text.replace("\0", "\0\0").encode("utf-8", "surrogatepass")
        if isinstance(value, bytes):
            return b"b" + value.replace(b"\0", b"\0\0")
        # Numbers, dates, lists and structs.
        return b"r" + repr(value).replace("\0", "\0\0").encode("utf-8", "surrogatepass")
