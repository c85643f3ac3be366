"""`write_shard`: rows become a Parquet file that waits for the syncer."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from datetime import datetime, timezone
from hashlib import sha256
from itertools import chain
from typing import Any, BinaryIO

import pyarrow as pa  # type: ignore[import-untyped]
import pyarrow.parquet as pq  # type: ignore[import-untyped]

from safetensors_spark._errors import InvalidShardError
from safetensors_spark.publish._local_staging import explained
from safetensors_spark.publish._put_in_place import put_in_place
from safetensors_spark.publish._row_batches import Rows, tables
from safetensors_spark.publish._same_rows import same_rows
from safetensors_spark.publish._shard_schema import CREATED_AT, ShardSchema, is_safe_run_id
from safetensors_spark.publish._sidecar import Sidecar, new_sidecar
from safetensors_spark.publish._staged import StagedShard, ensure_staging_layout
from safetensors_spark.publish._staging import PENDING_DIRNAME, Digest, drafted, open_staging

SCHEMA_VERSION_METADATA_KEY = b"schema_version"


def write_shard(
    df: Rows,
    *,
    staging_dir: str | os.PathLike[str],
    run_id: str,
    schema: ShardSchema,
    provenance: Mapping[str, Any] | None = None,
) -> StagedShard:
    """Stage rows: write a Parquet file and its sidecar to `pending/`, where the syncer finds them.

    Workers may do this at the same time, in processes and machines of their own. Wherever one is killed, what it left
    is not synced, and writing the same rows again completes it. Rows that are staged or synced already under this run
    id are not written twice.

    Args:
        df: a DataFrame of pandas or polars, a table or record batch of Arrow, or an iterator of these, such as
            `mapInArrow` of Spark gives; of an iterator, few batches are in memory at a time.
        staging_dir: the staging directory, a path or an fsspec URL. It is made if need be.
        run_id: what wrote the rows. It is unique for each shard of a schema and its identity.
        schema: what the rows must be like.
        provenance: where the rows are from, in values that JSON has. It becomes part of the file and the sidecar.

    Returns:
        The staged shard.

    Raises:
        InvalidShardError: the run id, the rows or the provenance cannot be staged, or other rows have the run id. It is
            a ValueError. Nothing was written.
        OSError: the staging directory cannot be written. Nothing is left but, at worst, a file that `prune_orphans`
            removes.
    """
    blob = checked_blob("provenance", provenance)
    return stage_rows(df, staging_dir, run_id, schema, blob, {"provenance": blob})


def stage_rows(
    rows: Rows,
    staging_dir: str | os.PathLike[str],
    run_id: str,
    schema: ShardSchema,
    blob: Mapping[str, Any],
    fields: Mapping[str, Any],
) -> StagedShard:
    """Stage rows with this blob in the file's metadata, and these fields in the sidecar."""
    if not is_safe_run_id(run_id):
        raise InvalidShardError(
            f"run_id is {run_id!r}, expected 1 to 128 letters, digits, `.`, `_` and `-`, the first of them "
            "a letter or digit."
        )
    if not isinstance(schema, ShardSchema):
        raise InvalidShardError(f"schema is a {type(schema).__name__}, expected a ShardSchema.")
    path_in_repo = schema.path(run_id)
    metadata = {SCHEMA_VERSION_METADATA_KEY: schema.version.encode(), schema.provenance_key: json_text(blob)}
    sidecar_fields = json.loads(json_text(fields))
    given = tables(rows)
    first = next(given, None)
    if first is None:
        raise InvalidShardError(f"there are no rows to stage as {run_id}. Do not call this for an empty batch.")
    time = pa.scalar(datetime.now(timezone.utc))
    # The first rows are checked before anything is written.
    conformed = chain([schema.conform(first, run_id, time)], (schema.conform(one, run_id, time) for one in given))
    ignored = () if CREATED_AT in first.column_names else (CREATED_AT,)

    ensure_staging_layout(staging_dir)
    staging = open_staging(staging_dir)
    name = f"{run_id}-{sha256(path_in_repo.encode()).hexdigest()[:16]}.parquet"
    with drafted(staging, f"{PENDING_DIRNAME}/{name}") as draft:
        with explained(draft), draft.open("xb", buffering=0) as file:
            n_rows, written = _write(conformed, file, metadata)

        def sidecar(found: Digest) -> Sidecar:
            return new_sidecar(
                run_id=run_id, path_in_repo=path_in_repo, n_rows=n_rows, size=found.bytes, sha256=found.sha256,
                schema_version=schema.version, **sidecar_fields,
            )  # fmt: skip

        return put_in_place(staging, draft, name, written, sidecar, lambda file: same_rows(draft, file, ignored))


