"""Files of documents of real paragraphs: fresh ones, duplicates, other languages and junk, by known shares."""

import gzip
import html
import json
import re
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path
from random import Random
from typing import Any

FILES = 16
# Of documents, by kind; the rest is fresh. What a document's name begins with.
SHARES = {"exact": 0.06, "near": 0.06, "foreign": 0.05, "again": 0.01, "short": 0.01, "list": 0.01}
# The characters of a document: about those of a page of the web.
LEAST, MOST = 800, 8000

_TAG = re.compile(r"<[^>]+>")
_MESSAGE = re.compile(r'^msgstr ((?:".*"\n?)+)', re.MULTILINE)


def make(folder: Path, size: int) -> int:
    """Write Parquet files of `id` and `text` with so many bytes of text. Returns how many documents they have."""
    import pyarrow as pa  # type: ignore[import-untyped]
    import pyarrow.parquet as pq  # type: ignore[import-untyped]

    folder.mkdir(parents=True)
    random, count, known = Random(1), 0, list[str]()
    paragraphs, messages = sorted({*documentation()}), translations()
    for file in range(FILES):
        written = 0
        schema = pa.schema({"id": pa.string(), "text": pa.string()})
        with pq.ParquetWriter(folder / f"{file:02d}.parquet", schema, compression="zstd") as writer:
            while written < size // FILES:
                rows = [document(random, paragraphs, messages, known) for _ in range(200)]
                names = [f"{kind}-{count + number}" for number, (kind, _) in enumerate(rows)]
                writer.write_table(pa.table({"id": names, "text": [text for _, text in rows]}, schema))
                written += sum(len(text.encode()) for _, text in rows)
                count += len(rows)
    return count


def document(
    random: Random, paragraphs: list[str], messages: dict[str, list[str]], known: list[str]
) -> tuple[str, str]:
    """A document and its kind. What is known are some fresh ones, of which duplicates are made."""
    place, kind = random.random(), "fresh"
    for one, share in SHARES.items():
        if 0 <= place < share:
            kind = one
        place -= share
    if kind in ("exact", "near") and known:
        text = random.choice(known)
        return kind, text if kind == "exact" else _changed(random, text)
    if kind == "foreign":
        some = messages[random.choice(sorted(messages))]
        return kind, " ".join(random.choice(some) for _ in range(40))
    if kind == "again":
        return kind, "\n".join([random.choice(paragraphs)] * 12)
    if kind == "short":
        return kind, random.choice(paragraphs)[:200]
    if kind == "list":
        return kind, "\n".join(f"- {random.choice(paragraphs)[:40]}" for _ in range(40))
    length, parts = min(MOST, LEAST + random.expovariate(1 / 2200)), list[str]()
    while length > 0:
        parts.append(random.choice(paragraphs))
        length -= len(parts[-1])
    text = "\n".join(parts)
    # As many as fit in memory: each is a duplicate's first one for a while.
    if len(known) < 5000:
        known.append(text)
    else:
        known[random.randrange(len(known))] = text
    return "fresh", text


def _changed(random: Random, text: str) -> str:
    """The text with another word in two places, so that nine of ten runs of five words stay."""
    words = text.split(" ")
    for _ in range(2):
        words[random.randrange(len(words))] = f"thing{random.randrange(1000)}"
    return " ".join(words)


def documentation() -> Iterator[str]:
    """Paragraphs in English: what Amazon's services say of themselves in `botocore`."""
    for file in sorted(_folder("botocore").glob("data/*/*/service-2.json.gz")):
        for text in documented(json.loads(gzip.decompress(file.read_bytes()))):
            plain = " ".join(html.unescape(_TAG.sub(" ", text)).split())
            if 60 <= len(plain) <= 1000:
                yield plain


def translations() -> dict[str, list[str]]:
    """Messages of Django by language, of those that have many."""
    found: dict[str, list[str]] = {}
    for file in sorted(_folder("django").glob("**/locale/*/LC_MESSAGES/django.po")):
        language = file.parts[-3]
        for message in _MESSAGE.findall(file.read_text("utf-8")):
            text = " ".join("".join(line.strip('"') for line in message.splitlines()).replace("\\n", " ").split())
            if len(text) > 20 and "%" not in text and not language.startswith("en"):
                found.setdefault(language, []).append(text)
    return {language: some for language, some in found.items() if len(some) > 200}


def _folder(package: str) -> Path:
    spec = find_spec(package)
    if spec is None or spec.origin is None:
        raise ModuleNotFoundError(f"the texts are those of `{package}`, which is not installed")
    return Path(spec.origin).parent


def documented(part: Any) -> Iterator[str]:
    """The documentation in a description of a service, wherever it is."""
    if isinstance(part, dict):
        for name, value in part.items():
            if name == "documentation" and isinstance(value, str):
                yield value
            else:
                yield from documented(value)
    elif isinstance(part, list):
        for value in part:
            yield from documented(value)
