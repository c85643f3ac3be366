"""The example of training."""

from __future__ import annotations

from pathlib import Path

import examples


def test_images_to_a_trained_classifier(tmp_path: Path) -> None:
    told = examples.run_file(tmp_path, "train_digits.py")
    assert "resumed after 640 images, 860 were left of the epoch" in told
    assert float(told.split()[-1]) > 0.9
