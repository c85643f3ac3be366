"""Mutants of a module: Cosmic Ray's, and calls that are left out."""

from __future__ import annotations

import ast
import random
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import parso
from cosmic_ray.ast import ast_nodes, get_ast
from cosmic_ray.mutating import mutate_code
from cosmic_ray.operators.operator import Operator
from cosmic_ray.plugins import get_operator, operator_names

# They replace a comparison of values by one of identity, which is the same for small numbers, or the other way round.
_IDENTITY = ("_Is", "_IsNot")


class LeaveOutCall(Operator):  # type: ignore[misc]
    """Replaces a statement that is a call alone by `pass`."""

    def mutation_positions(self, node):  # type: ignore[no-untyped-def]
        if node.type == "expr_stmt" or node.parent is None or node.parent.type != "simple_stmt":
            return
        if node.type == "atom_expr" and node.children[-1].type == "trailer" and node.children[-1].children[0] == "(":
            yield node.start_pos, node.end_pos

    def mutate(self, node, index):  # type: ignore[no-untyped-def]
        return parso.parse(f"{node.get_first_leaf().prefix}pass")

    @classmethod
    def examples(cls):  # type: ignore[no-untyped-def]
        return ()


@dataclass(frozen=True)
class Mutant:
    """A change of one place in a file."""

    file: str
    line: int
    operator: str
    text: str

    def changed(self, source: str) -> tuple[str, str]:
        """The line before and after; where it is left out, the next one is there."""
        before, after = source.splitlines(), self.text.splitlines()
        return before[self.line - 1].strip(), after[self.line - 1].strip()


def sample(root: Path, files: tuple[str, ...], size: int, seed: str) -> tuple[int, list[Mutant]]:
    """The number of places that can be changed, and a mutant of each of so many of them, drawn at random."""
    drawn = random.Random(seed)
    places = [(file, place, variants) for file in files for place, variants in _places((root / file).read_text())]
    mutants: list[Mutant] = []
    for file, place, variants in drawn.sample(places, len(places)):
        if len(mutants) == size:
            break
        operator, occurrence = drawn.choice(variants)
        if not _is_declared((root / file).read_text(), place) and (
            text := _mutated((root / file).read_text(), operator, occurrence)
        ):
            mutants.append(Mutant(file, place[0], operator.rpartition("/")[2], text))
    return len(places), sorted(mutants, key=lambda one: (one.file, one.line, one.operator))


def _places(source: str) -> list[tuple[tuple[int, int], list[tuple[str, int]]]]:
    """Places in order, each with the operators that change it, and which of their occurrences it is."""
    tree = get_ast(source)
    found: dict[tuple[int, int], list[tuple[str, int]]] = defaultdict(list)
    for name in _names():
        positions = (start for node in ast_nodes(tree) for start, _ in _operator(name).mutation_positions(node))
        for occurrence, start in enumerate(positions):
            found[start].append((name, occurrence))
    types = list(_annotations(source))
    return [one for one in sorted(found.items()) if not any(begin <= one[0] < end for begin, end in types)]


def _annotations(source: str) -> Iterator[tuple[tuple[int, int], tuple[int, int]]]:
    """Where they are: nobody evaluates them."""
    for node in ast.walk(ast.parse(source)):
        annotation = node.annotation if isinstance(node, ast.arg | ast.AnnAssign) else getattr(node, "returns", None)
        if annotation is not None:
            yield (
                (annotation.lineno, annotation.col_offset),
                (annotation.end_lineno or 0, annotation.end_col_offset or 0),
            )


def _is_declared(source: str, place: tuple[int, int]) -> bool:
    """Whether a place declares a dataclass: nothing assigns to the fields of a frozen one, which mypy sees to."""
    decorators = (one for node in ast.walk(ast.parse(source)) for one in getattr(node, "decorator_list", ()))
    return any(one.lineno == place[0] and "dataclass" in ast.dump(one) for one in decorators)


def _names() -> Iterator[str]:
    yield "LeaveOutCall"
    for name in operator_names():
        if not get_operator(name).arguments() and not ("Comparison" in name and name.endswith(_IDENTITY)):
            yield name


def _operator(name: str) -> Operator:
    return LeaveOutCall() if name == "LeaveOutCall" else get_operator(name)()


def _mutated(source: str, name: str, occurrence: int) -> str | None:
    """The text; None if the operator cannot make it, or it is no Python."""
    try:
        text: str = mutate_code(source, _operator(name), occurrence)
        ast.parse(text)
    except (SyntaxError, AttributeError):
        return None
    return text
