"""`docs/mutants.md`, made of `results.json`."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from mutants.groups import GROUPS

RESULTS = Path(__file__).with_name("results.json")
PAGE = Path(__file__).parents[2] / "docs" / "mutants.md"

_HEAD = """# Mutants

Whether the tests would notice a fault. A mutant is the code with one small change: `<` for `<=`, a number that is one
more, an exception that is not caught, a call that is left out. A mutant that fails a test is killed. `make mutants`
changes the code that holds data, and writes this page; `tests/mutants/groups.py` says which tests guard which modules.
At least 0.9 of each group must be killed, and each that survives has its reason.

All mutants of a group would take hours. So places are drawn by a seed from those that can be changed, and each gets one
mutant. One that takes three times as long as the tests do without it is killed, too: `by time` says how many. Run it on
a machine that does nothing else. Annotations and declarations of dataclasses are left as they are: they are mypy's
concern. Groups of the table that are not here have not been measured to their end.
"""


def page(results: dict[str, Any]) -> str:
    """The page as Markdown."""
    rows = [
        f"| [{name}](#{name}) | {', '.join(_modules(name))} | {one['places']} | {one['mutants']} | {one['killed']} | "
        f"{'not counted' if one['timeouts'] is None else one['timeouts']} | {one['killed'] / one['mutants']:.2f} |"
        for name, one in results.items()
    ]
    table = "\n".join(
        ["| group | modules | places | mutants | killed | by time | score |", "|---|---|---|---|---|---|---|", *rows]
    )
    return "\n\n".join([_HEAD.strip(), table, *(_survivors(name, one) for name, one in results.items())]) + "\n"


def _modules(name: str) -> list[str]:
    return [f"`{file.removesuffix('.py')}`" for file in GROUPS[name].files]


def _survivors(name: str, group: dict[str, Any]) -> str:
    found = [
        f"- `{one['file']}:{one['line']}`: {_code(one['before'])} as {_code(one['after'])}. {one['why']}"
        for one in group["survivors"]
    ]
    return "\n".join([f"## {name}", "", *(found or ["None survives."])])


def _code(line: str) -> str:
    return f"`{line}`" if "`" not in line else f"`` {line} ``"
