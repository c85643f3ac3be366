"""Words and sentences of texts, as the heuristics of quality count them."""

# ruff: noqa: RUF001

from __future__ import annotations

import re
import unicodedata
from functools import lru_cache

# URLs, numbers, addresses and rules of dashes are one word each, a contraction such as `don't` is two, and other marks
# are words of their own: so the tokenizer of spaCy divides English, which published pipelines use.
_WORD = re.compile(
    r"(?:https?://|www\.)[^\s)>\]]+|\d+(?:[.,:]\d+)+|['’]?\w+(?:[/@]\w+|\.[a-z0-9]\w*)*|-{2,}|\.{2,}|[^\w\s]"
)
# The end of a sentence, if something follows. What stands before a dot may be an abbreviation.
_END = re.compile(r"(\S*?)([.!?。！？]+)[\"'”’)\]»]*\s+(?=\S)")
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


def words_of(text: str) -> list[str]:
    """The words of a text, and the marks between them."""
    return _WORD.findall(text)


def is_symbol(word: str) -> bool:
    """Whether a word has no other characters than punctuation and signs."""
    # Most words begin with a letter.
    return not word[0].isalnum() and all(map(_is_mark, word))


@lru_cache(maxsize=4096)
def _is_mark(character: str) -> bool:
    return unicodedata.category(character)[0] in "PC" or character in "$+<=>^`|~"


def sentences_of(line: str) -> int:
    """How many sentences a line has."""
    if not line.strip():
        return 0
    return 1 + sum(
        1 for found in _END.finditer(line) if found[2] != "." or found[1].lower().lstrip("(\"'“") not in _ABBREVIATIONS
    )
