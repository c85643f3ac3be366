"""The examples of docs/factory.md run, and the page of operators says what their docstrings say."""

from __future__ import annotations

import json
from pathlib import Path

import examples
from operators_page import PAGE, classes, page


def test_the_page_of_operators_is_that_of_their_docstrings() -> None:
    assert PAGE.read_text() == page(), "run project/operators_page.py"


def test_each_parameter_is_described() -> None:
    for kind in classes():
        for name, field in kind.model_fields.items():
            assert field.description, f"{kind.__name__}.{name}"


def test_the_examples_of_the_factory(tmp_path: Path) -> None:
    # Models have an environment of their own.
    examples.run(tmp_path, "docs/factory.md", more={"HF_HOME": str(tmp_path / "hf")}, but=["factory-models"])
    rows = [
        json.loads((tmp_path / "web" / name / "manifest.json").read_text()) for name in ("unique", "near", "quality")
    ]
    assert rows[0]["input_rows"] >= rows[0]["output_rows"] + 10
    assert rows[1]["output_rows"] < rows[1]["input_rows"]
    assert rows[2]["operators"]["expression_filter_1"]["dropped"] >= 1
    assert 0 < rows[2]["output_rows"] < rows[2]["input_rows"]
