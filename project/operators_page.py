"""Writes docs/operators.md: the operators of the factory, from their docstrings and parameters.

Run it where the factory is installed: `.venv-factory/bin/python project/operators_page.py`.
"""

from __future__ import annotations

import inspect
import pkgutil
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from typing import Any

from pydantic_core import PydanticUndefined

from safetensors_spark.factory import Operator, operators
from safetensors_spark.factory._operator import RESOURCES

PAGE = Path(__file__).parents[1] / "docs" / "operators.md"

_HEAD = """# Operators of the factory

Configurations name an operator by its type, Python by its class. docs/factory.md says how stages run operators.
In addition to the parameters listed here, each operator takes `id`, and `gpus` and `concurrency`, which say where it
runs and do not change its results. `project/operators_page.py` generates this page from the docstrings.
"""


def page() -> str:
    """The page as it should be."""
    kinds = sorted(classes(), key=lambda kind: kind.type)
    table = ["| type | kind | |", "|---|---|---|"]
    table += [f"| [`{kind.type}`](#{kind.type}) | {kind.kind} | {_first_sentence(kind)} |" for kind in kinds]
    return "\n".join([_HEAD, *table, "", *map(_section, kinds)])


def classes() -> Iterator[Any]:
    """The operators of this package."""
    for module in pkgutil.iter_modules(operators.__path__):
        if not module.name.startswith("_"):
            found = import_module(f"{operators.__name__}.{module.name}")
            for value in vars(found).values():
                if inspect.isclass(value) and issubclass(value, Operator) and value.__module__ == found.__name__:
                    yield value


def _first_sentence(kind: Any) -> str:
    return " ".join(_text(kind).split("\n\n")[0].split())


def _text(kind: Any) -> str:
    return inspect.getdoc(kind) or ""


def _section(kind: Any) -> str:
    lines = [f"## {kind.type}", "", f"`{kind.__module__}.{kind.__name__}`, a {kind.kind}.", ""]
    lines += [_text(kind), "", "| parameter | default | |", "|---|---|---|"]
    for name, field in kind.model_fields.items():
        if name not in ("id", *RESOURCES):
            default = "" if field.default is PydanticUndefined else f"`{field.default!r}`"
            lines.append(f"| `{name}` | {default} | {field.description} |".replace("\n", " "))
    return "\n".join([*lines, ""])


if __name__ == "__main__":
    PAGE.write_text(page())
