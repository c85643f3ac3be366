"""Operators of texts."""

# ruff: noqa: RUF001

from __future__ import annotations

import json
import pickle
from pathlib import Path
from typing import Any

import datasets
import ftfy
import pyarrow as pa  # type: ignore[import-untyped]
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tokenizers import Tokenizer, models, pre_tokenizers, trainers

from safetensors_spark.factory import ChangedStageError, ConfigError, ContractError, Pipeline, Stage, run
from safetensors_spark.factory.operators.expression_filter import ExpressionFilter
from safetensors_spark.factory.operators.language import Language
from safetensors_spark.factory.operators.length import TextLength, WordCount
from safetensors_spark.factory.operators.pii_mask import PiiMask
from safetensors_spark.factory.operators.token_count import TokenCount
from safetensors_spark.factory.operators.unicode_fix import UnicodeFix
from safetensors_spark.pipeline import Backend

ODD = [
    "",
    None,
    "  \n\t",
    "?!...",
    "😀 👩‍👩‍👧",
    "漢字かな交じり文",
    "שלום עולם",
    "\ud83d\ude00".encode("utf-16", "surrogatepass").decode("utf-16"),
]


def _batch(texts: list[Any], kind: Any = None) -> pa.RecordBatch:
    return pa.record_batch({"text": pa.array(texts, kind or pa.string())})


@pytest.fixture
def tokenizer(tmp_path: Path) -> str:
    made = Tokenizer(models.BPE(unk_token="[UNK]"))
    made.pre_tokenizer = pre_tokenizers.Whitespace()
    made.train_from_iterator(["some words are here and there"] * 3, trainers.BpeTrainer(special_tokens=["[UNK]"]))
    made.save(str(tmp_path / "tokenizer.json"))
    return str(tmp_path / "tokenizer.json")


def test_texts_of_all_sorts(tokenizer: str) -> None:
    batch = _batch(ODD)
    for operator in (TextLength(), WordCount(), Language(), TokenCount(tokenizer=tokenizer)):
        again = pickle.loads(pickle.dumps(operator))
        again.load()
        for some in (batch, batch.slice(1, 3), batch.slice(2, 0), _batch(ODD, pa.large_string())):
            columns = again.score(some)
            assert set(columns) == set(operator.writes)
            for values in columns.values():
                assert len(values) == some.num_rows
                found = values.to_pylist() if isinstance(values, pa.Array) else values
                assert all(
                    value is None for value, text in zip(found, some[0].to_pylist(), strict=True) if text is None
                )
    for refiner in (UnicodeFix(), PiiMask()):
        assert refiner.refine(batch.slice(4, 3))["text"] == ODD[4:7]
        assert refiner.refine(batch)["text"][1] is None


_TEXTS = {
    "en": "Nobody in the village knew why the old man went down to the river every morning.",
    "de": "Der Zug nach München hat heute mehr als eine Stunde Verspätung, weil es geschneit hat.",
    "fr": "Il n'est pas certain que le conseil municipal accepte la proposition avant la fin de l'année.",
    "es": "La casa de mi abuela está cerca del mercado donde venden frutas y verduras.",
    "ja": "昨日は友達と一緒に映画を見に行きましたが、とても面白かったです。",
    "ru": "Вчера вечером мы долго гуляли по набережной и разговаривали о книгах.",
    "zh": "这个城市的地铁系统非常方便，每天有数百万人乘坐。",
    "ar": "ذهبت إلى السوق لشراء بعض الخضروات والفواكه الطازجة.",
}


def test_the_language_of_texts() -> None:
    found = Language(output="lang").score(_batch([text.replace(" ", "\n  ") for text in _TEXTS.values()]))
    assert found["lang"] == list(_TEXTS)
    assert all(0.5 < score <= 1 for score in found["lang_score"].to_pylist())
    # What stands behind the characters that are looked at does not count.
    mixed = f"{_TEXTS['en']} {_TEXTS['de']}" * 2
    assert Language(characters=60).score(_batch([mixed]))["language"] == ["en"]
    assert Language().score(_batch(["12 + 3 = 15"]))["language"] == [None]


