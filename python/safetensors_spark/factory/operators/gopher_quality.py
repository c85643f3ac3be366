"""Gopher's quality rules."""

from __future__ import annotations

from typing import Any

from pydantic import Field

from safetensors_spark.factory.operators._quality import TextFilter, shown
from safetensors_spark.factory.operators._words import LETTERS, SYMBOL, packed_words_of

_ELLIPSES = ("...", "…")


class GopherQuality(TextFilter):
    """Drops texts that are not prose, by the rules of Gopher (Rae et al. 2021, arXiv:2112.11446, appendix A.1.1).

    A text needs 50 to 100,000 words with a mean length of 3 to 10 characters, where marks do not count; at most 0.1
    hash signs, and 0.1 ellipses, for each word; at most 90 % of lines that begin with a bullet and 30 % that end with
    an ellipsis; letters in 80 % of the words; and two of eight frequent English words. The first rule that fails is the
    reason.

    Decisions equal those of datatrove's `GopherQualityFilter` for the same words. This filter splits words by a
    pattern, which is faster than spaCy, and uses Unicode's definition of punctuation.
    """

    type = "gopher_quality"

    min_words: int = Field(default=50, ge=0, description="The minimum number of words.")
    max_words: int = Field(default=100_000, ge=1, description="The maximum number of words.")
    min_mean_length: float = Field(default=3, ge=0, description="The minimum mean length of words, in characters.")
    max_mean_length: float = Field(default=10, gt=0, description="The maximum mean length of words, in characters.")
    max_symbols: float = Field(
        default=0.1, ge=0, description="The maximum of hash signs, and of ellipses, for each word."
    )
    max_bullets: float = Field(
        default=0.9, ge=0, le=1, description="The maximum share of lines that begin with a bullet."
    )
    max_ellipses: float = Field(
        default=0.3, ge=0, le=1, description="The maximum share of lines that end with an ellipsis."
    )
    min_letters: float = Field(default=0.8, ge=0, le=1, description="The minimum share of words that have a letter.")
    min_stop_words: int = Field(default=2, ge=0, description="The minimum number of the `stop_words`.")
    stop_words: tuple[str, ...] = Field(
        default=("the", "be", "to", "of", "and", "that", "have", "with"),
        description="Frequent words of the language, in lower case.",
    )

    def reason(self, text: str) -> str | None:
        words = packed_words_of(text)
        lengths = words["length"][words["kind"] != SYMBOL]
        proper = len(lengths)
        if proper < self.min_words or not proper:
            return f"too few words: {proper} < {self.min_words}"
        if proper > self.max_words:
            return f"too many words: {proper} > {self.max_words}"
        length = int(lengths.sum()) / proper
        if length < self.min_mean_length:
            return f"words too short: {shown(length)} < {shown(self.min_mean_length)}"
        if length > self.max_mean_length:
            return f"words too long: {shown(length)} > {shown(self.max_mean_length)}"
        return self._symbols(text, len(words)) or self._lines(text) or self._language(words)

    def _symbols(self, text: str, words: int) -> str | None:
        for name, count in (("hash signs", text.count("#")), ("ellipses", sum(map(text.count, _ELLIPSES)))):
            if count / words > self.max_symbols:
                return f"too many {name}: {shown(count / words)} > {shown(self.max_symbols)}"
        return None

    def _lines(self, text: str) -> str | None:
        lines = text.splitlines()
        bullets = sum(line.lstrip().startswith(("•", "-")) for line in lines) / len(lines)
        if bullets > self.max_bullets:
            return f"too many bullets: {shown(bullets)} > {shown(self.max_bullets)}"
        ellipses = sum(line.rstrip().endswith(_ELLIPSES) for line in lines) / len(lines)
        if ellipses > self.max_ellipses:
            return f"too many lines end with an ellipsis: {shown(ellipses)} > {shown(self.max_ellipses)}"
        return None

    def _language(self, words: Any) -> str | None:
        letters = int((words["kind"] == LETTERS).sum()) / len(words)
        if letters < self.min_letters:
            return f"too few words with letters: {shown(letters)} < {shown(self.min_letters)}"
        stop_words, hashes = 0, words["hash"]
        for word in {*self.stop_words}:
            if stop_words >= self.min_stop_words:
                return None
            stop_words += bool((hashes == hash(word)).any())
        if stop_words < self.min_stop_words:
            return f"too few stop words: {stop_words} < {self.min_stop_words}"
        return None
