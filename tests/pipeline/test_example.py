"""The example of pipelines."""

from __future__ import annotations

from pathlib import Path

import examples


def test_json_lines_to_tensors(tmp_path: Path) -> None:
    told = examples.run_file(tmp_path, "jsonl_to_tensors.py")
    assert "where score > 0.3" in told
    assert "96 rows, 1,510 tokens\nFalse" in told
