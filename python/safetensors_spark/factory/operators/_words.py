"""Words and sentences of texts, as the quality heuristics count them."""

# ruff: noqa: RUF001

from __future__ import annotations

import re
import unicodedata
from functools import lru_cache
from itertools import chain
from typing import Any

import numpy as np

from safetensors_spark.factory.operators._remembered import Remembered

# URLs, numbers, addresses and rules of dashes are one word each, a contraction such as `don't` is two, and other marks
# are words of their own: so the tokenizer of spaCy divides English, which published pipelines use.
_WORD = re.compile(
    r"(?:https?://|www\.)[^\s)>\]]+|\d+(?:[.,:]\d+)+|['’]?\w+(?:[/@]\w+|\.[a-z0-9]\w*)*|-{2,}|\.{2,}|[^\w\s]"
)
# The end of a sentence. What stands before a dot may be an abbreviation.
_END = re.compile(r"(\S*?)([.!?。！？]+)[\"'”’)\]»]*")
_ABBREVIATIONS = frozenset(
    [
        "mr",
        "mrs",
        "ms",
        "dr",
        "prof",
        "st",
        "jr",
        "sr",
        "vs",
        "etc",
        "e.g",
        "i.e",
        "no",
        "vol",
        "pp",
        "fig",
        "al",
        "inc",
        "ltd",
        "co",
        "corp",
        "u.s",
        "u.k",
        "a.m",
        "p.m",
        "gen",
        "rep",
        "sen",
        "gov",
    ]
)


# Of words: a hash, their characters, and what kind they are. A hash differs from run to run, but not in one.
_PACKED = np.dtype([("hash", np.int64), ("length", np.int32), ("kind", np.int32)])
SYMBOL, NO_LETTER, LETTERS = 0, 1, 2


def words_of(text: str) -> list[str]:
    """The words of a text, and the marks between them."""
    # None of the patterns crosses white space.
    return list(chain.from_iterable(map(_divided, text.split())))


def packed_words_of(text: str) -> Any:
    """The `words_of` a text, as an array of their `hash`, `length` and `kind`.

    A `SYMBOL` has only punctuation and signs; other words are of kind `LETTERS` if they have at least one letter.
    """
    return np.frombuffer(b"".join(map(_packed_words.__getitem__, text.split())), _PACKED)


def _packed(part: str) -> bytes:
    return np.array([(hash(word), len(word), _kind_of(word)) for word in _divided(part)], _PACKED).tobytes()


def _divided(part: str) -> list[str]:
    return _WORD.findall(part)


def _kind_of(word: str) -> int:
    if all(map(_is_mark, word)):
        return SYMBOL
    return LETTERS if any(map(str.isalpha, word)) else NO_LETTER


@lru_cache(maxsize=4096)
def _is_mark(character: str) -> bool:
    return unicodedata.category(character)[0] in "PC" or character in "$+<=>^`|~"


def sentences_of(line: str) -> int:
    """How many sentences a line has."""
    parts = line.split()
    # The last one ends in any case.
    return 1 + sum(map(_ends.__getitem__, parts[:-1])) if parts else 0


def _ends_sentence(part: str) -> bool:
    found = _END.fullmatch(part)
    return found is not None and (found[2] != "." or found[1].lower().lstrip("(\"'“") not in _ABBREVIATIONS)


_packed_words, _ends = Remembered(_packed), Remembered(_ends_sentence)
