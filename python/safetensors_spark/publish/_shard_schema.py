"""The schema of the shards of a table: columns, version, and path in the repository."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from hashlib import sha256
from string import Formatter
from typing import Any

import pyarrow as pa  # type: ignore[import-untyped]
import pyarrow.compute as pc  # type: ignore[import-untyped]

from safetensors_spark._errors import InvalidShardError

RUN_ID, CREATED_AT = "run_id", "created_at"
_WRITTEN = {RUN_ID: pa.string(), CREATED_AT: pa.timestamp("us", tz="UTC")}

_RUN_ID = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,127}", re.ASCII)
_PATH = re.compile(r"(?:(?!\.{1,2}(?:/|$))[A-Za-z0-9._=+-]+/)*(?!\.)[A-Za-z0-9._=+-]+\.parquet", re.ASCII)


def is_safe_run_id(run_id: object) -> bool:
    """Whether a run id is safe as part of a file name.

    It has 1 to 128 letters, digits, `.`, `_` and `-` of ASCII, and begins with a letter or digit.
    """
    return isinstance(run_id, str) and _RUN_ID.fullmatch(run_id) is not None


@dataclass(frozen=True)
class ShardSchema:
    """The schema of the shards of a table.

    Attributes:
        columns: the columns that rows must have, and their types. A column whose field is not nullable must have a
            value in each row. Rows may have other columns.
        identity: columns that the writer sets in each row, replacing existing values, and their values. It sets
            `run_id` as well.
        filled: columns that the writer adds if the rows do not have them, and their values. Rows that have them
            must have a value in each row. It fills `created_at` with the time as well.
        version: the version of the table's schema, which is in the metadata of each shard.
        path_in_repo: where a shard goes in the repository. `{run_id}`, `{bucket}` and `{name}` of an identity column
            are replaced.
        bucket_bits: the number of bits of `{bucket}`, a part of the SHA-256 of the identity, in hexadecimal digits,
            so that no folder of the repository has too many files.
        provenance_key: the key of the provenance in the metadata of a shard.
    """

    columns: pa.Schema | Mapping[str, pa.DataType] = field(default_factory=dict)
    identity: Mapping[str, Any] = field(default_factory=dict)
    filled: Mapping[str, Any] = field(default_factory=dict)
    version: str = "1"
    path_in_repo: str = "data/{bucket}/{run_id}.parquet"
    bucket_bits: int = 4
    provenance_key: bytes = b"safetensors_spark.provenance"

    def __post_init__(self) -> None:
        kinds = {"columns": set(self.required.names), "identity": {*self.identity}, "filled": {*self.filled}}
        for one, other in (("columns", "identity"), ("columns", "filled"), ("identity", "filled")):
            if both := sorted(kinds[one] & kinds[other]):
                raise InvalidShardError(f"column `{both[0]}` is in `{one}` and in `{other}`. Name it in one of them.")
        if type(self.bucket_bits) is not int or not 0 <= self.bucket_bits <= 32:
            raise InvalidShardError(f"bucket_bits is {self.bucket_bits!r}, expected a number from 0 to 32.")
        try:
            fields = {name for _, name, _, _ in Formatter().parse(self.path_in_repo) if name is not None}
        except ValueError as error:
            raise InvalidShardError(f"path_in_repo is `{self.path_in_repo}`: {error}.") from None
        if unknown := sorted(fields - {RUN_ID, "bucket", *self.identity}):
            raise InvalidShardError(
                f"path_in_repo has {{{unknown[0]}}}, expected {{run_id}}, {{bucket}} or a column of `identity`."
            )
        if RUN_ID not in fields:
            raise InvalidShardError(
                f"path_in_repo is `{self.path_in_repo}`, which all runs would write to. Add {{run_id}} to it."
            )

    @property
    def required(self) -> pa.Schema:
        """The columns that rows must have."""
        if isinstance(self.columns, pa.Schema):
            return self.columns
        if not isinstance(self.columns, Mapping):
            raise InvalidShardError(
                f"columns is {self.columns!r}, expected the types of columns by their names, or a schema of Arrow."
            )
        return pa.schema([_field(name, kind) for name, kind in self.columns.items()])

    def path(self, run_id: str) -> str:
        """Where the shard of a run goes in the repository. Raises `InvalidShardError`."""
        values = {name: str(_plain(value)) for name, value in self.identity.items()}
        key = "\0".join([run_id, *(f"{name}={values[name]}" for name in sorted(values))])
        number = int.from_bytes(sha256(key.encode()).digest()[:4], "big") >> (32 - self.bucket_bits)
        bucket = f"{number:0{max(1, -(-self.bucket_bits // 4))}x}"
        path = self.path_in_repo.format(**{**values, RUN_ID: run_id, "bucket": bucket})
        if not _PATH.fullmatch(path):
            raise InvalidShardError(
                f"the shard would go to `{path}` in the repository. Expected folders and a name of letters, digits and "
                "`._=+-` that ends with .parquet."
            )
        return path

    def conform(self, table: pa.Table, run_id: str, created_at: pa.Scalar) -> pa.Table:
        """The rows to write. Raises `InvalidShardError`, which names each wrong column."""
        check_columns(table, self.required)
        for wanted in self.required:
            table = _set(table, wanted.name, table[wanted.name].cast(wanted.type), wanted.nullable)
        for name, value in {**self.identity, RUN_ID: pa.scalar(run_id, _WRITTEN[RUN_ID])}.items():
            table = _set(table, name, pa.repeat(_scalar(name, value), len(table)))
        for name, value in {**self.filled, CREATED_AT: created_at.cast(_WRITTEN[CREATED_AT])}.items():
            scalar = _scalar(name, value)
            if name in table.column_names:
                check_columns(table, pa.schema([pa.field(name, scalar.type, nullable=False)]))
                table = _set(table, name, table[name].cast(scalar.type))
            else:
                table = _set(table, name, pa.repeat(scalar, len(table)))
        return table


def check_columns(table: pa.Table, wanted: pa.Schema) -> None:
    """Raise `InvalidShardError` unless the rows have these columns, in types that become theirs without loss."""
    faults = []
    if repeated := sorted({name for name in table.column_names if table.column_names.count(name) > 1}):
        faults.append(f"there are several columns `{repeated[0]}`")
    for field_ in wanted:
        name = field_.name
        if name in repeated:
            continue
        if name not in table.column_names:
            faults.append(f"column `{name}` is missing, expected {field_.type}")
            continue
        column = table[name]
        try:
            cast = column.cast(field_.type)
        except (pa.ArrowInvalid, pa.ArrowNotImplementedError) as error:
            faults.append(f"column `{name}` is {column.type}, expected {field_.type} ({str(error)[:200]})")
            continue
        # Arrow rounds floats to narrower ones, whatever becomes of them.
        if column.type != cast.type and _infinite(cast) > _infinite(column):
            faults.append(f"column `{name}` is {column.type}, and has numbers that are infinite as {field_.type}")
        if column.null_count and not field_.nullable:
            faults.append(f"column `{name}` has no value in {column.null_count:,} of {len(table):,} rows")
    if faults:
        raise InvalidShardError(f"the rows cannot be staged: {'; '.join(faults)}. Nothing was written.")


def _infinite(column: pa.ChunkedArray) -> int:
    """How many floats of the column, or of its lists, are infinite."""
    lists = (pa.types.is_list, pa.types.is_large_list, pa.types.is_fixed_size_list)
    while any(is_list(column.type) for is_list in lists):
        column = pc.list_flatten(column)
    return (pc.sum(pc.is_inf(column.cast(pa.float64()))).as_py() or 0) if pa.types.is_floating(column.type) else 0


def _set(table: pa.Table, name: str, column: pa.Array | pa.ChunkedArray, nullable: bool = True) -> pa.Table:
    field_ = pa.field(name, column.type, nullable)
    at = table.schema.get_field_index(name)
    return table.append_column(field_, column) if at < 0 else table.set_column(at, field_, column)


def _field(name: str, kind: Any) -> pa.Field:
    try:
        return pa.field(name, kind)
    except (TypeError, ValueError):
        raise InvalidShardError(
            f"column `{name}` has the type {kind!r}, expected a type of Arrow, such as pa.float32()."
        ) from None


def _scalar(name: str, value: Any) -> pa.Scalar:
    try:
        return value if isinstance(value, pa.Scalar) else pa.scalar(value)
    except (pa.ArrowInvalid, pa.ArrowTypeError, pa.ArrowNotImplementedError) as error:
        raise InvalidShardError(
            f"the value of column `{name}` is {value!r}, which Arrow does not take: {error}"
        ) from None


def _plain(value: Any) -> Any:
    return value.as_py() if isinstance(value, pa.Scalar) else value
