"""Worker-side shard writer for Vulcan: vacua of string compactifications, staged for the Hub.

    from safetensors_spark.publish import vulcan

    vulcan.write_shard(df, staging_dir="staging", run_id="run-7", geometry={"h11": 2, "ks_id": 15}, tadpole_charge=24)

A `ShardSchema` with the names that Vulcan uses. Workers never touch the Hub: `sync_pending` commits what they stage.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from hashlib import sha256
from typing import Any

import pyarrow as pa  # type: ignore[import-untyped]

from safetensors_spark._errors import InvalidShardError
from safetensors_spark.publish._row_batches import Rows, tables
from safetensors_spark.publish._shard_schema import CREATED_AT, RUN_ID, ShardSchema, check_columns, is_safe_run_id
from safetensors_spark.publish._staged import StagedShard, ensure_staging_layout, list_pending, move_to
from safetensors_spark.publish._staging import FAILED_DIRNAME, PENDING_DIRNAME, SYNCED_DIRNAME
from safetensors_spark.publish._write_shard import SCHEMA_VERSION_METADATA_KEY, checked_blob, json_text, stage_rows

__all__ = [
    "FAILED_DIRNAME",
    "GEOMETRY_KEY_COLUMNS",
    "GEOMETRY_KEY_SENTINEL",
    "PENDING_DIRNAME",
    "PROVENANCE_METADATA_KEY",
    "REQUIRED_COLUMNS",
    "SCHEMA_VERSION_METADATA_KEY",
    "SYNCED_DIRNAME",
    "StagedShard",
    "ensure_staging_layout",
    "is_safe_run_id",
    "list_pending",
    "move_to",
    "validate_schema",
    "write_shard",
]

PROVENANCE_METADATA_KEY = b"stringforge.vulcan.provenance"
"""The key of the provenance in the metadata of a shard: JSON with geometry, solver and provenance."""

GEOMETRY_KEY_COLUMNS = ("h11", "h12", "ks_id", "triang_id", "conifold_id", "cicy_id")
"""What a geometry is known by. h11 and h12 are those of the mirror."""

GEOMETRY_KEY_SENTINEL = -1
"""The value of a key that a geometry does not have."""

REQUIRED_COLUMNS: Mapping[str, pa.DataType] = {
    "fluxes": pa.list_(pa.int64()),
    "moduli_re": pa.list_(pa.float64()),
    "moduli_im": pa.list_(pa.float64()),
    "tau_re": pa.float64(),
    "tau_im": pa.float64(),
}
"""The columns that every vacuum has, with their types: fluxes, complex structure moduli, and the axio-dilaton."""

_TADPOLE_CHARGE = "tadpole_charge"
_REQUIRED = pa.schema([pa.field(name, kind, nullable=False) for name, kind in REQUIRED_COLUMNS.items()])
# What the writer sets or fills in.
_COERCED = pa.schema(
    [
        pa.field(name, kind, nullable=False)
        for name, kind in {
            RUN_ID: pa.string(),
            "geometry_id": pa.string(),
            **dict.fromkeys(GEOMETRY_KEY_COLUMNS, pa.int64()),
            _TADPOLE_CHARGE: pa.int64(),
            CREATED_AT: pa.timestamp("us", tz="UTC"),
        }.items()
    ]
)
_VERSION = "1"


def validate_schema(df: Rows) -> None:
    """Raise ValueError unless the rows have the required columns, and what the writer sets or fills in."""
    for table in tables(df):
        check_columns(table, pa.schema([*_REQUIRED, *_COERCED]))


def write_shard(
    df: Rows,
    *,
    staging_dir: str | os.PathLike[str],
    run_id: str,
    geometry: Mapping[str, Any],
    tadpole_charge: int | None = None,
    solver: Mapping[str, Any] | None = None,
    provenance: Mapping[str, Any] | None = None,
    bucket_bits: int = 4,
) -> StagedShard:
    """Write a single vacuum-batch Parquet shard to `staging_dir/pending/`.

    The writer is the authority on identity: `run_id`, `geometry_id` and the geometry-key columns are overwritten,
    whatever the rows have there. `tadpole_charge` and `created_at` are filled in only where the rows do not have them.

    Args:
        df: the vacua, with the columns of `REQUIRED_COLUMNS`. A DataFrame, or what else `publish.write_shard` takes.
        staging_dir: the root staging directory. Its folders are made if need be.
        run_id: the identifier on every row. It must satisfy `is_safe_run_id`.
        geometry: the values of `GEOMETRY_KEY_COLUMNS`, whole numbers; h11 and h12 of the mirror. Missing keys become
            `GEOMETRY_KEY_SENTINEL`, but one must be another value.
        tadpole_charge: `N_flux` of the batch. Required unless it is a column of the rows.
        solver: `{name, config_hash, ...}`, for the metadata of the shard and its sidecar.
        provenance: `{git_sha, seed, wall_clock_s, ...}`, beside it.
        bucket_bits: the width of the bucket in the path in the repository.

    Returns:
        The staged pair of Parquet file and sidecar, and its path in the repository.

    Raises:
        ValueError: the run id is not safe, there are no rows, the geometry has no key, or `validate_schema` would
            refuse the rows. Nothing was written.
    """
    keys = _geometry_keys(geometry)
    required = list(_REQUIRED)
    filled = {}
    if tadpole_charge is None:
        required.append(_COERCED.field(_TADPOLE_CHARGE))
    else:
        filled[_TADPOLE_CHARGE] = pa.scalar(_whole(_TADPOLE_CHARGE, tadpole_charge), pa.int64())
    schema = ShardSchema(
        columns=pa.schema(required),
        identity={
            "geometry_id": sha256(json_text(keys)).hexdigest()[:16],
            **{name: pa.scalar(value, pa.int64()) for name, value in keys.items()},
        },
        filled=filled,
        version=_VERSION,
        path_in_repo="data/{bucket}/{geometry_id}/{run_id}.parquet",
        bucket_bits=bucket_bits,
        provenance_key=PROVENANCE_METADATA_KEY,
    )
    blob = {
        "geometry": keys,
        "solver": checked_blob("solver", solver),
        "provenance": checked_blob("provenance", provenance),
    }
    return stage_rows(df, staging_dir, run_id, schema, blob, blob)


def _geometry_keys(geometry: Mapping[str, Any]) -> dict[str, int]:
    """All keys. Raises `InvalidShardError`."""
    if not isinstance(geometry, Mapping):
        raise InvalidShardError(
            f"geometry is {geometry!r}, expected a dictionary of {', '.join(GEOMETRY_KEY_COLUMNS)}."
        )
    if unknown := sorted(map(str, geometry.keys() - set(GEOMETRY_KEY_COLUMNS))):
        raise InvalidShardError(f"geometry has `{unknown[0]}`, expected keys of {', '.join(GEOMETRY_KEY_COLUMNS)}.")
    given = {name: _whole(f"geometry[{name!r}]", value) for name, value in geometry.items() if value is not None}
    keys = {name: given.get(name, GEOMETRY_KEY_SENTINEL) for name in GEOMETRY_KEY_COLUMNS}
    if set(keys.values()) == {GEOMETRY_KEY_SENTINEL}:
        raise InvalidShardError(
            f"geometry has no key: each is missing or {GEOMETRY_KEY_SENTINEL}. Give one of "
            f"{', '.join(GEOMETRY_KEY_COLUMNS)}."
        )
    return keys


def _whole(name: str, value: Any) -> int:
    """A whole number, of NumPy too."""
    try:
        number = value.__index__()
    except AttributeError:
        number = None
    if number is None or type(value).__name__.startswith("bool") or not -(2**63) <= number < 2**63:
        raise InvalidShardError(f"{name} is {value!r}, expected a whole number of 64 bits.")
    return int(number)
