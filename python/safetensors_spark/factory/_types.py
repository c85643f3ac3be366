"""Classes by their types: those that come with the factory, those of other packages, and those of users."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property
from importlib import import_module
from importlib.metadata import EntryPoint, entry_points
from pkgutil import iter_modules
from types import ModuleType
from typing import Any, Generic, TypeVar

from safetensors_spark._errors import MissingExtraError
from safetensors_spark.factory._errors import ConfigError
from safetensors_spark.factory._nearest import meant

_T = TypeVar("_T")


class Types(Generic[_T]):
    """Classes of one kind, such as operators, each with a `type` of its own.

    Args:
        noun: what one of them is called.
        base: what they are subclasses of.
        expected: what a class is to be, in words.
        package: whose modules have the factory's own, each that of its name.
        families: modules that have others, with the types of these.
        group: of the entry points by which packages offer theirs, named by their types.
        needs: an attribute that a class has.
    """

    def __init__(
        self,
        noun: str,
        base: type[_T],
        expected: str,
        package: ModuleType,
        families: Mapping[str, tuple[str, ...]],
        group: str,
        needs: str = "type",
    ) -> None:
        self._noun, self._base, self._expected, self._needs = noun, base, expected, needs
        self._package, self._families, self._group = package, families, group
        self.registered: dict[str, type[_T]] = {}

    def register(self, found: Any) -> None:
        """Make a class of the user's own known. Raises `ConfigError` if another class has its type already."""
        self._check(found, getattr(found, "type", None), "the registered class")
        name = found.type
        before: Any = self.registered.get(name)
        # A cell of a notebook that is run again defines the same class again.
        is_same = before is None or (before.__module__, before.__qualname__) == (found.__module__, found.__qualname__)
        if not is_same or name in self._built_in or name in self.offered:
            one = f"an {self._noun}" if self._noun[0] in "aeiou" else f"a {self._noun}"
            raise ConfigError(f"there is {one} of the type `{name}` already: give {found.__name__} another one.")
        self.registered[name] = found

    def names(self) -> list[str]:
        """The types of all that are known, sorted."""
        return sorted({*self._built_in, *self.offered, *self.registered})

    def find(self, name: str) -> type[_T]:
        """The class of a type. Raises `ConfigError` if there is none, or if it is not what it should be."""
        if name in self.registered:
            return self.registered[name]
        points = self.offered.get(name, [])
        if name in self._built_in:
            if points:
                raise ConfigError(f"{_origin(points[0])} has the type `{name}`, which is one of the factory.")
            return self._class_in(self._built_in[name], name)
        if not points:
            raise ConfigError(f"no {self._noun} has the type `{name}`. {meant(name, self.names())}")
        if len(points) > 1:
            raise ConfigError(
                f"two {self._noun}s have the type `{name}`: {_origin(points[0])}, and {_origin(points[1])}."
            )
        try:
            found = points[0].load()
        except MissingExtraError:
            raise
        except Exception as error:
            told = f"{type(error).__name__}: {error}".splitlines()[0].removesuffix(".")
            raise ConfigError(f"{_origin(points[0])} cannot be imported: {told}.") from error
        self._check(found, name, _origin(points[0]))
        kind: type[_T] = found
        return kind

    @cached_property
    def _built_in(self) -> dict[str, str]:
        """The modules of the factory's own, by type. None of them is imported."""
        names = [one.name for one in iter_modules(self._package.__path__) if not one.name.startswith("_")]
        return {kind: name for name in names for kind in self._families.get(name, (name,))}

    def _class_in(self, module: str, name: str) -> type[_T]:
        for value in vars(import_module(f"{self._package.__name__}.{module}")).values():
            if isinstance(value, type) and issubclass(value, self._base) and vars(value).get("type") == name:
                return value
        raise ConfigError(f"{self._package.__name__}.{module} has no {self._noun} of the type `{name}`.")

    @cached_property
    def offered(self) -> dict[str, list[EntryPoint]]:
        """Entry points by name. One that is found twice, by two paths to its package, is one."""
        found: dict[str, dict[str, EntryPoint]] = {}
        for point in entry_points(group=self._group):
            found.setdefault(point.name, {})[point.value] = point
        return {name: list(points.values()) for name, points in found.items()}

    def _check(self, found: Any, name: str | None, origin: str) -> None:
        if not isinstance(found, type) or not issubclass(found, self._base):
            raise ConfigError(f"{origin} is not a class of {self._noun}s: expected a subclass of {self._expected}.")
        own = getattr(found, "type", None)
        if not isinstance(own, str) or not own or not hasattr(found, self._needs):
            raise ConfigError(f"{found.__name__} needs a `type`, and is a subclass of {self._expected}.")
        if own != name:
            raise ConfigError(f"{origin} is offered as `{name}`, but its type is `{own}`.")


def _origin(point: EntryPoint) -> str:
    package = f" of {point.dist.name}" if point.dist is not None else ""
    return f"{point.value}{package}"
