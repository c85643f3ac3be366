"""What one task does: a shard of the input becomes files of rows that are kept, and files of rows that are not."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from hashlib import blake2b
from typing import Any

import pyarrow as pa  # type: ignore[import-untyped]

from safetensors_spark.factory._fields import DROPPED_BECAUSE, DROPPED_BY
from safetensors_spark.factory._operator import Operator
from safetensors_spark.factory._pipeline import Stage
from safetensors_spark.factory._placement import Actors
from safetensors_spark.factory._provenance import with_provenance
from safetensors_spark.factory._quotas import count, new_counts
from safetensors_spark.factory._source import InputShard
from safetensors_spark.factory._window import run_window
from safetensors_spark.factory._windows import ParquetFiles, windows
from safetensors_spark.pipeline._failures import with_note
from safetensors_spark.pipeline._operations import ShardInfo

DATA, DROPPED = "data", "dropped"


@dataclass(frozen=True)
class StageTask:
    """A function of `map_shard`, which yields one record of what it has made.

    Attributes:
        folder: of the stage.
        operators: those that run: in place of a deduplicator one that drops the rows that are marked.
        config: a fingerprint of what decides its output beside the rows. Names of files have it, so that another
            configuration replaces none of them.
        schema: of the rows that are kept, with the features of Hugging Face's library.
        actors: of operators that are not to run in the worker.
    """

    folder: str
    stage: Stage
    operators: tuple[Operator, ...]
    config: str
    schema: pa.Schema
    window_bytes: int
    file_bytes: int
    actors: Actors = field(default_factory=Actors)

    def __call__(self, shards: Iterator[tuple[int, InputShard]], _: ShardInfo) -> Iterator[dict[str, Any]]:
        for number, shard in shards:
            yield self._record(number, shard)

    def _record(self, number: int, shard: InputShard) -> dict[str, Any]:
        started = time.monotonic()
        operators = self.actors.ready(self.operators)
        name = f"part-{number:05d}-{input_id(self.config, shard)}"
        rows_in: Counter[str] = Counter()
        rows_dropped: Counter[str] = Counter()
        counts = new_counts(self.operators)
        seconds = {one.id: 0.0 for one in self.operators}
        rows = kept = 0
        of_dropped = self.schema.append(pa.field(DROPPED_BY, pa.string())).append(
            pa.field(DROPPED_BECAUSE, pa.string())
        )
        with (
            ParquetFiles(f"{self.folder}/{DATA}", name, self.file_bytes) as data,
            ParquetFiles(f"{self.folder}/{DROPPED}", name, self.file_bytes) as dropped,
        ):
            for table in self._windows(number, shard):
                try:
                    window = run_window(table, operators, self.stage.on_error == "quarantine", self.actors.outcome)
                except Exception as error:
                    last = rows + table.num_rows - 1
                    with_note(error, f"In rows {rows} to {last} of shard {number} of stage `{self.stage.name}`")
                    raise
                rows, kept = rows + table.num_rows, kept + window.kept.num_rows
                rows_in.update(window.rows_in)
                rows_dropped.update(window.rows_dropped)
                for one, passed in window.seconds.items():
                    seconds[one] += passed
                count(counts, window.buckets)
                data.write(fitted(self._told(window.kept), self.schema))
                for some in window.dropped:
                    dropped.write(fitted(self._told(some), of_dropped))
        return {
            "shard": number,
            "input": input_id(self.config, shard),
            "input_rows": rows,
            "output_rows": kept,
            "files": data.files,
            "dropped": dropped.files,
            "operators": {one.id: {"rows": rows_in[one.id], "dropped": rows_dropped[one.id]} for one in self.operators},
            "seconds": time.monotonic() - started,
            "operator_seconds": seconds,
            **({"buckets": counts} if counts else {}),
        }

    def _windows(self, number: int, shard: InputShard) -> Iterator[pa.Table]:
        try:
            yield from windows(shard.tables(), self.window_bytes)
        except Exception as error:
            with_note(error, f"While shard {number} of stage `{self.stage.name}` was read")
            raise

    def _told(self, rows: pa.Table) -> pa.Table:
        return with_provenance(rows, self.stage) if self.stage.provenance else rows


def input_id(config: str, shard: InputShard) -> str:
    """What names of files tell of the rows that they are made of, and of how."""
    return blake2b(f"{config} {shard.version}".encode(), digest_size=8).hexdigest()


def fitted(table: pa.Table, schema: pa.Schema) -> pa.Table:
    """The table with this schema: fields that rows did not have yet are null."""
    columns = [
        table.column(one.name).cast(one.type) if one.name in table.column_names else pa.nulls(table.num_rows, one.type)
        for one in schema
    ]
    return pa.Table.from_arrays(columns, schema=schema)
