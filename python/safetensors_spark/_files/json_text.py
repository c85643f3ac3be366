"""JSON of files that anyone may have written."""

from __future__ import annotations

import json
import re
from typing import Any

_LOW = r"\\u[dD][c-fC-F][0-9a-fA-F]{2}"
_ESCAPES = re.compile(rf"\\(?:u[dD][89abAB][0-9a-fA-F]{{2}}{_LOW}|(?P<alone>u[dD][89a-fA-F])|.)", re.DOTALL)


def parse_json(content: bytes) -> Any:
    """The value of JSON text in UTF-8. Raises ValueError, also for nesting that Python cannot follow."""
    text = content.decode("utf-8-sig")
    check_surrogates(text)
    try:
        return json.loads(text)
    except RecursionError:
        raise ValueError("it is nested too deep") from None


def check_surrogates(text: str) -> None:
    """Raise ValueError for half of a surrogate pair: a string with it cannot be encoded."""
    # Most texts have no escapes; that is found out faster.
    if "\\" in text and "\\u" in text and any(escape["alone"] for escape in _ESCAPES.finditer(text)):
        raise ValueError("a surrogate that is escaped alone")
