"""A pipeline: stages of operators. It only describes the work."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from hashlib import sha256
from pathlib import Path
from types import FunctionType
from typing import Any, Literal, get_args

from safetensors_spark.factory._edges import Edge, in_order
from safetensors_spark.factory._errors import ConfigError
from safetensors_spark.factory._operator import Deduplicator, Operator
from safetensors_spark.pipeline._fingerprint import fingerprint

OnError = Literal["raise", "quarantine"]

# A file in the folder of a run, which tells its stages.
PIPELINE = "pipeline.json"

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]*")


@dataclass(frozen=True)
class Stage:
    """Operators that run on each row in sequence. The output is files and their manifest.

    Operators without an id get one from their type and their number among those of the type: `word_count_1`.

    Attributes:
        operators: the operators in the order in which they run: as listed, or as edges say.
        on_error: what to do with a row for which an operator raises.
        provenance: whether each row records its scores, tags and versions of operators.

    Raises `ConfigError` for ids that are not unique, names that are not valid for a folder, and edges that define no
    order.
    """

    name: str
    operators: tuple[Operator, ...]
    on_error: OnError
    provenance: bool

    def __init__(
        self,
        name: str,
        operators: Iterable[Operator],
        edges: Sequence[Edge] | None = None,
        on_error: OnError = "raise",
        provenance: bool = False,
    ) -> None:
        """A stage.

        Args:
            edges: pairs of ids: the first operator runs before the second. By default each runs before the next one in
                the list.
            on_error: `raise` ends the run with the operator's exception. `quarantine` drops the rows that it raises
                for, with the error as the reason, and continues.
            provenance: add `__fdf__/scores`, `__fdf__/tags` and `__fdf__/operator_versions` to each row, in addition to
                those of earlier stages: for rows that will be mixed with others. Without it, only fields of scores and
                the manifest have this information.
        """
        if on_error not in get_args(OnError):
            raise ConfigError(f"`on_error` is {on_error!r}, expected 'raise' or 'quarantine'.", ("on_error",))
        if not _NAME.fullmatch(name) or name == PIPELINE:
            raise ConfigError(
                f"{name!r} is not a valid stage name: expected letters, digits, `_`, `.` and `-`.", ("name",)
            )
        named = tuple(_named(name, operators))
        for one in named[1:]:
            if isinstance(one, Deduplicator):
                raise ConfigError(
                    f"stage `{name}`: {one.id} compares the rows of the whole dataset, so it is the first operator of "
                    "its stage. Begin a stage with it."
                )
        object.__setattr__(self, "name", name)
        object.__setattr__(self, "on_error", on_error)
        object.__setattr__(self, "provenance", provenance)
        object.__setattr__(self, "operators", named if edges is None else tuple(in_order(name, named, edges)))

    @property
    def deduplicator(self) -> Deduplicator | None:
        """The operator that compares all rows, with which the stage may begin."""
        first = next(iter(self.operators), None)
        return first if isinstance(first, Deduplicator) else None

    @property
    def config(self) -> list[dict[str, Any]]:
        """The operators with their parameters, as a manifest records them."""
        return [one.config for one in self.operators]

    @property
    def code(self) -> str:
        """A fingerprint of the operators' files, and of their own code where it is not that of an installed package."""
        return fingerprint(
            [
                [list(_code_of(type(one))), one.functions, *(_content(one, path) for path in one.files)]
                for one in self.operators
            ]
        )


def _code_of(kind: type) -> Iterator[Any]:
    """The functions and constants of an operator's classes, without what pydantic adds, which is another each time."""
    for base in kind.__mro__:
        if base.__module__.partition(".")[0] in ("pydantic", "safetensors_spark", "builtins"):
            continue
        for name, value in sorted(vars(base).items()):
            found = value.__func__ if isinstance(value, classmethod | staticmethod) else value
            if isinstance(found, property | cached_property):
                yield name, found.fget if isinstance(found, property) else found.func
            elif isinstance(found, FunctionType | type) or name in getattr(base, "__class_vars__", ()):
                yield name, found
        for name, attribute in sorted(getattr(base, "__private_attributes__", {}).items()):
            yield name, attribute.default_factory, attribute.default


def _content(operator: Operator, path: str) -> list[tuple[str, str]]:
    """The digests of a file, or of the files in a folder."""
    place = Path(path).expanduser()
    if not place.exists():
        raise ConfigError(f"{path}, which `{operator.id}` reads, does not exist.")
    files = [place] if place.is_file() else sorted(file for file in place.rglob("*") if file.is_file())
    return [(str(file.relative_to(place)), _digest(file)) for file in files]


def _digest(file: Path) -> str:
    found = sha256()
    with file.open("rb") as content:
        while some := content.read(1 << 20):
            found.update(some)
    return found.hexdigest()


def _named(stage: str, operators: Iterable[Operator]) -> Iterable[Operator]:
    counts: Counter[str] = Counter()
    seen: set[str] = set()
    for number, operator in enumerate(operators):
        if not isinstance(operator, Operator):
            raise TypeError(f"stage `{stage}` has a {type(operator).__name__}, expected operators")
        counts[operator.type] += 1
        one = (
            operator if operator.id else operator.model_copy(update={"id": f"{operator.type}_{counts[operator.type]}"})
        )
        if one.id in seen:
            raise ConfigError(
                f"stage `{stage}` has two operators with the id `{one.id}`. Give each its own id.",
                ("operators", number, "id"),
            )
        seen.add(one.id)
        yield one


@dataclass(frozen=True)
class Pipeline:
    """A recipe: a sequence of stages, each of which gets the output rows of the previous one.

    Raises `ConfigError` if two stages have the same name, or there is no stage.
    """

    name: str
    stages: tuple[Stage, ...] = field(default=())

    def __post_init__(self) -> None:
        if not _NAME.fullmatch(self.name):
            raise ConfigError(
                f"{self.name!r} is not a valid pipeline name: expected letters, digits, `_`, `.` and `-`.", ("name",)
            )
        if not self.stages:
            raise ConfigError(f"pipeline `{self.name}` has no stage.")
        object.__setattr__(self, "stages", tuple(self.stages))
        seen: set[str] = set()
        for number, stage in enumerate(self.stages):
            if stage.name in seen:
                raise ConfigError(
                    f"pipeline `{self.name}` has two stages with the name `{stage.name}`.", ("stages", number, "name")
                )
            seen.add(stage.name)


def differences(before: Iterable[Mapping[str, Any]], now: Iterable[Mapping[str, Any]]) -> list[str]:
    """The differences between the operators of two configurations, as text."""
    old, new = ({str(one["id"]): one for one in some} for some in (before, now))
    found = [f"operator `{name}` is new" for name in new if name not in old]
    found += [f"operator `{name}` is gone" for name in old if name not in new]
    for name in new:
        if name in old:
            for key in sorted({*old[name], *new[name]}):
                was, is_now = old[name].get(key), new[name].get(key)
                if was != is_now:
                    found.append(f"`{key}` of `{name}` is {is_now!r:.200}, and was {was!r:.200}")
    if not found and list(old) != list(new):
        found.append(f"the order of operators is {', '.join(new)}, and was {', '.join(old)}")
    return found
