"""The whole road over a corpus of real texts, to which duplicates, other languages and junk are added."""

from __future__ import annotations

import random
from collections import Counter, defaultdict
from pathlib import Path
from typing import Any

import datasets
import pyarrow.parquet as pq  # type: ignore[import-untyped]
import pytest
from tokenizers import Tokenizer, models, pre_tokenizers, trainers

from factory.corpus import documentation, messages
from safetensors_spark.factory import Pipeline, Stage, report, run
from safetensors_spark.factory.operators.c4 import C4Lines, C4Quality
from safetensors_spark.factory.operators.exact_dedup import ExactDedup
from safetensors_spark.factory.operators.expression_filter import ExpressionFilter
from safetensors_spark.factory.operators.gopher_quality import GopherQuality
from safetensors_spark.factory.operators.gopher_repetition import GopherRepetition
from safetensors_spark.factory.operators.language import Language
from safetensors_spark.factory.operators.minhash_dedup import MinhashDedup
from safetensors_spark.factory.operators.token_count import TokenCount
from safetensors_spark.factory.operators.unicode_fix import UnicodeFix
from safetensors_spark.pipeline import create_backend

LANGUAGES = {"de": "de", "fr": "fr", "ja": "ja", "ru": "ru", "es": "es", "pt_BR": "pt", "pl": "pl"}

PROSE = (
    "The committee of the harbour has decided to close the old bridge for the whole of the winter. "
    "People who live on the island can take the ferry, which leaves every hour and costs nothing. "
    "It was said that the work would be done by spring, and that nobody should have to wait for it. "
    "Shops that sell fish and bread have been told to expect fewer visitors in the coming months. "
    "The mayor thinks of it as a small price, and has asked the paper to print the new times. "
)
CODE = (
    "To add a button to the form you write a function and give it to the list of handlers. "
    "It gets the event and the field that has changed, and should return nothing that is not true. "
    "A short one is button.onclick = function(event) { return false; } and that is all of it. "
    "If you have more than one of them, put each in a file with the name of the form. "
    "Then the browser does not load what it will not need. "
)
# What is added, and the operator that drops it.
JUNK = {
    "short": ("The page was not found, and that is all.", "gopher_quality_1"),
    "repeated": ("You have to accept the cookies of this site to go on. " * 12, "gopher_repetition_1"),
    "template": (PROSE + "Lorem ipsum dolor sit amet. ", "c4_quality_1"),
    "script": (CODE, "c4_quality_1"),
    "numbers": (" ".join(f"the {n} of {n * 7919} and" for n in range(100, 160)), "gopher_quality_1"),
    "tags": ("the #one of #two and #three " + " ".join(f"the #tag{n} of it" for n in range(40)), "gopher_quality_1"),
    "latin": ("Gallia est omnis divisa in partes tres, quarum unam incolunt Belgae, aliam Aquitani. ", "english"),
}


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, dict[str, list[str]], Any]:
    """The folder of a run, the texts by what they are, and what the run has returned."""
    folder = tmp_path_factory.mktemp("corpus")
    chosen = random.Random(1)
    real = list(documentation())
    unique = sorted({*real})
    long = [text for text in unique if len(text) >= 1500]
    texts = {
        "real": real,
        "exact": chosen.sample(unique, 300),
        "near": [_with_another_word(text, chosen) for text in chosen.sample(long, 200)],
        **{name: messages(name, 30) for name in LANGUAGES},
        **{name: [f"{text}Number {number}." for number in range(5)] for name, (text, _) in JUNK.items()},
    }
    rows = [{"kind": kind, "text": text} for kind, some in texts.items() for text in some]
    _train(real[:2000], folder / "tokenizer.json")
    recipe = Pipeline(
        "corpus",
        (
            Stage("unique", [ExactDedup()]),
            Stage("near", [MinhashDedup(threshold=0.8)]),
            Stage("english", [UnicodeFix(), Language(), ExpressionFilter(expression="language = 'en'", id="english")]),
            Stage("quality", [GopherQuality(), GopherRepetition(), C4Quality(), C4Lines()]),
            Stage("tokens", [TokenCount(tokenizer=str(folder / "tokenizer.json"))]),
        ),
    )
    backend = create_backend("processes", 2, progress=False)
    dataset = datasets.Dataset.from_list(rows)
    return folder, texts, run(recipe, dataset, folder / "out", backend=backend, shard_bytes=4 << 20)