def test_ten_megabytes_in_one_line() -> None:
    texts = ["ab 1" * 2_500_000, "1" * 1_000_000, "a." * 500_000 + "@", "(" * 100_000, "1:" * 100_000, "+1 " * 100_000]
    assert Language().score(_batch(texts))["language_score"][0].as_py() > 0
    for text in texts:
        PiiMask().refine(_batch([text]))


def test_text_whose_encoding_was_mistaken_is_repaired() -> None:
    texts = ["schÃ¶n", "It’s", "caf\u0065\u0301", "already fine — yes", "&lt;b&gt;"]
    assert UnicodeFix().refine(_batch(texts))["text"] == ["schön", "It’s", "café", "already fine — yes", "<b>"]
    assert UnicodeFix(normalization=None, uncurl_quotes=True).refine(_batch(texts[1:3]))["text"] == ["It's", texts[2]]


@given(st.text(st.characters(max_codepoint=0x180) | st.sampled_from("&amp;\r\n\x1b\x00\x0c<>")), st.booleans())
def test_texts_are_what_ftfy_makes_of_them(text: str, uncurl: bool) -> None:
    expected = ftfy.fix_text(text, normalization="NFKC", uncurl_quotes=uncurl, explain=False)
    assert UnicodeFix(normalization="NFKC", uncurl_quotes=uncurl).refine(_batch([text]))["text"] == [expected]


@pytest.mark.parametrize(
    ("text", "masked"),
    [
        ("mail me: jo.do+x@mail.example.org.", "mail me: <EMAIL>."),
        ("müller@exämple.de, a@b", "<EMAIL>, a@b"),
        ("from 8.8.8.8 to 192.168.0.1", "from <IP> to 192.168.0.1"),
        ("version 1.2.3.4.5 and 1.2.3 and 999.1.1.1", "version 1.2.3.4.5 and 1.2.3 and 999.1.1.1"),
        ("at 2001:4860:4860::8888, fe80::1, 12:30:45, std::vector", "at <IP>, fe80::1, 12:30:45, std::vector"),
        ("4111 1111 1111 1111 and 4111-1111-1111-1112", "<CARD> and 4111-1111-1111-1112"),
        ("378282246310005", "<CARD>"),
        ("0000000000000000 and 3.14159265358979", "0000000000000000 and 3.14159265358979"),
        ("DE89 3704 0044 0532 0130 00 or GB82WEST12345698765432", "<IBAN> or <IBAN>"),
        ("GB82WEST12345698765431", "GB82WEST12345698765431"),
        ("call +49 30 1234567 or (030) 123-4567 or 212-555-0123", "call <PHONE> or <PHONE> or <PHONE>"),
        ("on 2024-05-17, ISBN 978-3-16-148410-0, 10-20-30", "on 2024-05-17, ISBN 978-3-16-148410-0, 10-20-30"),
        ("4111 1111 1111 1111 12/25 and 4111111111111111 123", "<CARD> 12/25 and <CARD> 123"),
        ("BE68 5390 0754 7034 PAID NOW", "<IBAN> PAID NOW"),
        ("version 1.2.3.4, release 8.1.2.3, v 8.8.8.8", "version 1.2.3.4, release 8.1.2.3, v 8.8.8.8"),
        ("(2019) 1234-5678, pp. (123) 456-7890, (212) 555-0123", "(2019) 1234-5678, pp. (123) 456-7890, <PHONE>"),
        ("id 1700000000000 and 1700000000008", "id 1700000000000 and 1700000000008"),
        ("1,000,000 and 123-45 and x=+5", "1,000,000 and 123-45 and x=+5"),
    ],
)
def test_what_reaches_a_person_is_masked(text: str, masked: str) -> None:
    assert PiiMask().refine(_batch([text]))["text"] == [masked]
    assert PiiMask(email=None, ip=None, iban=None, card=None, phone=None).refine(_batch([text]))["text"] == [text]


def test_tokens_are_counted(tokenizer: str) -> None:
    texts = ["some words", "", None, "some " * 5000]
    counts = TokenCount(tokenizer=tokenizer, tokens="tokens")
    counts.load()
    found = counts.score(_batch(texts))
    plain = Tokenizer.from_file(tokenizer)
    assert found["tokens"] == [
        None if text is None else plain.encode(text, add_special_tokens=False).ids for text in texts
    ]
    assert found["token_count"] == [2, 0, None, 5000]


