"""What is to be known of Daft: its runner, which is one for a process, and its types."""

from __future__ import annotations

from functools import cache

import pyarrow as pa  # type: ignore[import-untyped]

from safetensors_spark._errors import PipelineError
from safetensors_spark.factory._errors import ContractError
from safetensors_spark.factory._operator import Operator


def check_types(operator: Operator, schema: pa.Schema) -> None:
    """Raise `ContractError` for a field that the operator reads or writes of a type that Daft does not have."""
    kinds = [(name, schema.field(name).type) for name in operator.reads] + list(operator.writes.items())
    for name, kind in kinds:
        if not _is_known(kind):
            raise ContractError(
                f"{operator.id} {'reads' if name in operator.reads else 'writes'} `{name}` of the type {kind}, which "
                "operators cannot have. Cast it before, such as by `cast_column`: times to time64, dates to "
                "date32, decimals to decimal128, and what is dictionary-encoded or a view to plain text or lists."
            )


def check_columns(schema: pa.Schema) -> None:
    """Raise `ContractError` for a field of a type that files of stages cannot have, or rows that are chosen."""
    for one in schema:
        if (wrong := _without_a_place(one.type)) is not None:
            inside = "" if wrong == one.type else f", in {one.type}"
            raise ContractError(
                f"rows have `{one.name}` of the type {wrong}{inside}, which the factory cannot keep. Cast it before, "
                "such as by `cast_column`: views to plain text, bytes or lists; or remove it, by `remove_columns`."
            )


def _without_a_place(kind: pa.DataType) -> pa.DataType | None:
    """A type that Parquet does not have, or whose values Arrow cannot choose; the type itself, or one within it."""
    types = pa.types
    if isinstance(kind, pa.ExtensionType):
        kind = kind.storage_type
    is_view = types.is_string_view(kind) or types.is_binary_view(kind)
    is_void = (types.is_struct(kind) and not kind.num_fields) or (types.is_fixed_size_list(kind) and not kind.list_size)
    if is_view or is_void:
        return kind
    inner = (kind.field(place).type for place in range(kind.num_fields))
    return next((wrong for one in inner if (wrong := _without_a_place(one)) is not None), None)


def check_kept_types(operator: Operator, schema: pa.Schema) -> None:
    """Raise `ContractError` for a field whose values rows that the stage drops could not keep."""
    for name, kind in operator.writes.items():
        before = schema.field(name).type if name in schema.names else kind
        if not _has_all_of(before, kind):
            raise ContractError(
                f"{operator.id} writes `{name}` as {kind}, and rows have {before}: those that the stage drops could "
                "not keep their values. Put it in a stage without filters, or write another field."
            )


def _has_all_of(before: pa.DataType, kind: pa.DataType) -> bool:
    """Whether a type has all values of another one."""
    types = pa.types
    if before == kind or types.is_null(before):
        return True
    for is_kind in (types.is_signed_integer, types.is_unsigned_integer, types.is_floating):
        if is_kind(before) and is_kind(kind):
            return bool(before.bit_width <= kind.bit_width)
    texts, binaries = (types.is_string, types.is_large_string), (types.is_binary, types.is_large_binary)
    if any(any(one(before) for one in some) and any(one(kind) for one in some) for some in (texts, binaries)):
        return True
    is_list = [types.is_list(one) or types.is_large_list(one) for one in (before, kind)]
    return all(is_list) and _has_all_of(before.value_type, kind.value_type)


@cache
def _is_known(kind: pa.DataType) -> bool:
    import daft

    if isinstance(kind, pa.ExtensionType):
        kind = kind.storage_type
    if pa.types.is_date64(kind):
        # It becomes a time.
        return False
    try:
        # What it does not know becomes pickled objects.
        return "daft.super_extension" not in str(daft.DataType.from_arrow_type(kind).to_arrow_dtype())
    except Exception:
        return False


def run_here() -> None:
    """Let Daft compute in this process. In a worker of Ray it would start plans of its own there.

    Raises `PipelineError` where the caller has chosen Ray for Daft, which is final for a process.
    """
    import daft

    if daft.get_or_infer_runner_type() == "native":
        return
    try:
        daft.set_runner_native()
    except Exception as error:
        raise PipelineError(
            "Daft's runner of this process is that of Ray, but the factory computes windows of rows where they are. "
            "Take the backend `processes`, or `ray`, or a process that has not set it."
        ) from error
