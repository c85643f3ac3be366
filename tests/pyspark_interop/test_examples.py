from pathlib import Path

import examples


def test_the_examples_of_python(tmp_path: Path) -> None:
    examples.run("docs/python.md", tmp_path)
