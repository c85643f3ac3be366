"""Your own function, on Arrow batches."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from importlib import import_module
from typing import Any

import pyarrow as pa  # type: ignore[import-untyped]
from pydantic import Field, field_serializer, field_validator

from safetensors_spark.factory._operator import Columns, Generator, NewRows

_LIST = re.compile(r"list<(.+)>(?:\[(\d+)\])?")


class MapBatches(Generator):
    """New fields, or new rows, made by a function of a batch.

    The function gets a `pyarrow.RecordBatch` of the fields that it reads, and returns a column for each field that it
    writes, as long as the batch; or `NewRows`. Configurations name it by its module, `my_module:my_function`, if
    `imports` lists the module. If its code changes, the stage changes.
    """

    type = "map_batches"

    function: str | Callable[[pa.RecordBatch], Any] = Field(
        description="The function, or its name: `my_module:my_function`."
    )
    inputs: tuple[str, ...] = Field(min_length=1, description="The fields that the function gets.")
    outputs: dict[str, str] = Field(
        min_length=1,
        description="The new fields, and their types: Arrow's names such as `int64` or `string`, and `list<float32>`, "
        "or `list<float32>[384]` for lists of one length.",
    )

    @field_validator("function")
    @classmethod
    def _is_there(cls, value: Any) -> Any:
        _function(value)
        return value

    @field_validator("outputs")
    @classmethod
    def _are_types(cls, value: dict[str, str]) -> dict[str, str]:
        for text in value.values():
            _type(text)
        return value

    @field_serializer("function")
    def _named(self, value: Any) -> str:
        return value if isinstance(value, str) else f"{value.__module__}:{value.__qualname__}"

    @property
    def reads(self) -> tuple[str, ...]:
        return self.inputs

    @property
    def writes(self) -> Mapping[str, pa.DataType]:
        return {name: _type(text) for name, text in self.outputs.items()}

    @property
    def functions(self) -> tuple[Callable[..., Any], ...]:
        return (_function(self.function),)

    def generate(self, batch: pa.RecordBatch) -> Columns | NewRows:
        found: Columns | NewRows = _function(self.function)(batch)
        return found


def _function(value: Any) -> Callable[..., Any]:
    if not isinstance(value, str):
        function: Callable[..., Any] = value
        return function
    module, _, name = value.partition(":")
    try:
        found = getattr(import_module(module), name)
    except (ImportError, AttributeError, ValueError) as error:
        raise ValueError(f"`{value}` names no function ({error}), expected `module:function`") from None
    if not callable(found):
        raise ValueError(f"`{value}` is a {type(found).__name__}, expected a function")
    checked: Callable[..., Any] = found
    return checked


def _type(text: str) -> pa.DataType:
    if found := _LIST.fullmatch(text):
        return pa.list_(_type(found[1]), int(found[2]) if found[2] else -1)
    try:
        return pa.type_for_alias(text)
    except ValueError:
        raise ValueError(f"`{text}` is not a type, expected one such as `int64`, `string` or `list<float32>`") from None
