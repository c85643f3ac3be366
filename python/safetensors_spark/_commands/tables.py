"""Small tables for the terminal: drawn by rich on a terminal, plain text in a pipe or without rich.

Columns of numbers stand to the right.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Sequence
from dataclasses import dataclass, replace
from importlib.util import find_spec

from safetensors_spark._errors import printable


@dataclass(frozen=True)
class Table:
    """A title over rows of text, a cell per column."""

    title: str
    columns: tuple[str, ...]
    rows: Sequence[tuple[str, ...]]


def show(table: Table) -> None:
    """Print the table to standard output."""
    rows = [tuple(map(printable, row)) for row in table.rows]
    table = replace(table, title=printable(table.title), rows=rows)
    if sys.stdout.isatty() and find_spec("rich"):
        _show_rich(table)
    else:
        print(plain(table))


def plain(table: Table) -> str:
    """The table as text: a title, and columns aligned by spaces. A cell may hold several lines."""
    lines = [line for row in [table.columns, *table.rows] for line in _lines(row)]
    widths = [max(map(len, cells)) for cells in zip(*lines, strict=True)]
    sides = [str.rjust if numeric else str.ljust for numeric in _numeric(table)]
    cells = ([side(cell, width) for side, cell, width in zip(sides, line, widths, strict=True)] for line in lines)
    body = ("  ".join(line).rstrip() for line in cells)
    return "\n".join([table.title, *(f"  {line}" for line in body), ""])


def _numeric(table: Table) -> list[bool]:
    """Which columns hold nothing but numbers."""
    columns = list(zip(*table.rows, strict=True)) or [()] * len(table.columns)
    return [bool(column) and all(re.fullmatch(r"[\d.,]+", cell) for cell in column) for column in columns]


def _lines(row: tuple[str, ...]) -> list[tuple[str, ...]]:
    """The row's text lines, with empty cells where one cell has fewer of them than another."""
    cells = [cell.split("\n") for cell in row]
    height = max(map(len, cells))
    return list(zip(*(cell + [""] * (height - len(cell)) for cell in cells), strict=True))


def _show_rich(table: Table) -> None:
    from rich import box
    from rich.console import Console
    from rich.table import Table as RichTable
    from rich.text import Text

    drawn = RichTable(title=table.title, title_justify="left", title_style="bold", box=box.ROUNDED)
    for name, numeric in zip(table.columns, _numeric(table), strict=True):
        drawn.add_column(name, justify="right" if numeric else "left", overflow="fold")
    for row in table.rows:
        drawn.add_row(*map(Text, row))
    Console().print(drawn)
