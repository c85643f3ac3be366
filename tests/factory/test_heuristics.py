"""Filters by heuristics, beside datatrove, which publishes the same ones."""

from __future__ import annotations

import importlib.metadata
import random
from collections.abc import Callable, Iterator
from pathlib import Path
from pydoc_data.topics import topics
from typing import Any

import pyarrow as pa  # type: ignore[import-untyped]
import pytest
from datatrove.data import Document
from datatrove.pipeline.filters import (
    C4QualityFilter,
    FineWebQualityFilter,
    GopherQualityFilter,
    GopherRepetitionFilter,
    c4_filters,
    fineweb_quality_filter,
    gopher_quality_filter,
    gopher_repetition_filter,
)

from safetensors_spark.factory.operators._words import sentences_of, words_of
from safetensors_spark.factory.operators.c4 import C4Lines, C4Quality
from safetensors_spark.factory.operators.fineweb_quality import FinewebQuality
from safetensors_spark.factory.operators.gopher_quality import GopherQuality
from safetensors_spark.factory.operators.gopher_repetition import GopherRepetition

PAIRS: list[tuple[Any, Any, Any]] = [
    (GopherQuality, GopherQualityFilter, gopher_quality_filter),
    (GopherRepetition, GopherRepetitionFilter, gopher_repetition_filter),
    (C4Quality, C4QualityFilter, c4_filters),
    (FinewebQuality, FineWebQualityFilter, fineweb_quality_filter),
]


def real_texts() -> list[str]:
    """The topics of Python's help, descriptions of packages and licences: prose, lists and tables."""
    found = list(topics.values())
    for package in importlib.metadata.distributions():
        found.append(str(package.metadata.json.get("description") or ""))
        found += [
            Path(file.locate()).read_text(errors="replace")
            for file in package.files or ()
            if file.name.startswith(("LICENSE", "README", "NOTICE"))
            and Path(file.locate()).is_file()
            and file.suffix != ".py"
        ]
    return sorted(dict.fromkeys(text for text in found if text.isascii()))


def made_texts(count: int) -> Iterator[str]:
    """Lines of words, bullets, marks and repetitions, near the limits of the rules."""
    draw = random.Random(1)
    words = ["the", "of", "and", "have", *(f"{first}ord{number}" for first in "wf" for number in range(30))]
    marks = ["#", "...", "-", "12", "3.5", "{", "[1]", "lorem ipsum", "javascript", "use cookies", "don't", "x" * 11]
    for _ in range(count):
        some = draw.sample(words, draw.randint(3, len(words)))
        lines = []
        for _ in range(draw.randint(0, 25)):
            line = draw.choices(some, k=draw.choice([1, 3, 8, 20]))
            if draw.random() < 0.3:
                line.insert(draw.randrange(len(line)), draw.choice(marks))
            start, end = draw.choice(["", "", "- ", "  -"]), draw.choice([".", "!", "", "...", ' "', ". And so on."])
            lines.append(start + " ".join(line) + end)
            lines += [lines[-1]] * (draw.random() < 0.1) + [""] * (draw.random() < 0.2)
        yield "\n".join(lines)


def _theirs(published: Any, text: str) -> bool:
    try:
        found = published.filter(Document(text, "id"))
    except ZeroDivisionError:
        # Of a text without words.
        return False
    return found is True


@pytest.mark.parametrize(("ours", "theirs", "module"), PAIRS, ids=[one.type for one, _, _ in PAIRS])
def test_decisions_are_those_of_datatrove_for_the_same_words(
    ours: Any, theirs: Any, module: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "split_into_words", lambda text, _: words_of(text), raising=False)
    monkeypatch.setattr(module, "split_into_sentences", lambda line, _: [line] * sentences_of(line), raising=False)
    operator, published = ours(), theirs()
    decisions = set()
    for text in [*real_texts(), *made_texts(2000)]:
        reason = operator.reason(text)
        assert (reason is None) == _theirs(published, text), (reason, published.filter(Document(text, "id")), text)
        decisions.add(reason and reason.partition(":")[0])
    # All of its rules were tried, and texts that it keeps.
    assert len(decisions) >= 4


@pytest.mark.parametrize(("ours", "theirs", "module"), PAIRS, ids=[one.type for one, _, _ in PAIRS])
def test_decisions_are_nearly_those_of_datatrove(ours: Any, theirs: Any, module: Any) -> None:
    pytest.importorskip("spacy")
    operator, published = ours(), theirs()
    texts = [text for text in real_texts() if len(text) < 30_000]
    same = sum((operator.reason(text) is None) == _theirs(published, text) for text in texts)
    assert len(texts) > 150
    # Which texts there are depends on what is installed, and most are tables and markup rather than prose.
    assert same / len(texts) >= 0.95


def test_lines_are_those_that_c4_keeps(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(c4_filters, "split_into_sentences", lambda line, _: [line])
    published, operator = C4QualityFilter(min_num_sentences=-1), C4Lines()
    for text in [*real_texts(), *made_texts(500)]:
        document = Document(text, "id")
        if "{" not in text and "lorem" not in text and published.filter(document) is True:
            (kept,) = operator.refine(pa.record_batch({"text": [text]}))["text"]
            assert kept == document.text


@pytest.mark.parametrize("ours", [one for one, _, _ in PAIRS], ids=lambda one: one.type)
def test_texts_of_all_sorts_have_a_reason(ours: Any) -> None:
    long = "The line of words that have been written, and that end. " * 180_000
    texts = ["", None, " \n ", "?!.", "😀👩‍👩‍👧", "漢字かな交じり文。" * 30, "a", "\n".join(["a b c."] * 100), long]
    for kind in (pa.string(), pa.large_string()):
        batch = pa.record_batch({"text": pa.array(texts, kind)})
        reasons = ours().reasons(batch)
        assert reasons[1] == "no text"
        assert all(isinstance(reason, str | None) for reason in reasons)
        assert ours().reasons(batch.slice(1, 2)) == reasons[1:3]
        assert ours().reasons(batch.slice(0, 0)) == []


def test_reasons_say_rule_and_value() -> None:
    prose = " ".join(f"The kitten number {number} rested with another mat and was fond of it." for number in range(20))
    expected: list[tuple[Callable[[str], str | None], str, str | None]] = [
        (GopherQuality().reason, prose, None),
        (GopherQuality(min_words=400).reason, prose, "too few words: 260 < 400"),
        (GopherQuality().reason, prose.replace(" mat", " ... mat ..."), "too many ellipses: 0.125 > 0.1"),
        (GopherRepetition().reason, prose, "characters of one 3-gram: 0.264 > 0.18"),
        (FinewebQuality().reason, prose.replace(". ", "\n"), "too few lines end a sentence: 0.05 < 0.12"),
        (C4Quality().reason, "One line only, with words.", "too few sentences: 1 < 5"),
    ]
    for reason, text, told in expected:
        assert reason(text) == told
