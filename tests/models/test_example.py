"""The example of checkpoints."""

from __future__ import annotations

from pathlib import Path

import examples


def test_a_checkpoint_in_half_the_bytes(tmp_path: Path) -> None:
    told = examples.run_file(tmp_path, "explore_checkpoint.py")
    assert "104 tensors, 90,856,960 bytes" in told
    assert "45,442,016 bytes as BF16" in told
