"""FineWeb's rules of quality."""

# ruff: noqa: RUF001

from __future__ import annotations

from pydantic import Field

from safetensors_spark.factory.operators._quality import TextFilter, repeated, shown
from safetensors_spark.factory.operators._words import words_of

# What ends sentences in Latin, Greek, Cyrillic, Hebrew, Arabic, Indic, East Asian, Ethiopic, Armenian, Khmer and
# Burmese texts.
_ENDS = tuple(".!?‼⁇⁈⁉‽。！？．｡﹒﹖﹗؟۔؞।॥။၊።፧፨։។៕᠃᠉꓿")


class FinewebQuality(TextFilter):
    """Drops lists, menus and fragmented texts, by the rules of FineWeb (Penedo et al. 2024, arXiv:2406.17557, 3.6).

    A text is kept if, of the lines that are not empty, at least 12 % end with a mark that ends sentences, and at most
    67 % have 30 characters or less; characters of repeated lines are at most 1 % of all; and there are at most 0.3 line
    ends for each word. The first rule that fails is the reason.

    Decisions equal those of datatrove's `FineWebQualityFilter` for the same words, except that it knows the marks of
    more scripts. FineWeb applies Gopher's rules for repetition and quality, and C4's, before this one.
    """

    type = "fineweb_quality"

    min_ends: float = Field(default=0.12, ge=0, le=1, description="The minimum share of lines that end a sentence.")
    max_short_lines: float = Field(default=0.67, ge=0, le=1, description="The maximum share of short lines.")
    short_line: int = Field(default=30, ge=0, description="The maximum number of characters in a short line.")
    max_repeated: float = Field(
        default=0.01, ge=0, le=1, description="The maximum share of characters in repeated lines."
    )
    max_line_ends: float = Field(default=0.3, ge=0, description="The maximum number of line ends for each word.")

    def reason(self, text: str) -> str | None:
        lines = [line for line in text.split("\n") if line.strip()]
        if not lines:
            return "no text"
        ends = sum(line.endswith(_ENDS) for line in lines) / len(lines)
        if ends < self.min_ends:
            return f"too few lines end a sentence: {shown(ends)} < {shown(self.min_ends)}"
        short = sum(len(line) <= self.short_line for line in lines) / len(lines)
        if short > self.max_short_lines:
            return f"too many short lines: {shown(short)} > {shown(self.max_short_lines)}"
        ends_of_lines = text.count("\n")
        again = repeated(lines)[1] / (len(text) - ends_of_lines)
        if again > self.max_repeated:
            return f"characters in repeated lines: {shown(again)} > {shown(self.max_repeated)}"
        return self.reason_of(text, words_of(text))

    def reason_of(self, text: str, words: list[str]) -> str | None:
        """Why the words of a text fail the rules; None if they pass."""
        ratio = text.count("\n") / max(1, len(words))
        if ratio > self.max_line_ends:
            return f"line ends for each word: {shown(ratio)} > {shown(self.max_line_ends)}"
        return None
