"""Files that are changed byte by byte, and the files that changes begin with."""

import random
import re

from fuzz_tokens import NO_SPACES, NUMBERS, ROUGH_TEXT
from header_cases import CASES, FIELDS, HUGE_SHAPES, file

TOKENS = [
    *NUMBERS, *NO_SPACES, *ROUGH_TEXT, b"null", b"true", b"{}", b"[]", b"{", b"}", b"[", b"]", b":", b",", b'"', b" ",
    b'"a":', b'"dtype":', b'"shape":', b'"data_offsets":', b'"__metadata__":', b'"__metadata__":{}', b'"U8"', b'"F4"',
    b'"F64"', b"[0,0]",
]  # fmt: skip

EDGES = b'"\\{}[]:,0189-+.eEu \n\t\0\x1f\x7f\x80\xbf\xc0\xe0\xed\xf0\xf4\xff'

SEEDS = [content for _, content in CASES + HUGE_SHAPES if len(content) < 2000]


def mutated(chance: random.Random, content: bytes) -> bytes:
    """One to four changes anywhere; in half of the cases the header's length is made to fit what they left."""
    before = len(content)
    changed = bytearray(content)
    for _ in range(chance.choice([1, 1, 2, 4])):
        if changed:
            _change(chance, changed)
    length = int.from_bytes(content[:8], "little")
    if chance.random() < 0.5 and len(changed) > 8 and length < before:
        changed[:8] = max(length + len(changed) - before, 0).to_bytes(8, "little")
    return bytes(changed)


def _change(chance: random.Random, content: bytearray) -> None:
    at = chance.randrange(len(content))
    if len(content) > 8 and chance.random() < 0.8:
        at = chance.randrange(8, len(content))
    until = at + chance.choice([1, 1, 2, 3, 8, 20])
    kind = chance.randrange(9)
    if kind == 0:
        content[at] ^= 1 << chance.randrange(8)
    elif kind == 1:
        content[at] = chance.randrange(256)
    elif kind == 2:
        content[at] = chance.choice(EDGES)
    elif kind == 3:
        content[at:at] = chance.choice(TOKENS)
    elif kind == 4:
        del content[at:until]
    elif kind == 5:
        content[at:at] = content[at:until]
    elif kind == 6:
        other = chance.choice(SEEDS)
        content[at:until] = other[chance.randint(0, len(other)) :][: chance.choice([1, 5, 50])]
    elif kind == 7:
        numbers = list(re.finditer(rb"\d+", content[8:]))
        if numbers:
            number = chance.choice(numbers)
            content[8 + number.start() : 8 + number.end()] = chance.choice(NUMBERS)
    else:
        del content[at:]


def truncations() -> list[bytes]:
    """Some files, cut at each byte."""
    metadata = '"__metadata__":{"k":"\\ud83d\\ude00ä"}'
    two = f'{{"a":{{"dtype":"F4","shape":[4],"data_offsets":[0,2]}},"b":["F64",[1],[2,10]],{metadata}}}  '
    whole = [file("{}"), file(f'{{"a":{{{FIELDS},"x":[1.5e3,null]}}}}', b"x"), file(two, bytes(10))]
    return [content[:at] for content in whole for at in range(len(content))]


def heavy() -> list[bytes]:
    """Files that cost too much if a reader is careless: names of one hash, long lists, long names, long numbers."""
    pairs = ["".join("Aa" if number >> bit & 1 else "BB" for bit in range(16)) for number in range(20_000)]
    tensors = ",".join(f'"{name}":["U8",[0],[0,0]]' for name in pairs)
    keys = ",".join(f'"{name}":""' for name in pairs)
    return [
        file(f"{{{tensors}}}"),
        file(f'{{"__metadata__":{{{keys}}}}}'),
        file('{"a":["U8",[' + ",".join("1" * 200_000) + "],[0,1]]}", b"x"),
        file('{"a":["U8",[0],[0,0' + ",0" * 200_000 + "]]}"),
        file(f'{{"a":{{{FIELDS},"x":[{",".join(["{}"] * 200_000)}]}}}}', b"x"),
        file(f'{{"a":{{{FIELDS},"x":{"9" * 500_000}}}}}', b"x"),
        file(f'{{"a":{{{FIELDS},"x":0.{"0" * 500_000}1e500001}}}}', b"x"),
        file(f'{{"a":["U8",[{"1" * 500_000}],[0,1]]}}', b"x"),
        file('{"' + "n" * 2_000_000 + '":["U8",[1],[0,1]]}', b"x"),
        file('{"' + "\\u0041" * 300_000 + '":["U8",[1],[1,2]]}', b"xx"),
        file('{"a":["' + "U" * 2_000_000 + '",[1],[0,1]]}', b"x"),
        file(b"{" + b" " * 2_000_000 + b"}"),
        file("[" * 2_000_000),
    ]
