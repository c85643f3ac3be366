"""The demo's second part, with images that are as easy as digits to tell apart."""

import subprocess
import sys
from pathlib import Path

import numpy as np

from safetensors_spark.dataset import write_dataset


def demo(folder: Path, labels: np.ndarray) -> subprocess.CompletedProcess[str]:
    """What the demo does with images of ten kinds under these labels."""
    random = np.random.default_rng(1)
    kinds = random.integers(0, 17, (10, 8, 8))
    images = np.clip(kinds[np.arange(1000) % 10] + random.integers(-3, 4, (1000, 8, 8)), 0, 16).astype(np.uint8)
    write_dataset([{"image": images, "label": labels.astype(np.uint8)}], folder, batch_size=256)
    command = [sys.executable, "-m", "hub.demo", str(folder)]
    return subprocess.run(command, cwd=Path(__file__).parents[1], capture_output=True, text=True, timeout=120)


def test_a_classifier_is_trained_from_what_was_published(tmp_path: Path) -> None:
    done = demo(tmp_path / "digits", np.arange(1000) % 10)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.count("me/digits: ") == 2
    assert "Every published digit is the one that was written." in done.stdout
    assert "5 shards were downloaded, each once." in done.stdout


def test_a_classifier_that_learns_nothing_is_told(tmp_path: Path) -> None:
    done = demo(tmp_path / "digits", np.random.default_rng(2).integers(0, 10, 1000))
    assert (done.returncode, done.stderr) == (1, "")
    assert "The classifier has not learnt" in done.stdout