def _with_another_word(text: str, chosen: random.Random) -> str:
    words = text.split()
    words[chosen.randrange(len(words) // 2, len(words) - 1)] = "otherwise"
    return " ".join(words)


def _train(texts: list[str], path: Path) -> None:
    tokenizer = Tokenizer(models.BPE(unk_token="?"))
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel()
    tokenizer.train_from_iterator(
        texts, trainers.BpeTrainer(vocab_size=2000, special_tokens=["?"], show_progress=False)
    )
    tokenizer.save(str(path))


def _dropped(folder: Path, stage: str) -> dict[str, Counter[str]]:
    """Of the rows that each operator of a stage has dropped, how many are of which kind."""
    found: dict[str, Counter[str]] = defaultdict(Counter)
    for path in sorted((folder / "out" / stage / "dropped").iterdir()):
        for row in pq.read_table(path, columns=["kind", "__fdf__/dropped_by"]).to_pylist():
            found[row["__fdf__/dropped_by"]][row["kind"]] += 1
    return found


def test_duplicates_are_dropped_where_they_are_known(made: Any) -> None:
    folder, texts, _ = made
    exact = _dropped(folder, "unique")["exact_dedup_1"]
    # Rows of the corpus come first, so the added ones are the later ones.
    assert exact["exact"] == 300
    assert exact["real"] == len(texts["real"]) - len({*texts["real"]})
    assert {*exact} == {"real", "exact"}
    near = _dropped(folder, "near")["minhash_dedup_1"]
    assert near["near"] == 200
    assert near["real"] > 1000


def test_other_languages_are_dropped_by_their_names(made: Any) -> None:
    folder, texts, _ = made
    found: Counter[tuple[str, bool]] = Counter()
    for path in sorted((folder / "out" / "english" / "dropped").iterdir()):
        for row in pq.read_table(path).to_pylist():
            assert row["__fdf__/dropped_because"] == "not language = 'en'"
            if row["kind"] in LANGUAGES:
                found[row["kind"], row["language"] == LANGUAGES[row["kind"]]] += 1
    lost = {kind: found[kind, True] + found[kind, False] for kind in LANGUAGES}
    # Some say the same as others, and were dropped as duplicates.
    assert all(lost[kind] >= 0.9 * len(texts[kind]) for kind in LANGUAGES)
    assert sum(lost.values()) > 150
    assert sum(found[kind, True] for kind in LANGUAGES) >= 0.95 * sum(lost.values())


def test_junk_is_dropped_by_the_rule_for_it(made: Any) -> None:
    folder, _, _ = made
    found = {**_dropped(folder, "near"), **_dropped(folder, "english"), **_dropped(folder, "quality")}
    by_kind = {kind: {name for name, kinds in found.items() if kinds[kind]} for kind in JUNK}
    # Five of each kind are nearly the same text: some of them are dropped as duplicates.
    assert {kind: names - {"minhash_dedup_1"} for kind, names in by_kind.items()} == {
        kind: {operator} for kind, (_, operator) in JUNK.items()
    }


def test_what_is_left_is_english_prose_without_duplicates(made: Any) -> None:
    folder, texts, curated = made
    assert {*curated["kind"]} == {"real"}
    left = curated["text"][:]
    assert len(left) == len({*left}) > 3000
    # Others were repaired.
    assert len({*left} - {*texts["real"]}) < len(left) / 50
    for text in left:
        assert len(text.split()) >= 45
        assert "{" not in text
        assert "lorem ipsum" not in text.lower()
    tokenizer = Tokenizer.from_file(str(folder / "tokenizer.json"))
    some = range(0, len(left), 97)
    assert [curated[n]["token_count"] for n in some] == [len(tokenizer.encode(left[n]).ids) for n in some]


def test_rows_add_up(made: Any) -> None:
    folder, texts, curated = made
    rows = sum(map(len, texts.values()))
    for stage in report(folder / "out").stages:
        assert stage.rows_in == rows
        for operator in stage.operators:
            assert operator.rows_in == rows
            rows -= sum(rule.rows for rule in operator.rules)
            assert operator.rows_out == rows
        assert stage.rows_out == rows
    assert len(curated) == rows
