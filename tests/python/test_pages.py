"""Each page that has code is run by a test."""

from pathlib import Path

import pytest

from blocks import BLOCK, NOT_RUN
from sbt import ROOT

TESTS = [path.read_text() for path in (ROOT / "tests").glob("*/test_*.py")]
PAGES = [
    path
    for path in (ROOT / "README.md", *(ROOT / "docs").rglob("*.md"))
    if any(NOT_RUN.sub("", block[2]).strip() for block in BLOCK.finditer(path.read_text()))
]


@pytest.mark.parametrize("page", PAGES, ids=lambda path: path.name)
def test_a_page_with_code_is_run(page: Path) -> None:
    # The test of several tutorials has their names alone.
    names = {f'"{page.relative_to(ROOT)}"', *([f'"{page.stem}"'] if page.parent.name == "tutorials" else [])}
    assert any("examples.run(" in text and any(name in text for name in names) for text in TESTS)