def checked_blob(name: str, value: Mapping[str, Any] | None) -> dict[str, Any]:
    """A dictionary for the metadata. Raises `InvalidShardError`."""
    if value is not None and not isinstance(value, Mapping):
        raise InvalidShardError(f"{name} is {str(value)[:100]!r}, expected a dictionary.")
    return dict(value or {})


def json_text(value: Mapping[str, Any]) -> bytes:
    """JSON of provenance. Raises `InvalidShardError`."""
    try:
        return json.dumps(value, allow_nan=False, default=_number).encode()
    except (TypeError, ValueError, RecursionError) as error:
        raise InvalidShardError(
            f"the provenance cannot become JSON: {error}. Use texts, finite numbers, lists and dictionaries."
        ) from None


def _number(value: Any) -> Any:
    """A number of NumPy as Python's."""
    if type(value).__module__ == "numpy" and getattr(value, "ndim", None) == 0:
        return value.item()
    raise TypeError(f"{type(value).__name__} is not of JSON")


def _write(parts: Iterator[pa.Table], file: BinaryIO, metadata: Mapping[bytes, bytes]) -> tuple[int, Digest]:
    """Write a Parquet file durably. Returns its rows, and the digest of its bytes."""
    first = next(parts)
    schema = first.schema.with_metadata(metadata)
    sink = _Sink(file)
    with _as_parquet():
        writer = pq.ParquetWriter(sink, schema)
    rows = 0
    try:
        for part in chain([first], parts):
            part = _like(part, schema)
            with _as_parquet():
                writer.write_table(part)
            rows += len(part)
    except BaseException:
        # A writer that is closed writes a footer, also if it is closed by the collection of garbage.
        sink.is_broken = True
        writer.close()
        raise
    writer.close()
    os.fsync(file.fileno())
    return rows, Digest(sink.size, sink.hash.hexdigest())


@contextmanager
def _as_parquet() -> Iterator[None]:
    try:
        yield
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError) as error:
        raise InvalidShardError(
            f"Parquet does not take the columns as they are: {error}. Cast them to other types. Nothing was written."
        ) from None


def _like(part: pa.Table, schema: pa.Schema) -> pa.Table:
    if part.schema.names != schema.names:
        raise InvalidShardError(
            f"a batch has the columns {', '.join(part.schema.names)}, and the first one {', '.join(schema.names)}. "
            "Give all batches the same columns."
        )
    try:
        return part.cast(schema)
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError, ValueError) as error:
        raise InvalidShardError(f"a batch has columns of other types than the first one: {error}") from None


class _Sink:
    """A file that hashes what is written. What is written to a broken one is lost."""

    closed = False
    is_broken = False

    def __init__(self, file: BinaryIO) -> None:
        self._file, self.hash, self.size = file, sha256(), 0

    def write(self, content: bytes) -> int:
        if self.is_broken:
            return len(content)
        data = memoryview(content)
        self.hash.update(data)
        self.size += len(data)
        while data:
            data = data[self._file.write(data) :]
        return len(content)

    def flush(self) -> None: ...

    def tell(self) -> int:
        return self.size

    def close(self) -> None:
        self.closed = True

    def readable(self) -> bool:
        return False

    def writable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return False
