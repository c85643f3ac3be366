"""The example of the factory."""

from __future__ import annotations

from pathlib import Path

import examples


def test_texts_through_a_recipe(tmp_path: Path) -> None:
    told = examples.run_file(tmp_path, "curate_texts.py", {"HF_HOME": str(tmp_path / "hf")})
    assert "texts are left" in told
    assert "clean: expression_filter_1 dropped" in told
    assert "unique: exact_dedup_1 dropped" in told
