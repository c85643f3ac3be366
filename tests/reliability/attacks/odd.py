"""Values that nobody expects: in JSON, as names, as options."""

import json
import random
from typing import Any

# Characters of each plane, and what is odd in the first one: combining, from right to left, of no width.
PLANES = [
    "e\u0301", "\u202eabc", "\u200b", "\ufeff", "\u00a0", "\ufffd", "\uffff", "\ud7ff", "\ue000", "\u0130\u0131",
    "ﬀ", "İ", *(chr((plane << 16) + offset) for plane in range(1, 17) for offset in (0, 0x600, 0xFFFD, 0xFFFF)),
]  # fmt: skip

# As names of files, columns and keys.
NAMES = [
    *PLANES, "", ".", "..", "-", "--help", "~", "$HOME", "a b", "a\tb", "a\nb", "a\x1b[31mb", "a.b", "a`b", 'a"b',
    "a'b", "a\\b", "a=b", "a=b/c", "a,b", "a:b", "a%2Fb", "a%00b", "*", "[a]", "a?b", "#a", "a#b", "a;b", "null",
    "true", "0", "__metadata__", "_metadata", "x.offsets", "key", "CON", "a" * 200,
]  # fmt: skip

# As names of files in manifests and indexes. `secret` is a folder beside the dataset.
PATHS = [
    "../secret/a.safetensors", "secret/../../secret/a.safetensors", "/etc/passwd", "/dev/zero", "/dev/stdin", "..",
    ".", "", "/", "a/b.safetensors", "..\\secret\\a.safetensors", "file:///etc/passwd", "memory://a.safetensors",
    "http://127.0.0.1:9/a.safetensors", "s3a://bucket/a.safetensors", "hdfs://nowhere/a", "a\0b.safetensors",
    "%2e%2e/secret/a.safetensors", "a\nb.safetensors", "C:\\a.safetensors", "\\\\host\\a", "n" * 300,
    "~/a.safetensors", "a:b", "jar:file:/a!/b",
]  # fmt: skip

NUMBERS = [
    "-1", "-0", "1.5", "1e2", "1e400", "-1e400", "2147483648", "4294967296", "9223372036854775807",
    "9223372036854775808", "-9223372036854775808", "18446744073709551615", "18446744073709551616", "1" + "0" * 5000,
    "NaN", "Infinity"
]  # fmt: skip

DEEP = "[" * 100_000 + "]" * 100_000
DEEP_OBJECT = '{"a":' * 100_000 + "1" + "}" * 100_000

# JSON texts, in place of any value.
TEXTS = [
    *NUMBERS, "null", "true", "false", "[]", "{}", "[[]]", "[null]", '{"a":1,"a":2}', '"\\ud800"', '"\\u0000"',
    '"1"', '"-1"', '""', DEEP, DEEP_OBJECT, json.dumps("x" * 1_000_000), "[" + ",".join(["0"] * 100_000) + "]",
    "[1,]", "nul", "'a'", *map(json.dumps, [*NAMES, *PATHS]),
]  # fmt: skip


def changed_json(chance: random.Random, content: bytes) -> bytes:
    """JSON in which one to three values, or members, are others; in one of eight cases any bytes are."""
    if chance.random() < 0.125:
        return changed_bytes(chance, content)
    root = json.loads(content)
    texts: dict[str, str] = {}
    for _ in range(chance.choice([1, 1, 1, 2, 3])):
        root = _changed(chance, root, texts)
    found = json.dumps(root)
    for mark, text in texts.items():
        found = found.replace(f'"{mark}"', text)
    return found.encode()


def _changed(chance: random.Random, root: Any, texts: dict[str, str]) -> Any:
    """One place of it is a mark, which a text will replace."""
    places = list(_places(root))
    if not places:
        return root
    holder, at = chance.choice(places)
    kind = chance.randrange(10)
    if kind == 0:
        del holder[at]
    elif kind == 1 and isinstance(holder, list):
        holder.append(holder[at])
    elif kind == 2:
        other, there = chance.choice(places)
        if isinstance(other, (dict, list)) and (there in other if isinstance(other, dict) else there < len(other)):
            holder[at] = json.loads(json.dumps(other[there]))
    elif kind == 3 and isinstance(holder[at], int):
        holder[at] += chance.choice([-1, 1, 8, -8, 1 << 32])
    else:
        mark = f"mark-{len(texts)}-"
        texts[mark] = chance.choice(TEXTS)
        holder[at] = mark
    return root


def _places(value: Any) -> Any:
    members = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for at, one in list(members):
        yield value, at
        yield from _places(one)


def changed_bytes(chance: random.Random, content: bytes) -> bytes:
    """Some bytes are others, are missing, or are there twice."""
    found = bytearray(content)
    for _ in range(chance.choice([1, 1, 2, 4])):
        at = chance.randrange(len(found) + 1)
        until = at + chance.choice([1, 2, 8, 100])
        kind = chance.randrange(5)
        if kind == 0 and found[at:until]:
            found[at] = chance.randrange(256)
        elif kind == 1:
            del found[at:until]
        elif kind == 2:
            found[at:at] = found[at:until]
        elif kind == 3:
            found[at:until] = chance.randbytes(until - at)
        elif kind == 4 and chance.random() < 0.5:
            del found[at:]
    return bytes(found)
