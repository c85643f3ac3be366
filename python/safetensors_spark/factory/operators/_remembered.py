"""A cache of results for short texts that repeat: words of a language, and texts between blanks."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from safetensors_spark.pipeline._fingerprint import fingerprint

T = TypeVar("T")

# Longer ones come rarely again. So many of them, with what is made of each, take some ten megabytes.
_LONGEST, _MOST = 40, 65_536


class Remembered(dict[str, T]):
    """The results of a function by text. It is called once for a text that is looked up often, and not by `get`."""

    def __init__(self, make: Callable[[str], T]) -> None:
        super().__init__()
        self._make = make

    def __missing__(self, text: str) -> T:
        made = self._make(text)
        if len(text) <= _LONGEST:
            if len(self) >= _MOST:
                self.clear()
            self[text] = made
        return made

    def __fingerprint__(self) -> str:
        """The version of the function: the cache changes no result."""
        return fingerprint(self._make)
