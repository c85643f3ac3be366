"""C4's rules, for lines and for whole texts."""

from __future__ import annotations

import re
from collections.abc import Mapping

import pyarrow as pa  # type: ignore[import-untyped]
from pydantic import Field

from safetensors_spark.factory._operator import Columns, Refiner
from safetensors_spark.factory.operators._quality import TextFilter
from safetensors_spark.factory.operators._words import sentences_of

_CITATION = re.compile(r"\[\d*\]|\[edit\]|\[citation needed\]")
_ENDS = (".", "?", "!", '"', "'")
_LOREM_IPSUM, _JAVASCRIPT = "lorem ipsum", "javascript"
_POLICIES = ("terms of use", "privacy policy", "cookie policy", "uses cookies", "use of cookies", "use cookies")


def _line(text: str, min_words: int, max_word: int) -> str | None:
    """A line without citations; None for a line that is removed."""
    line = text.strip()
    words = line.split()
    if len(line) > max_word and max(map(len, words)) > max_word:
        return None
    if "[" in line:
        line = _CITATION.sub("", line)
    if not line.endswith(_ENDS) or line.endswith("...") or len(words) < min_words:
        return None
    return line


def _may_speak_of(text: str, phrases: tuple[str, ...]) -> bool:
    """Whether a line of the text may contain one of these phrases: without citations, in lower case."""
    small = text.lower()
    # Without citations what stands around them is one phrase.
    return "[" in text or any(map(small.__contains__, phrases))


def _is_boilerplate(small: str) -> bool:
    return _JAVASCRIPT in small or any(map(small.__contains__, _POLICIES))


class C4Lines(Refiner):
    """Removes lines that are not sentences, by the rules of C4 (Raffel et al. 2020, arXiv:1910.10683, section 2.2).

    A line is kept if it ends with a mark that ends a sentence or a quotation, and not with an ellipsis; has at least
    three words, none with more than 1000 characters; and mentions neither JavaScript nor cookies nor terms of use.
    Wikipedia citations, such as `[1]`, are removed. Use `c4_quality` after it to drop texts that become too short.
    """

    type = "c4_lines"

    field: str = Field(default="text", description="The text field.")
    min_words: int = Field(default=3, ge=0, description="The minimum number of words in a line.")
    max_word: int = Field(default=1000, ge=1, description="The maximum number of characters in a word.")

    @property
    def reads(self) -> tuple[str, ...]:
        return (self.field,)

    @property
    def writes(self) -> Mapping[str, pa.DataType]:
        return {self.field: pa.string()}

    def refine(self, batch: pa.RecordBatch) -> Columns:
        texts = batch.column(self.field).to_pylist()
        return {self.field: [None if text is None else self._kept(text) for text in texts]}

    def _kept(self, text: str) -> str:
        found = (_line(line, self.min_words, self.max_word) for line in text.splitlines())
        lines = [line for line in found if line is not None]
        if _may_speak_of(text, (_JAVASCRIPT, *_POLICIES)):
            lines = [line for line in lines if not _is_boilerplate(line.lower())]
        return "\n".join(lines).strip()


class C4Quality(TextFilter):
    """Drops texts by the rules of C4 (Raffel et al. 2020, arXiv:1910.10683, section 2.2).

    A text is kept if no line that `c4_lines` would keep contains `lorem ipsum` or a curly bracket, and these lines have
    at least five sentences. The list of bad words is not applied. The text itself is not changed: `c4_lines` does that.

    Decisions equal those of datatrove's `C4QualityFilter`, except that sentences end at marks before white space, but
    not after frequent abbreviations, where datatrove uses spaCy.
    """

    type = "c4_quality"

    min_sentences: int = Field(default=5, ge=0, description="The minimum number of sentences.")
    min_words: int = Field(default=3, ge=0, description="The minimum number of words in a line.")
    max_word: int = Field(default=1000, ge=1, description="The maximum number of characters in a word.")

    def reason(self, text: str) -> str | None:
        sentences, may_speak = 0, _may_speak_of(text, (_LOREM_IPSUM, _JAVASCRIPT, *_POLICIES))
        for whole in text.splitlines():
            line = _line(whole, self.min_words, self.max_word)
            if line is None:
                continue
            small = line.lower() if may_speak else ""
            if _LOREM_IPSUM in small:
                return _LOREM_IPSUM
            if _JAVASCRIPT in small:
                continue
            if "{" in line:
                return "a curly bracket"
            if not _is_boilerplate(small):
                sentences += sentences_of(line)
        return None if sentences >= self.min_sentences else f"too few sentences: {sentences} < {self.min_sentences}"
