"""The page of operators says what their docstrings say."""

from __future__ import annotations

from operators_page import PAGE, classes, page


def test_the_page_of_operators_is_that_of_their_docstrings() -> None:
    assert PAGE.read_text() == page(), "run project/operators_page.py"


def test_each_parameter_is_described() -> None:
    for kind in classes():
        for name, field in kind.model_fields.items():
            assert field.description, f"{kind.__name__}.{name}"
