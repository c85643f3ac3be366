"""Makes notebooks of the tutorials, in target/notebooks: `python project/notebooks.py`.

A notebook has the blocks of the page as cells. Outputs that the page shows are left out, as running makes them.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from blocks import BLOCK, NOT_RUN

ROOT = Path(__file__).parents[1]
TUTORIALS = ROOT / "docs" / "tutorials"
FOLDER = ROOT / "target" / "notebooks"


def notebook(text: str) -> dict[str, Any]:
    """The page as a notebook, which was not run."""
    cells, end = [], 0
    for found in BLOCK.finditer(text):
        language, code, _ = found.groups()
        # What installs something stays text: it would change the environment that the notebook runs in.
        if NOT_RUN.sub("", code).strip():
            cells.append(_cell("markdown", text[end : found.start()]))
            cells.append(_cell("code", code if language == "python" else f"%%{language}\n{code}"))
            end = found.end()
    cells.append(_cell("markdown", text[end:]))
    return {
        "cells": [{"id": f"cell-{number}", **cell} for number, cell in enumerate(cells) if cell["source"]],
        "metadata": {"kernelspec": {"display_name": "Python 3", "language": "python", "name": "python3"}},
        "nbformat": 4,
        "nbformat_minor": 5,
    }


def _cell(kind: str, source: str) -> dict[str, Any]:
    more: dict[str, Any] = {"execution_count": None, "outputs": []} if kind == "code" else {}
    return {"cell_type": kind, "metadata": {}, "source": source.strip("\n"), **more}


if __name__ == "__main__":
    FOLDER.mkdir(parents=True, exist_ok=True)
    for path in sorted(TUTORIALS.glob("*.md")):
        (FOLDER / f"{path.stem}.ipynb").write_text(json.dumps(notebook(path.read_text()), indent=1))
