"""The examples of docs/factory.md run where models are, too."""

from __future__ import annotations

import json
from pathlib import Path

import examples


def test_the_examples_of_the_factory(tmp_path: Path) -> None:
    # Hooks have packages of their own.
    examples.run(tmp_path, "docs/factory.md", more={"HF_HOME": str(tmp_path / "hf")}, but=["import dagster"])
    for place, rows in (("near/near", 80), ("vectors/embed", 80), ("answers/ask", 3)):
        assert json.loads((tmp_path / place / "manifest.json").read_text())["output_rows"] >= rows
