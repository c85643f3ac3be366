"""Gopher's repetition rules."""

from __future__ import annotations

from typing import Any

import numpy as np
from pydantic import Field

from safetensors_spark.factory.operators._quality import TextFilter, repeated, shown
from safetensors_spark.factory.operators._words import packed_words_of

# Odd: so that each word tells in the hash of its n-gram.
_FACTOR = np.uint64(0x9E3779B97F4A7C15)


class GopherRepetition(TextFilter):
    """Drops texts that repeat themselves, by the rules of Gopher (Rae et al. 2021, arXiv:2112.11446, table A1).

    It limits the share of the text's characters in repeated lines and paragraphs, in the most frequent
    2-, 3- and 4-gram of words, and in repeated 5- to 10-grams, each counted where it does not overlap the
    previous one. It limits the share of repeated lines and paragraphs, too. The first rule that fails is the reason.

    Decisions equal those of datatrove's `GopherRepetitionFilter` for the same words, except that datatrove compares
    n-grams without the blanks between words. This filter splits words by a pattern, which is faster than spaCy.
    """

    type = "gopher_repetition"

    max_lines: float = Field(default=0.3, description="The maximum share of repeated lines.")
    max_paragraphs: float = Field(default=0.3, description="The maximum share of repeated paragraphs.")
    max_line_characters: float = Field(default=0.2, description="The maximum share of characters in such lines.")
    max_paragraph_characters: float = Field(
        default=0.2, description="The maximum share of characters in such paragraphs."
    )
    top_grams: dict[int, float] = Field(
        default={2: 0.2, 3: 0.18, 4: 0.16},
        description="By the number of words, the maximum share of the most frequent n-gram.",
    )
    repeated_grams: dict[int, float] = Field(
        default={5: 0.15, 6: 0.14, 7: 0.13, 8: 0.12, 9: 0.11, 10: 0.1},
        description="By the number of words, the maximum share of repeated n-grams.",
    )

    def reason(self, text: str) -> str | None:
        return self._parts(text) or self._grams(text)

    def _parts(self, text: str) -> str | None:
        if not text:
            return "no text"
        for name, parts, number, share in (
            ("paragraphs", _paragraphs(text), self.max_paragraphs, self.max_paragraph_characters),
            ("lines", _lines(text), self.max_lines, self.max_line_characters),
        ):
            count, characters = repeated(parts)
            if count / len(parts) > number:
                return f"repeated {name}: {shown(count / len(parts))} > {shown(number)}"
            if characters / len(text) > share:
                return f"characters in repeated {name}: {shown(characters / len(text))} > {shown(share)}"
        return None

    def _grams(self, text: str) -> str | None:
        grams = _Grams(packed_words_of(text))
        for size, share in sorted(self.top_grams.items()):
            if grams.are_rare(size, min(self.top_grams), share, len(text)):
                continue
            top = grams.most_frequent(size) / len(text)
            if top > share:
                return f"characters of one {size}-gram: {shown(top)} > {shown(share)}"
        sizes, shares = self.repeated_grams.keys(), self.repeated_grams.values()
        if not sizes or grams.most_repeated(max(sizes), min(sizes)) / len(text) <= min(shares):
            return None
        for size, share in sorted(self.repeated_grams.items()):
            if grams.most_repeated(size, size) / len(text) <= share:
                continue
            again = grams.repeated(size) / len(text)
            if again > share:
                return f"characters in repeated {size}-grams: {shown(again)} > {shown(share)}"
        return None


def _paragraphs(text: str) -> list[str]:
    """The parts between two or more line ends."""
    text = text.strip()
    # Of three line ends the third one is left.
    return [part for each in text.split("\n\n") if (part := each.lstrip("\n"))] or [text]


def _lines(text: str) -> list[str]:
    """The parts between one or more line ends."""
    lines = text.split("\n")
    # As where the pattern of line ends divides, what is before the first one and behind the last one counts.
    return [lines[0], *filter(None, lines[1:-1]), *lines[-1:]] if "\n\n" in text else lines


class _Grams:
    """N-grams of words by 64-bit hashes, which do not collide in texts of any realistic length.

    Most texts repeat little. Bounds show this in less time than computing the shares: longer n-grams are repeated only
    where shorter ones are, so a bound for n-grams holds for longer ones.
    """

    def __init__(self, words: Any) -> None:
        # Spread over all bits, and those of equal words are equal in this process.
        self._ids = words["hash"].astype(np.uint64) * _FACTOR
        self._ends = np.zeros(len(words) + 1, np.int64)
        np.cumsum(words["length"], out=self._ends[1:])
        self._hashes: dict[int, Any] = {1: self._ids}
        self._sorted: dict[int, Any] = {}

    def are_rare(self, size: int, least: int, share: float, characters: int) -> bool:
        """Whether the most frequent n-gram has no larger share, judged by n-grams of `least` words, or of its size."""
        lengths = self._ends[size:] - self._ends[:-size]
        if not len(lengths):
            return True
        longest = int(lengths.max()) + size - 1
        count = int(share * characters / longest)
        if count < 1 or count * longest / characters > share:
            return False
        return not self._comes(least, count + 1) or not self._comes(size, count + 1)

    def _comes(self, size: int, times: int) -> bool:
        """Whether an n-gram comes so many times, two or more."""
        found = self._in_order(size)
        return bool((found[times - 1 :] == found[: 1 - times]).any())

    def _in_order(self, size: int) -> Any:
        if size not in self._sorted:
            self._sorted[size] = np.sort(self._of(size))
        return self._sorted[size]

    def most_frequent(self, size: int) -> int:
        """The characters of all occurrences of the most frequent one, with blanks. Of several it is the first."""
        hashes = self._of(size)
        if not len(hashes):
            return 0
        _, first, counts = np.unique(hashes, return_index=True, return_counts=True)
        count = counts.max()
        place = first[counts == count].min()
        return int((self._ends[place + size] - self._ends[place] + size - 1) * count)

    def most_repeated(self, size: int, least: int) -> int:
        """As many characters as `repeated` has at most: in n-grams whose first `least` words were there before."""
        places = self._places(least)
        if not len(places):
            return 0
        steps = np.zeros(len(self._ends) + size, np.int64)
        steps[places] = 1
        steps[places + size] -= 1
        is_within = steps.cumsum()[: len(self._ids)] > 0
        return int((self._ends[1:] - self._ends[:-1])[is_within].sum())

    def _places(self, size: int) -> Any:
        """Where n-grams begin that were there before."""
        # Sorting is faster than what tells the order, and most texts have few that come again.
        found, hashes = self._in_order(size), self._of(size)
        again = found[1:][found[1:] == found[:-1]]
        if not len(again):
            return again
        where = again.searchsorted(hashes)
        where[where == len(again)] = 0
        places = (again[where] == hashes).nonzero()[0]
        is_new = np.ones(len(places), bool)
        is_new[np.unique(hashes[places], return_index=True)[1]] = False
        return places[is_new]

    def repeated(self, size: int) -> int:
        """The characters, without blanks, of those that were there before and do not overlap."""
        found, seen, characters, place = self._of(size).tolist(), set[int](), 0, 0
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
