"""Headers by the grammar of the format, in any of the ways to write them."""

import random
from dataclasses import dataclass, field

from fuzz_tokens import CHARACTERS, NUMBERS, ROUGH_TEXT, SHORT_ESCAPES, SPACES
from official import BITS, DTYPES


@dataclass
class Entry:
    """A tensor as its fields are written."""

    name: bytes
    fields: list[tuple[bytes, bytes]]
    as_list: bool = False


@dataclass
class Draft:
    """A header on its way to bytes: entries that stand for themselves, and what goes around them."""

    entries: list[Entry]
    buffer: bytes
    metadata: list[bytes] = field(default_factory=list)
    before: bytes = b""
    after: bytes = b""
    length: int | None = None


class HeaderMaker:
    """Makes one file after the other from a source of chance."""

    def __init__(self, chance: random.Random) -> None:
        self.chance = chance
        self.styled = chance.random() < 0.5
        self.gaps = SPACES

    def draft(self) -> Draft:
        chance = self.chance
        tensors = [self.tensor() for _ in range(chance.choice([0, 1, 1, 2, 2, 3, 5, 9]))]
        begin = 0
        entries = []
        names: set[str] = set()
        for dtype, shape, size in tensors:
            text = self.text()
            while text in names or text == "__metadata__":
                text += "'"
            names.add(text)
            fields = [
                (b"dtype", self.string(dtype)),
                (b"shape", self.array([b"%d" % dim for dim in shape])),
                (b"data_offsets", self.array([b"%d" % begin, b"%d" % (begin + size)])),
            ]
            begin += size
            as_list = self.styled and chance.random() < 0.1
            if self.styled and not as_list:
                chance.shuffle(fields)
            entries.append(Entry(self.string(text), fields, as_list))
        chance.shuffle(entries)
        draft = Draft(entries, chance.randbytes(begin))
        if chance.random() < 0.3:
            draft.metadata.append(self.metadata())
        return draft

    def tensor(self) -> tuple[str, list[int], int]:
        """Dtype, shape and bytes of a tensor; nine of ten fill whole bytes."""
        chance = self.chance
        dtype = chance.choice(DTYPES)
        shape = [chance.choice([0, 1, 1, 2, 3, 4, 5, 8]) for _ in range(chance.choice([0, 1, 1, 2, 3]))]
        if BITS[dtype] < 8 and chance.random() < 0.9:
            shape.append(4)
        bits = BITS[dtype]
        for dim in shape:
            bits *= dim
        return dtype, shape, (bits + 7) // 8

    def text(self) -> str:
        """A name: short, of any plane, without surrogates."""
        chance = self.chance
        return "".join(self.character() for _ in range(chance.choice([0, 1, 1, 2, 3, 8])))

    def character(self) -> str:
        chance = self.chance
        kind = chance.random()
        if kind < 0.5:
            return chr(chance.randrange(0x20, 0x7F))
        if kind < 0.7:
            return chance.choice(CHARACTERS)
        code = chance.randrange(0x110000 - 0x800) if kind < 0.8 else chance.randrange(0x2000)
        return chr(code if code < 0xD800 else code + 0x800)

    def string(self, text: str) -> bytes:
        """A JSON string of a text: plain, or with escapes that need not be."""
        parts = [self.escaped(char) if must_escape(char) or self.escapes() else char.encode() for char in text]
        return b'"' + b"".join(parts) + b'"'

    def escapes(self) -> bool:
        return self.styled and self.chance.random() < 0.1

    def escaped(self, char: str) -> bytes:
        short = SHORT_ESCAPES.get(char)
        if short and self.chance.random() < 0.7:
            return short
        units = char.encode("utf-16-be")
        hexed = "".join(f"\\u{units[i]:02x}{units[i + 1]:02x}" for i in range(0, len(units), 2))
        return (hexed if self.chance.random() < 0.5 else hexed.upper().replace("U", "u")).encode()

    def rough_string(self) -> bytes:
        chance = self.chance
        parts = [chance.choice(ROUGH_TEXT) if chance.random() < 0.5 else b"a" for _ in range(chance.randint(1, 4))]
        return b'"' + b"".join(parts) + b'"'

    def space(self) -> bytes:
        if not self.styled or self.chance.random() < 0.9:
            return b""
        return self.chance.choice(self.gaps)

    def array(self, items: list[bytes]) -> bytes:
        return b"[" + self.space() + (self.space() + b"," + self.space()).join(items) + self.space() + b"]"

    def members(self, items: list[tuple[bytes, bytes]]) -> bytes:
        parts = [
            self.space() + name + self.space() + b":" + self.space() + value + self.space() for name, value in items
        ]
        return b"{" + b",".join(parts) + b"}"

    def number(self) -> bytes:
        chance = self.chance
        if chance.random() < 0.5:
            return chance.choice(NUMBERS)
        digits = "".join(chance.choices("0123456789", k=chance.choice([1, 2, 17, 19, 20, 21, 25, 310])))
        fraction = "." + "".join(chance.choices("0123456789", k=chance.choice([1, 3, 18, 20, 330])))
        exponent = (
            chance.choice("eE")
            + chance.choice(["", "+", "-"])
            + str(chance.choice([0, 5, 288, 289, 307, 308, 309, 330]))
        )
        parts = [chance.choice(["", "-"]), digits, chance.choice(["", fraction]), chance.choice(["", exponent])]
        return "".join(parts).encode()

    def near_the_greatest_double(self) -> bytes:
        """Where a number goes out of range depends on how a parser rounds."""
        digits = str(17976931348623157 * 10**20 + self.chance.randint(-(10**22), 10**22))
        cut = self.chance.randint(1, len(digits))
        dot = self.chance.randint(1, cut)
        exponent = 309 - dot
        fraction = "." + digits[dot:cut] if dot < cut else ""
        return f"{digits[:dot]}{fraction}e{exponent}".encode()

    def value(self, depth: int = 3) -> bytes:
        """Any JSON, and nearly JSON."""
        chance = self.chance
        kind = chance.random()
        if depth and kind < 0.2:
            return self.array([self.value(depth - 1) for _ in range(chance.randint(0, 3))])
        if depth and kind < 0.4:
            return self.members(
                [(self.string(self.text()), self.value(depth - 1)) for _ in range(chance.randint(0, 3))]
            )
        if kind < 0.55:
            return self.string(self.text())
        if kind < 0.6:
            return self.rough_string()
        if kind < 0.65:
            return self.near_the_greatest_double()
        if kind < 0.85:
            return self.number()
        return chance.choice([b"null", b"true", b"false", b"nul", b"True", b"", b"{", b"]", b'"'])

    def nested(self) -> bytes:
        """About as deep as the library goes."""
        depth = self.chance.choice([3, 100, 124, 125, 126, 127, 128, 500])
        begin, end = self.chance.choice([(b"[", b"]"), (b'{"a":', b"}")])
        return begin * depth + (b"0" if end == b"}" else b"") + end * depth

    def metadata(self) -> bytes:
        chance = self.chance
        if chance.random() < 0.1:
            return b"null"
        return self.members([(self.string(self.text()), self.string(self.text())) for _ in range(chance.randint(0, 3))])

    def header(self, draft: Draft) -> bytes:
        items = [(entry.name, self.entry(entry)) for entry in draft.entries]
        for value in draft.metadata:
            items.insert(self.chance.randint(0, len(items)), (self.string("__metadata__"), value))
        return draft.before + self.space() + self.members(items) + self.space() + draft.after

    def entry(self, entry: Entry) -> bytes:
        if entry.as_list:
            return self.array([value for _, value in entry.fields])
        return self.members([(b'"' + name + b'"', value) for name, value in entry.fields])


def must_escape(char: str) -> bool:
    return char < " " or char in '"\\'
