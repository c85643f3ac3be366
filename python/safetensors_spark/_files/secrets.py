"""What may be shown of a URL: logs, errors and MLflow must not have its passwords and signatures."""

from __future__ import annotations

import re

# At HTTP the user name may be a token. Elsewhere a name alone is part of the address, as in `abfs://container@account`.
_USER = re.compile(r"(?<=http://)[^/\s?#]*@|(?<=https://)[^/\s?#]*@|(?<=://)[^/\s?#@:]*:[^/\s?#]*@", re.IGNORECASE)
_QUERY = re.compile(r"(https?://[^\s?#'\"]*)[?#][^\s'\"]*|(\w://[^\s?'\"]*)\?[^\s'\"]*=[^\s'\"]*", re.IGNORECASE)


def without_secrets(text: str) -> str:
    """Leave out user names, passwords and queries of all URLs in the text."""
    return _QUERY.sub(lambda found: found[1] or found[2], _USER.sub("", text))