def test_a_file_of_an_operator_counts_as_its_code_does(tokenizer: str, tmp_path: Path, sync: Backend) -> None:
    rows = datasets.Dataset.from_dict({"text": ["some words"]})
    recipe = Pipeline("p", (Stage("s", [TokenCount(tokenizer=tokenizer)]),))
    run(recipe, rows, tmp_path / "out", backend=sync)
    content = json.loads(Path(tokenizer).read_text())
    content["pre_tokenizer"] = None
    Path(tokenizer).write_text(json.dumps(content))
    with pytest.raises(ChangedStageError, match="code of operators, or a file that they read, has changed"):
        run(recipe, rows, tmp_path / "out", backend=sync)
    # Also where this process has read the old file.
    found = run(recipe, rows, tmp_path / "out", mode="overwrite", backend=sync)
    assert found["token_count"][:] == [len(Tokenizer.from_file(tokenizer).encode("some words").ids)] != [2]
    with pytest.raises(ConfigError, match=r"nowhere\.json, which `token_count_1` reads, does not exist"):
        run(Pipeline("p", (Stage("s", [TokenCount(tokenizer="nowhere.json")]),)), rows, tmp_path / "b", backend=sync)


def test_an_expression_keeps_rows(tmp_path: Path, sync: Backend) -> None:
    rows = datasets.Dataset.from_dict({"a": [1, 5, None, 7], "b c": ["x", "y", "y", None]})
    keeps = ExpressionFilter(expression='a > 2 AND ("b c" = \'y\' OR "b c" IS NULL)')
    assert keeps.reads == ("a", "b c")
    found = run(Pipeline("p", (Stage("s", [keeps]),)), rows, tmp_path, backend=sync)
    assert found["a"][:] == [5, 7]
    dropped = datasets.load_dataset("parquet", data_dir=str(tmp_path / "s" / "dropped"), split="train")
    assert dropped["a"][:] == [1, None]
    assert dropped["__fdf__/dropped_because"][0] == f"not {keeps.expression}"


@pytest.mark.parametrize("text", ["a >", "foo(a)", "a > 1; b", "", "select 1", "count(*)"])
def test_what_is_no_expression_is_refused_at_once(text: str) -> None:
    with pytest.raises(ValueError, match="is not an expression of SQL"):
        ExpressionFilter(expression=text)


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("a + 1", "is int64, expected true or false"),
        ("a > 'x'", "cannot be computed"),
        ("d > 1", "reads `d`, but rows have a"),
    ],
)
def test_an_expression_that_does_not_fit_the_rows_is_named(text: str, told: str, tmp_path: Path, sync: Backend) -> None:
    rows = datasets.Dataset.from_dict({"a": [1]})
    with pytest.raises(ContractError, match=rf"expression_filter_1.*{told}"):
        run(Pipeline("p", (Stage("s", [ExpressionFilter(expression=text)]),)), rows, tmp_path, backend=sync)


def test_expressions_have_fields_of_structs(tmp_path: Path, sync: Backend) -> None:
    features = datasets.Features(
        {"m": {"y": datasets.Value("int64"), "z": {"a": datasets.Value("string")}}, "m.y": datasets.Value("int64")}
    )
    values: list[Any] = [{"m": {"y": y, "z": {"a": f"{y}"}}, "m.y": 3 - y} for y in (1, 2)]
    values += [{"m": {"y": None, "z": {"a": None}}, "m.y": None}]
    rows = datasets.Dataset.from_list(values, features=features)
    for number, (expression, kept) in enumerate(
        [
            ("m.y = 1", [0]),
            ("m.y = 1 OR m.z.a = '2'", [0, 1]),
            ('m.y = 2 AND "m.y" = 1', [1]),
            ("m.y IS NULL", [2]),
        ]
    ):
        recipe = Pipeline("p", (Stage("s", [ExpressionFilter(expression=expression)]),))
        assert list(run(recipe, rows, tmp_path / f"{number}", backend=sync)) == [values[one] for one in kept]
    with pytest.raises(ContractError, match=r"expression_filter_1: `m.q` does not exist: `m` has y, z\."):
        run(Pipeline("p", (Stage("s", [ExpressionFilter(expression="m.q = 1")]),)), rows, tmp_path / "no", backend=sync)
