"""Operators and hooks by their types.

A package provides operators as entry points of the group `safetensors_spark.factory.operators`, and hooks as those of
`safetensors_spark.factory.hooks`, named by their types. Register your own class with `register`.
"""

from __future__ import annotations

from typing import TypeVar

from safetensors_spark.factory import hooks, operators
from safetensors_spark.factory._hook import Hook
from safetensors_spark.factory._operator import Operator
from safetensors_spark.factory._types import Types

# Modules whose operators do not have the module's name.
_FAMILIES = {"c4": ("c4_quality", "c4_lines"), "length": ("text_length", "word_count")}

OPERATORS: Types[Operator] = Types(
    "operator",
    Operator,
    "Score, Filter or the like",
    operators,
    _FAMILIES,
    "safetensors_spark.factory.operators",
    # Which `Operator` itself does not have.
    needs="kind",
)
HOOKS: Types[Hook] = Types("hook", Hook, "Hook", hooks, {}, "safetensors_spark.factory.hooks")

_C = TypeVar("_C")


def register(found: _C) -> _C:
    """Make a class of operators or hooks available to configurations, by its `type`. Used as a decorator.

    Raises `ConfigError` if another class already has the type.
    """
    (HOOKS if isinstance(found, type) and issubclass(found, Hook) else OPERATORS).register(found)
    return found


def operator_types() -> list[str]:
    """The types of all known operators, sorted."""
    return OPERATORS.names()


def operator_class(name: str) -> type[Operator]:
    """The class of operators of a type. Raises `ConfigError` if there is none, or if it is not what it should be."""
    return OPERATORS.find(name)
