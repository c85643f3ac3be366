from pathlib import Path

import examples


def test_the_examples_of_training(tmp_path: Path) -> None:
    examples.run("docs/training.md", tmp_path)
