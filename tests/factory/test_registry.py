"""Operators by their types: the factory's, those of packages, and registered ones."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from factory.mistakes import mistake
from safetensors_spark.factory import ConfigError, Score, load_pipeline, register
from safetensors_spark.factory._registry import OPERATORS, operator_class, operator_types

OWN = """\
import pyarrow as pa
from safetensors_spark.factory import Score, register

@register
class Vowels(Score):
    type = "vowels"

    @property
    def reads(self):
        return ("text",)

    @property
    def writes(self):
        return {"vowels": pa.int64()}

    def score(self, batch):
        return {"vowels": [sum(c in "aeiou" for c in text) for text in batch["text"].to_pylist()]}
"""


def test_own_operators_are_imported(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.path", list(sys.path))
    monkeypatch.setattr(OPERATORS, "registered", {})
    (tmp_path / "own_vowels.py").write_text(OWN)
    text = "name: p\nimports: [own_vowels]\nstages: [{name: s, operators: [{type: vowels}]}]\n"
    (tmp_path / "web.yaml").write_text(text)
    (operator,) = load_pipeline(tmp_path / "web.yaml").stages[0].operators
    assert type(operator).__name__ == "Vowels"
    found = mistake(tmp_path, text.replace("vowels}", "vowel}"))
    assert "no operator has the type `vowel`. Did you mean `vowels`?" in found
    found = mistake(tmp_path, text.replace("[own_vowels]", "[own_vowls]"))
    assert found.startswith("web.yaml, line 2: `own_vowls` cannot be imported: ModuleNotFoundError")
    with pytest.raises(ConfigError, match="already"):

        @register
        class Again(Score):
            type = "text_length"


def test_operators_of_other_packages_are_known(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    info = tmp_path / "vowels-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: vowels\nVersion: 1.0\n")
    points = "vowels = packaged_vowels:Vowels\nbroken = nowhere:X\nno_class = json:dumps\n"
    (info / "entry_points.txt").write_text(f"[safetensors_spark.factory.operators]\n{points}")
    (tmp_path / "packaged_vowels.py").write_text(OWN.replace("@register\n", ""))
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.delitem(vars(OPERATORS), "offered", raising=False)
    try:
        assert {"vowels", "text_length"} <= set(operator_types())
        assert operator_class("vowels").__module__ == "packaged_vowels"
        with pytest.raises(ConfigError, match="nowhere:X of vowels cannot be imported"):
            operator_class("broken")
        with pytest.raises(ConfigError, match="json:dumps of vowels is not a class of operators"):
            operator_class("no_class")
    finally:
        del vars(OPERATORS)["offered"]


def test_the_type_of_each_operator_of_the_factory_is_that_of_its_class() -> None:
    assert {"text_length", "word_count", "image_info"} <= set(operator_types())
    for name in operator_types():
        assert operator_class(name).type == name
