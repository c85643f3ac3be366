"""Real texts: what Amazon's services say of themselves in `botocore`, and Django's messages in a hundred languages."""

from __future__ import annotations

import gzip
import html
import json
import re
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path

from benchmarks.texts import documented

_TAG = re.compile(r"<[^>]+>")
_STRING = re.compile(r'^"(.*)"$')


def documentation(least: int = 200) -> Iterator[str]:
    """English texts, as they are: many of them come twice, or with another name in them.

    Args:
        least: the characters that a text has.
    """
    for file in sorted(_folder("botocore", "data").glob("*/*/service-2.json.gz")):
        for text in documented(json.loads(gzip.decompress(file.read_bytes()))):
            plain = " ".join(html.unescape(_TAG.sub(" ", text)).split())
            if len(plain) >= least:
                yield plain


def messages(language: str, count: int) -> list[str]:
    """Some texts of five messages each in one of Django's languages, such as `pt_BR`."""
    found: list[str] = []
    for file in sorted(_folder("django", "").glob(f"**/locale/{language}/LC_MESSAGES/django.po")):
        found += (one for one in _translated(file.read_text(encoding="utf-8")) if len(one) > 20 and "%" not in one)
    # The first ones are the file's header and names of languages.
    found = found[60:]
    return [" ".join(found[begin : begin + 5]) for begin in range(0, min(len(found) - 4, 5 * count), 5)]


def _folder(package: str, name: str) -> Path:
    spec = find_spec(package)
    assert spec is not None, f"{package} is not installed"
    assert spec.origin is not None
    return Path(spec.origin).parent / name


def _translated(content: str) -> Iterator[str]:
    """The `msgstr` of each entry of a catalogue that is on lines of its own."""
    for entry in content.split("\n\n"):
        _, found, text = entry.partition("\nmsgstr ")
        if found and "fuzzy" not in entry:
            lines = (_STRING.match(line) for line in text.splitlines())
            whole = "".join(line[1] for line in lines if line is not None)
            yield " ".join(whole.replace("\\n", " ").replace('\\"', '"').split())
