"""Gopher's rules of repetition."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
from pydantic import Field

from safetensors_spark.factory.operators._quality import TextFilter, repeated, shown
from safetensors_spark.factory.operators._words import words_of

_PARAGRAPHS, _LINES = re.compile(r"\n{2,}"), re.compile(r"\n+")
# Odd: so that each word tells in the hash of its n-gram.
_FACTOR = np.uint64(0x9E3779B97F4A7C15)


class GopherRepetition(TextFilter):
    """Drops texts that repeat themselves, by the rules of Gopher (Rae et al. 2021, arXiv:2112.11446, table A1).

    Shares are of all characters of the text: those of lines and paragraphs that were there before, of the most frequent
    2-, 3- and 4-gram of words, and of 5- to 10-grams that were there before, each counted where it does not overlap the
    one before. Of lines and paragraphs their number counts, too. The first rule that fails is the reason.

    Decisions are those of datatrove's `GopherRepetitionFilter` for the same words, but that n-grams are equal there if
    their words are equal without the blanks between them. Ours are divided by a pattern, which is faster than spaCy.
    """

    type = "gopher_repetition"

    max_lines: float = Field(default=0.3, description="The share of lines that were there before.")
    max_paragraphs: float = Field(default=0.3, description="The share of paragraphs that were there before.")
    max_line_characters: float = Field(default=0.2, description="The share of characters in such lines.")
    max_paragraph_characters: float = Field(default=0.2, description="The share of characters in such paragraphs.")
    top_grams: dict[int, float] = Field(
        default={2: 0.2, 3: 0.18, 4: 0.16},
        description="By the number of words, the share of the most frequent n-gram.",
    )
    repeated_grams: dict[int, float] = Field(
        default={5: 0.15, 6: 0.14, 7: 0.13, 8: 0.12, 9: 0.11, 10: 0.1},
        description="By the number of words, the share of n-grams that were there before.",
    )

    def reason(self, text: str) -> str | None:
        return self._lines(text) or self.reason_of(text, words_of(text))

    def _lines(self, text: str) -> str | None:
        if not text:
            return "no text"
        for name, parts, number, share in (
            ("paragraphs", _PARAGRAPHS.split(text.strip()), self.max_paragraphs, self.max_paragraph_characters),
            ("lines", _LINES.split(text), self.max_lines, self.max_line_characters),
        ):
            count, characters = repeated(parts)
            if count / len(parts) > number:
                return f"repeated {name}: {shown(count / len(parts))} > {shown(number)}"
            if characters / len(text) > share:
                return f"characters in repeated {name}: {shown(characters / len(text))} > {shown(share)}"
        return None

    def reason_of(self, text: str, words: list[str]) -> str | None:
        """What n-grams of these words of the text say."""
        grams = _Grams(words)
        for size, share in sorted(self.top_grams.items()):
            top = grams.most_frequent(size) / len(text)
            if top > share:
                return f"characters of one {size}-gram: {shown(top)} > {shown(share)}"
        for size, share in sorted(self.repeated_grams.items()):
            again = grams.repeated(size) / len(text)
            if again > share:
                return f"characters in repeated {size}-grams: {shown(again)} > {shown(share)}"
        return None


class _Grams:
    """N-grams of words by 64-bit hashes, of which no two are equal by chance in texts of any length."""

    def __init__(self, words: list[str]) -> None:
        numbers: dict[str, int] = {}
        ids = [numbers.setdefault(word, len(numbers)) for word in words]
        # Spread over all bits.
        self._ids = (np.array(ids, np.uint64) + np.uint64(1)) * _FACTOR
        self._ends = np.concatenate([[0], np.cumsum(np.fromiter(map(len, words), np.int64, len(words)))])
        self._hashes: dict[int, Any] = {1: self._ids}

    def most_frequent(self, size: int) -> int:
        """The characters of all occurrences of the most frequent one, with blanks. Of several it is the first."""
        hashes = self._of(size)
        if not len(hashes):
            return 0
        _, first, counts = np.unique(hashes, return_index=True, return_counts=True)
        count = counts.max()
        place = first[counts == count].min()
        return int((self._ends[place + size] - self._ends[place] + size - 1) * count)

    def repeated(self, size: int) -> int:
        """The characters, without blanks, of those that were there before and do not overlap."""
        hashes = self._of(size)
        if len(np.unique(hashes)) == len(hashes):
            return 0
        found, seen, characters, place = hashes.tolist(), set[int](), 0, 0
        while place < len(found):
            if found[place] in seen:
                characters += int(self._ends[place + size] - self._ends[place])
                place += size
            else:
                seen.add(found[place])
                place += 1
        return characters

    def _of(self, size: int) -> Any:
        if size not in self._hashes:
            shorter = self._of(size - 1)
            # What is multiplied is mixed, so that the order of words tells.
            mixed = (shorter[:-1] ^ (shorter[:-1] >> np.uint64(29))) * _FACTOR
            self._hashes[size] = mixed + self._ids[size - 1 :]
        return self._hashes[size]
