"""The usual text of a header, parsed many tensors at a time.

Python's JSON parser makes several objects for each tensor. Here a regular expression splits the text at the tensors
that are written as usual, and the JSON parser gets only what is between them.
"""

from __future__ import annotations

import re
from array import array
from collections.abc import Iterator
from typing import Any

import numpy as np

from safetensors_spark._files.header_json import METADATA, members_of, split_members, tensor_of
from safetensors_spark._files.tensors import Tensors, columns_of

_SPACES = " \t\n\r"


# A tensor, with `~` for what may be between the tokens: its name, its dtype with its shape, and its offsets.
_NAME = r'"([^"\\\x00-\x1f]*(?:\\.[^"\\\x00-\x1f]*)*)"'
_KIND = rf'("[A-Z0-9_]+"~,~"shape"~:~\[[0-9,{_SPACES}]*\])'
_OFFSETS = r"\[~(0|[1-9][0-9]{0,17})~,~(0|[1-9][0-9]{0,17})~\]"
_TENSOR = rf'{_NAME}~:~\{{~"dtype"~:~{_KIND}~,~"data_offsets"~:~{_OFFSETS}~\}}'
_COMPACT, _SPACED = (re.compile(_TENSOR.replace("~", between)) for between in ("", f"[{_SPACES}]*"))

# Characters that are parsed at a time.
_PIECE = 4 << 20


def parse_usual(text: str) -> tuple[dict[str, str], Tensors] | None:
    """Metadata and tensors; None if the text must be parsed as a whole, which also finds what is wrong with it."""
    found = _Found()
    try:
        for piece in _pieces(text):
            found.add(piece)
        return found.all()
    except (ValueError, RecursionError):
        return None


def _pieces(text: str) -> Iterator[str]:
    """The members of the object, cut at commas behind tensors."""
    end = text.rfind("}")
    if text[:1] != "{" or end < 0 or text[end + 1 :].strip(_SPACES):
        raise ValueError("no object")
    start = 1
    while (cut := text.find("]},", start + _PIECE, end)) >= 0:
        yield text[start : cut + 2]
        start = cut + 3
    if start > 1 and not text[start:end].strip(_SPACES):
        raise ValueError("a comma too many")
    yield text[start:end]


class _Kinds(dict[str, int]):
    """The place in `kinds` of each text of a dtype and a shape."""

    def __init__(self) -> None:
        super().__init__()
        self.kinds: list[tuple[str, tuple[int, ...]]] = []

    def __missing__(self, text: str) -> int:
        ((_, value),) = members_of(f'{{"":{{"dtype":{text},"data_offsets":[0,0]}}}}')
        tensor = tensor_of("", value)
        self.kinds.append((tensor.dtype, tensor.shape))
        self[text] = len(self.kinds) - 1
        return self[text]


class _Found:
    def __init__(self) -> None:
        self._names: list[str] = []
        self._kinds = _Kinds()
        self._kind_of, self._begins, self._ends = array("i"), array("q"), array("q")
        self._others: list[tuple[str, Any]] = []

    def add(self, piece: str) -> None:
        """Add the members in a piece of the text."""
        # What is before the first tensor; then name, kind, begin and end of a tensor, and what is behind it; and so on.
        parts = (_COMPACT if '"data_offsets":[' in piece else _SPACED).split(piece)
        gaps, names = parts[::5], parts[1::5]
        last = len(gaps) - 1
        for number in [number for number, gap in enumerate(gaps) if gap != "," or number in (0, last)]:
            self._others += _between(gaps[number], number > 0, number < last)
        self._names += map(_unescaped, names) if "\\" in piece else names
        self._kind_of.extend(map(self._kinds.__getitem__, parts[2::5]))
        self._begins.extend(map(int, parts[3::5]))
        self._ends.extend(map(int, parts[4::5]))

    def all(self) -> tuple[dict[str, str], Tensors]:
        metadata, others = split_members(self._others)
        begins, ends = (np.array(column, np.int64) for column in (self._begins, self._ends))
        tensors = Tensors(self._names, self._kinds.kinds, np.array(self._kind_of, np.int32), begins, ends)
        if others:
            tensors = columns_of([*tensors, *others])
        names = set(tensors.names)
        if len(names) < len(tensors) or METADATA in names:
            raise ValueError("a name twice")
        return metadata, tensors


def _between(gap: str, is_behind: bool, is_before: bool) -> list[tuple[str, Any]]:
    """The members in a text that is behind a tensor, before one, or both. Raises ValueError if it is not whole."""
    inner = gap.strip(_SPACES)
    if inner == ("," if is_behind and is_before else ""):
        return []
    if (is_behind and inner[:1] != ",") or (is_before and inner[-1:] != ","):
        raise ValueError("no comma")
    members = members_of(f"{{{inner[is_behind : len(inner) - is_before]}}}")
    if not members:
        raise ValueError("a comma too many")
    return members


def _unescaped(name: str) -> str:
    return members_of(f'{{"{name}":0}}')[0][0] if "\\" in name else name
