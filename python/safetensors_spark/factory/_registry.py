"""Operators by their types: those that come with the factory, those of other packages, and those of users.

A package offers operators as entry points of the group `safetensors_spark.factory.operators`, named by their types. A
class of the user's own is known once `register` has seen it.
"""

from __future__ import annotations

from functools import cache
from importlib import import_module
from importlib.metadata import EntryPoint, entry_points
from pkgutil import iter_modules
from typing import Any, TypeVar

from safetensors_spark._errors import MissingExtraError
from safetensors_spark.factory import operators
from safetensors_spark.factory._errors import ConfigError
from safetensors_spark.factory._nearest import meant
from safetensors_spark.factory._operator import Operator

GROUP = "safetensors_spark.factory.operators"

# Modules whose operators do not have the module's name.
_FAMILIES = {"c4": ("c4_quality", "c4_lines"), "length": ("text_length", "word_count")}

_registered: dict[str, type[Operator]] = {}

_C = TypeVar("_C", bound=type[Operator])


def register(operator: _C) -> _C:
    """Make a class of operators known to configurations, by its `type`. Used as a decorator.

    Raises `ConfigError` if another class has the type already.
    """
    _check(operator, getattr(operator, "type", None), "the registered class")
    name = operator.type
    before = _registered.get(name)
    # A cell of a notebook that is run again defines the same class anew.
    is_same = before is None or (before.__module__, before.__qualname__) == (operator.__module__, operator.__qualname__)
    if not is_same or name in _built_in() or name in _offered():
        raise ConfigError(f"there is an operator of the type `{name}` already: give {operator.__name__} another one.")
    _registered[name] = operator
    return operator


def operator_types() -> list[str]:
    """The types of all operators that are known, sorted."""
    return sorted({*_built_in(), *_offered(), *_registered})


def operator_class(name: str) -> type[Operator]:
    """The class of operators of a type. Raises `ConfigError` if there is none, or if it is not what it should be."""
    if name in _registered:
        return _registered[name]
    points = _offered().get(name, [])
    if name in _built_in():
        if points:
            raise ConfigError(f"{_origin(points[0])} has the type `{name}`, which is an operator of the factory.")
        return _class_in(_built_in()[name], name)
    if not points:
        raise ConfigError(f"no operator has the type `{name}`. {meant(name, operator_types())}")
    if len(points) > 1:
        raise ConfigError(f"two operators have the type `{name}`: {_origin(points[0])}, and {_origin(points[1])}.")
    try:
        found = points[0].load()
    except MissingExtraError:
        raise
    except Exception as error:
        told = f"{type(error).__name__}: {error}".splitlines()[0].removesuffix(".")
        raise ConfigError(f"{_origin(points[0])} cannot be imported: {told}.") from error
    _check(found, name, _origin(points[0]))
    operator: type[Operator] = found
    return operator


@cache
def _built_in() -> dict[str, str]:
    """The modules of the factory's operators, by type. None of them is imported."""
    names = [one.name for one in iter_modules(operators.__path__) if not one.name.startswith("_")]
    return {kind: name for name in names for kind in _FAMILIES.get(name, (name,))}


def _class_in(module: str, name: str) -> type[Operator]:
    for value in vars(import_module(f"{operators.__name__}.{module}")).values():
        if isinstance(value, type) and issubclass(value, Operator) and vars(value).get("type") == name:
            return value
    raise ConfigError(f"{operators.__name__}.{module} has no operator of the type `{name}`.")


@cache
def _offered() -> dict[str, list[EntryPoint]]:
    """Entry points by name. One that is found twice, by two paths to its package, is one."""
    found: dict[str, dict[str, EntryPoint]] = {}
    for point in entry_points(group=GROUP):
        found.setdefault(point.name, {})[point.value] = point
    return {name: list(points.values()) for name, points in found.items()}


def _origin(point: EntryPoint) -> str:
    package = f" of {point.dist.name}" if point.dist is not None else ""
    return f"{point.value}{package}"


def _check(found: Any, name: str | None, origin: str) -> None:
    if not isinstance(found, type) or not issubclass(found, Operator):
        raise ConfigError(f"{origin} is no class of operators: expected a subclass of Score, Filter or the like.")
    own = getattr(found, "type", None)
    if not hasattr(found, "kind") or not isinstance(own, str) or not own:
        raise ConfigError(f"{found.__name__} needs a `type`, and is of one of the five kinds, such as Score.")
    if own != name:
        raise ConfigError(f"{origin} is offered as `{name}`, but its type is `{own}`.")
