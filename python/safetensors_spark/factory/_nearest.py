"""The name that was meant."""

from __future__ import annotations

from collections.abc import Iterable
from difflib import get_close_matches


def meant(name: str, names: Iterable[str]) -> str:
    """`Did you mean ...?` with the nearest of the names; else all of them, if they are not many."""
    known = sorted(set(names))
    lower = {one.lower().replace("-", "_"): one for one in known}
    near = get_close_matches(name.lower().replace("-", "_"), lower, 1)
    if near:
        return f"Did you mean `{lower[near[0]]}`?"
    return f"Expected one of {', '.join(known)}." if known else "There is none."
