"""Rows by key in buckets: each shard has keys of one bucket, in order."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import groupby, pairwise

from safetensors_spark._errors import InvalidWriteError
from safetensors_spark._files.key_buckets import bucket_of_each
from safetensors_spark._files.manifest import KeyBucket
from safetensors_spark.dataset._write.key_shards import KeyShards
from safetensors_spark.dataset._write.keyed_rows import KeyedRows, joined

# The manifest has two keys of each shard.
_MAX_KEY_CHARS = 1000

# A writer sorts as many bytes at once as so many shards have.
_SORTED_SHARDS = 4


@dataclass
class BucketShards:
    """Rows wait until they are sorted: at the end, or when they are as large as four shards."""

    by_key: KeyShards
    buckets: int

    def __post_init__(self) -> None:
        self._reset()

    def _reset(self) -> None:
        self._keys: list[str] = []
        self._rows: list[KeyedRows] = []
        self._bytes = 0

    def write(self, keys: Sequence[str], columns: Sequence[KeyedRows]) -> None:
        """Write rows: their keys, and their tensors of the only column."""
        [rows] = columns
        # The caller may change its arrays once this returns.
        self._rows.append(rows.copy())
        self._keys += keys
        self._bytes += int(rows.sizes.sum())
        if self._bytes >= _SORTED_SHARDS * self.by_key.shard_bytes:
            self.finish()

    def finish(self) -> None:
        """Write the rows that wait."""
        if not self._keys:
            return
        keys, rows = self._keys, joined(self._rows)
        self._reset()
        buckets = bucket_of_each(keys, self.buckets).tolist()
        # Text by its characters' numbers is in the order of its UTF-8 bytes.
        order = sorted(range(len(keys)), key=lambda row: (buckets[row], keys[row]))
        for one, other in pairwise(order):
            if keys[one] == keys[other]:
                raise InvalidWriteError(
                    f"Column `{rows.columns[0].name}`: the key `{keys[one]}` occurs twice. Make keys unique."
                )
        for bucket, group in groupby(order, key=buckets.__getitem__):
            numbers = list(group)
            self._write_bucket(bucket, [keys[row] for row in numbers], rows.take(numbers))

    def _write_bucket(self, bucket: int, keys: Sequence[str], rows: KeyedRows) -> None:
        records = self.by_key.shards.records
        begin, row = len(records), 0
        self.by_key.write(keys, [rows])
        self.by_key.finish()
        for place in range(begin, len(records)):
            end = row + (records[place].samples or 0)
            records[place] = replace(records[place], key_bucket=self._record(bucket, keys[row], keys[end - 1]))
            row = end

    def _record(self, bucket: int, first: str, last: str) -> KeyBucket:
        # As Java counts characters.
        is_short = max(len(key.encode("utf-16-le")) // 2 for key in (first, last)) <= _MAX_KEY_CHARS
        return KeyBucket(self.buckets, bucket, (first, last) if is_short else None)
