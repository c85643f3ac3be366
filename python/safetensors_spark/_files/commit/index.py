"""The index's part of a commit: it adds a part, into which it merges parts that are not much larger."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import ExitStack, closing
from typing import Any

from safetensors_spark._extras import require
from safetensors_spark._files.commit.index_parts import OpenPart, kept_parts, write_part
from safetensors_spark._files.commit.index_runs import IndexRuns, entries_of, merged, unique
from safetensors_spark._files.commit.target import Target
from safetensors_spark._files.header import read_header
from safetensors_spark._files.manifest import INDEX, IndexPart, Manifest, Shard

# Keys that are looked up in other parts at once.
_AT_ONCE = 100_000


def part_of(commit_id: str) -> str:
    """The name of the part that a commit creates."""
    return f"_tensor_index-{commit_id}.parquet"


class IndexCommit:
    """The new part is another file: the old ones stay until the manifest is replaced."""

    def __init__(self, target: Target, commit_id: str, has_keys: bool) -> None:
        require("arrow", ("pyarrow",))
        self._target, self._commit_id, self._has_keys = target, commit_id, has_keys
        self._draft = f".{INDEX}.{commit_id}.tmp"

    def prepare(self, kept: Manifest | None, added: Sequence[Shard], taken: Sequence[str]) -> tuple[IndexPart, ...]:
        """Write what this commit adds, beside the index. The shards must be in their places.

        Args:
            kept: the dataset whose shards stay.
            added: the new shards.
            taken: names that the new part must not have.

        Returns the parts of the index after this commit. Raises `DuplicateKeyError` if a key is twice in it.
        """
        with ExitStack() as stack:
            named = kept.index_parts if kept else ()
            opened = [stack.enter_context(closing(part)) for one in named if (part := self._open(one))]
            is_whole = len(opened) == len(named) and all(part.is_current for part in opened)
            current = opened if is_whole else []
            unindexed = [] if current or kept is None else list(kept.shards)
            if not unindexed and not added and current:
                return tuple(named)
            runs = stack.enter_context(closing(IndexRuns()))
            for shard in [*unindexed, *added]:
                runs.add(entries_of(shard.file, self._header(shard)))
            count = kept_parts([part.entries for part in current], runs.entries)
            self._write(runs, current[:count], current[count:])
        # A reader of version 1.0 takes a file of that name for the whole index.
        name = INDEX if count == 0 and INDEX not in taken else part_of(self._commit_id)
        return (*named[:count], IndexPart(name, self._commit_id))

    def _open(self, part: IndexPart) -> OpenPart | None:
        try:
            return OpenPart(self._target, part)
        except FileNotFoundError:
            return None

    def _header(self, shard: Shard) -> Any:
        folder = self._target.folder
        path = f"{folder.location}/{shard.file}"
        return read_header(lambda start, end: folder.read(shard.file, start, end), shard.bytes or 0, path)

    def _write(self, runs: IndexRuns, stay: Sequence[OpenPart], merging: Sequence[OpenPart]) -> None:
        added = merged(runs.sources())
        checked = self._absent_from(stay, added) if self._has_keys and stay else added
        all_entries = merged([checked, *(part.batches() for part in merging)])
        entries = runs.entries + sum(part.entries for part in merging)
        key_bytes = runs.key_bytes * entries // max(runs.entries, 1)
        with self._target.create(self._draft) as file:
            write_part(
                file, self._commit_id, unique(all_entries) if self._has_keys else all_entries, entries, key_bytes
            )

    def _absent_from(self, stay: Sequence[OpenPart], tables: Iterable[Any]) -> Iterator[Any]:
        for table in tables:
            for start in range(0, len(table), _AT_ONCE):
                chunk = table.slice(start, _AT_ONCE)
                keys, files = (chunk.column(name).to_pylist() for name in ("tensor_key", "file_name"))
                for part in stay:
                    part.check_absent(keys, files)
            yield table

    def publish(self, parts: Iterable[IndexPart]) -> None:
        """Give the new part its name. Readers ignore it until the manifest names it."""
        self._target.move((self._draft, part.file) for part in parts if part.commit_id == self._commit_id)

    def clean_up(self) -> None:
        self._target.delete(self._draft)
