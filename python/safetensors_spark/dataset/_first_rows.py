"""The first rows of datasets and stores, as notebooks show them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from safetensors_spark import _html
from safetensors_spark._files.contents import Contents
from safetensors_spark._files.storage import LocalFolder


def first_rows(title: str, names: Sequence[str], rows: Callable[[], list[Sequence[Any]]], contents: Contents) -> str:
    """A table of HTML. It has no rows where they would be downloaded, or cannot be read: nobody has asked for them."""
    if not isinstance(contents.folder, LocalFolder):
        return _html.table(title, names, [], "rows of remote datasets are not shown")
    try:
        return _html.table(title, names, rows())
    except Exception as error:
        return _html.table(title, names, [], f"its rows cannot be read: {error}")
