"""Files written by hand, at the edges of the format. The verdict on them is the official library's."""

from official import BITS, DTYPES

Case = tuple[str, bytes]

FIELDS = '"dtype":"U8","shape":[1],"data_offsets":[0,1]'
DEEP = 2  # brackets around the value of a tensor's field: the header's and the tensor's


def file(header: str | bytes, buffer: bytes = b"", length: int | None = None) -> bytes:
    """A file with this header; `length` stands in its first 8 bytes where it is not the truth."""
    raw = header.encode() if isinstance(header, str) else header
    return (len(raw) if length is None else length).to_bytes(8, "little") + raw + buffer


def tensor(fields: str, buffer: bytes = b"x") -> bytes:
    """A file of one tensor `a` with these fields."""
    return file('{"a":{' + fields + "}}", buffer)


def shaped(shape: str, offsets: str = "[0,1]", dtype: str = "U8", buffer: bytes = b"x") -> bytes:
    return tensor(f'"dtype":"{dtype}","shape":{shape},"data_offsets":{offsets}', buffer)


def extra(value: str) -> bytes:
    """A sound tensor with a field that the format does not know."""
    return tensor(f'{FIELDS},"x":{value}')


def named(name: str) -> bytes:
    """A sound tensor by a name, given as JSON text."""
    return file(f'{{"{name}":{{{FIELDS}}}}}', b"x")


def pair(first: str, second: str, buffer: bytes) -> bytes:
    """Two U8 tensors, by their offsets; the shapes fit them."""
    tensors = []
    for name, offsets in (("a", first), ("b", second)):
        begin, end = map(int, offsets.split(","))
        tensors.append(f'"{name}":{{"dtype":"U8","shape":[{max(end - begin, 0)}],"data_offsets":[{offsets}]}}')
    return file("{" + ",".join(tensors) + "}", buffer)


LENGTHS: list[Case] = [
    ("no bytes", b""),
    ("seven bytes", b"\x02\0\0\0\0\0\0"),
    ("eight bytes", bytes(8)),
    ("length of zero and a buffer", file("", b"x")),
    ("length past the file", file("{}", length=3)),
    ("length just at the limit, past the file", file("{}", length=100_000_000)),
    ("length just over the limit", file("{}", length=100_000_001)),
    ("length of 2^63", file("{}", length=2**63)),
    ("length of 2^64-1", file("{}", length=2**64 - 1)),
    ("length that cuts the header", file(f'{{"a":{{{FIELDS}}}}}', b"x", length=20)),
    ("a byte missing", tensor(FIELDS, b"")),
    ("a byte too many", tensor(FIELDS, b"xy")),
    ("no tensor and a byte", file("{}", b"x")),
    ("metadata alone and a byte", file('{"__metadata__":{"a":"b"}}', b"x")),
]

TEXT: list[Case] = [
    ("overlong NUL", file(b'{"\xc0\x80":1}')),
    ("overlong slash", file(b'{"\xe0\x80\xaf":1}')),
    ("encoded surrogate", file(b'{"\xed\xa0\x80":1}')),
    ("code point past U+10FFFF", file(b'{"\xf4\x90\x80\x80":1}')),
    ("stray continuation byte", file(b'{"\x80":1}')),
    ("cut sequence", file(b"{}\xe2\x82")),
    ("bad byte in the padding", file(b"{}\xff")),
    ("bad byte and bad JSON before it", file(b"{x\xff")),
    ("byte order mark", file(b"\xef\xbb\xbf{}")),
    ("UTF-16", file("{}".encode("utf-16-le"))),
    ("name of two bytes a character", named("é")),
    ("name beyond the BMP", named("😀")),
    ("name U+FFFF", named("\uffff")),
    ("name U+007F", named("\x7f")),
]

WHITESPACE: list[Case] = [
    ("leading spaces and newline", file(f' \n\t\r{{"a":{{{FIELDS}}}}}', b"x")),
    ("trailing whitespace of all four kinds", file("{} \n\t\r")),
    ("trailing NUL", file("{}\0")),
    ("trailing vertical tab", file("{}\v")),
    ("trailing form feed", file("{}\f")),
    ("trailing no-break space", file("{}\u00a0")),
    ("leading NUL", file("\0{}")),
    ("a second object", file("{}{}")),
    ("trailing letter", file("{} x")),
    (
        "whitespace between tokens",
        file('{ "a" : {"dtype" :\n"U8", "shape":[ 1 ],\t"data_offsets":[0 ,1] } }', b"x"),
    ),
    ("spaces only", file("   ")),
]

JSON: list[Case] = [
    ("empty object", file("{}")),
    ("array at the top", file("[]")),
    ("null at the top", file("null")),
    ("string at the top", file('"a"')),
    ("open object", file("{")),
    ("trailing comma in the header", file(f'{{"a":{{{FIELDS}}},}}', b"x")),
    ("trailing comma in a tensor", tensor(FIELDS + ",")),
    ("trailing comma in a shape", shaped("[1,]")),
    ("leading comma", file(f'{{,"a":{{{FIELDS}}}}}', b"x")),
    ("missing comma", tensor('"dtype":"U8" "shape":[1],"data_offsets":[0,1]')),
    ("missing colon", file('{"a" 1}')),
    ("name without quotes", file(f"{{a:{{{FIELDS}}}}}", b"x")),
    ("single quotes", file("{'a':1}")),
    ("block comment", file("{/* */}")),
    ("line comment", file("{}//")),
    ("bracket closed by a brace", shaped("[1}")),
]

STRINGS: list[Case] = [
    ("empty name", named("")),
    ("name with dot, slash and backtick", named("a.b/c`d")),
    ("name __metadata", named("__metadata")),
    ("name with all short escapes", named(r"\"\\\/\b\f\n\r\t")),
    ("name by escape", named(r"\u0061")),
    ("name with upper-case escape", named(r"\u00E9")),
    ("name with escaped NUL", named(r"\u0000")),
    ("name by a surrogate pair", named(r"\ud83d\ude00")),
    ("lone high surrogate", named(r"\ud800")),
    ("lone low surrogate", named(r"\ude00")),
    ("high surrogate and a letter", named(r"\ud800a")),
    ("two high surrogates", named(r"\ud800\ud800")),
    ("surrogates swapped", named(r"\ude00\ud83d")),
    ("escape of three digits", named(r"\u006")),
    ("escape with a letter past f", named(r"\u006g")),
    ("unknown escape", named(r"\x41")),
    ("capital escape", named(r"\U0061")),
    ("raw newline", named("\n")),
    ("raw tab", named("\t")),
    ("raw NUL", named("\0")),
    ("raw U+001F", named("\x1f")),
    ("open string", file('{"a')),
    ("lone surrogate in an ignored field", extra(r'"\ud800"')),
    ("raw control character in an ignored field", extra('"\x01"')),
    ("unknown escape in an ignored field", extra(r'"\x41"')),
    ("lone surrogate in an ignored field's name", tensor(FIELDS + r',"\ud800":1')),
]

NUMBERS: list[Case] = [
    (f"dimension {value}", shaped(f"[{value}]"))
    for value in (
        "01", "00", "-0", "-1", "+1", "1.0", "1.", ".5", "1e0", "1E0", "1e", "0x1", '"1"', "null", "true",
        "[1]", "NaN", "Infinity", "18446744073709551615", "18446744073709551616", "1e400", "",
    )
] + [
    (f"offset {value}", shaped("[1]", f"[0,{value}]"))
    for value in ("1.0", "-1", "-0", "01", '"1"', "null", "1e0", "18446744073709551615")
] + [
    (f"ignored value {value}", extra(value))
    for value in (
        "-0", "-1", "1e2", "1.5", "18446744073709551616", "1e400", "-1e400", "1e-400", "01", "-", "-01", "1.",
        "1e+", "nul", "true", "[]", '{"a":{"a":[null]}}', '{"a":1,"a":2}', "[1,]", "tru e",
    )
]  # fmt: skip

NESTING: list[Case] = [
    (f"{kind} nested {depth} deep", extra(begin * (depth - DEEP) + value + end * (depth - DEEP)))
    for depth in (126, 127, 128, 129, 5000)
    for kind, begin, value, end in (("arrays", "[", "", "]"), ("objects", '{"a":', "0", "}"))
]

FIELD_RULES: list[Case] = [
    ("tensor in order", tensor(FIELDS)),
    ("fields in another order", tensor('"data_offsets":[0,1],"shape":[1],"dtype":"U8"')),
    ("no dtype", tensor('"shape":[1],"data_offsets":[0,1]')),
    ("no shape", tensor('"dtype":"U8","data_offsets":[0,1]')),
    ("no offsets", tensor('"dtype":"U8","shape":[1]')),
    ("no fields", tensor("")),
    ("dtype twice", tensor(FIELDS + ',"dtype":"U8"')),
    ("shape twice", tensor(FIELDS + ',"shape":[1]')),
    ("offsets twice", tensor(FIELDS + ',"data_offsets":[0,1]')),
    ("dtype twice, once by an escape", tensor(FIELDS + r',"\u0064type":"U8"')),
    ("field name by an escape", tensor(r'"\u0064type":"U8","shape":[1],"data_offsets":[0,1]')),
    ("field name in capitals", tensor('"DTYPE":"U8","shape":[1],"data_offsets":[0,1]')),
    ("unknown field twice", tensor(FIELDS + ',"x":1,"x":2')),
    ("tensor null", file('{"a":null}')),
    ("tensor a number", file('{"a":1}')),
    ("tensor a string", file('{"a":"U8"}')),
    ("tensor a list", file('{"a":["U8",[1],[0,1]]}', b"x")),
    ("tensor a list of two", file('{"a":["U8",[1]]}', b"x")),
    ("tensor a list of four", file('{"a":["U8",[1],[0,1],0]}', b"x")),
    ("tensor a list in another order", file('{"a":[[1],"U8",[0,1]]}', b"x")),
    ("tensor an empty list", file('{"a":[]}')),
    ("shape null", shaped("null")),
    ("shape a number", shaped("1")),
    ("shape an object", shaped("{}")),
    ("shape a string", shaped('"1"')),
    ("no offset", shaped("[1]", "[]")),
    ("one offset", shaped("[1]", "[0]")),
    ("three offsets", shaped("[1]", "[0,1,1]")),
    ("offsets null", shaped("[1]", "null")),
    ("offsets an object", shaped("[1]", '{"0":0,"1":1}')),
]

DTYPE_RULES: list[Case] = [
    (f"dtype {dtype}", shaped("[8]", f"[0,{BITS[dtype]}]", dtype, bytes(range(BITS[dtype]))))
    for dtype in DTYPES
] + [
    (f"dtype given as {value}", tensor(f'"dtype":{value},"shape":[1],"data_offsets":[0,1]'))
    for value in (
        '"u8"', '"U8 "', '""', '"U4"', '"U128"', '"F8"', '"F8_E4M3FN"', '"float32"', '"C128"', "null", "4",
        '["U8"]', r'"\u00558"', '{"U8":null}', '{"U8":{}}', '{"U8":[]}', '{"U8":0}', '{"X8":null}', "{}",
        '{"U8":null,"I8":null}', '{"U8":null,"U8":null}',
    )
]  # fmt: skip

OFFSET_RULES: list[Case] = [
    ("two tensors", pair("0,2", "2,3", b"xyz")),
    ("two tensors, named in the other order", pair("2,3", "0,2", b"xyz")),
    ("first begins at 1", shaped("[1]", "[1,2]", buffer=b"xy")),
    ("hole", pair("0,1", "2,3", b"xyz")),
    ("overlap", pair("0,2", "1,3", b"xyz")),
    ("the same bytes twice", pair("0,1", "0,1", b"x")),
    ("end before begin", pair("0,1", "1,0", b"x")),
    ("end before begin at zero", shaped("[1]", "[1,0]")),
    ("end past the file", shaped("[4]", "[0,4]")),
    ("shape too small", shaped("[1]", "[0,2]", buffer=b"xy")),
    ("shape too large", shaped("[3]", "[0,2]", buffer=b"xy")),
    ("dtype too wide", shaped("[2]", "[0,2]", "I16", b"xy")),
    ("scalar", shaped("[]")),
    ("scalar of two bytes", shaped("[]", "[0,2]", buffer=b"xy")),
    ("no element", shaped("[0]", "[0,0]", buffer=b"")),
    ("no element but a byte", shaped("[0]", "[0,1]")),
    ("no element, the dtype wide", shaped("[3,0,2]", "[0,0]", "U64", b"")),
    ("no element, in the sequence", pair("0,2", "2,2", b"xy")),
    ("no element, before the first", pair("0,2", "0,0", b"xy")),
    ("no element, inside another", pair("0,2", "1,1", b"xy")),
    ("no element, past the end", pair("0,2", "3,3", b"xy")),
    ("two of no element", pair("0,0", "0,0", b"")),
    ("unaligned", file(
        '{"a":{"dtype":"U8","shape":[1],"data_offsets":[0,1]},"b":{"dtype":"F64","shape":[1],"data_offsets":[1,9]}}',
        bytes(9))),
    ("BOOL of 7", shaped("[1]", "[0,1]", "BOOL", b"\x07")),
    ("F4 of three", shaped("[3]", "[0,1]", "F4")),
    ("F4 of three, two bytes", shaped("[3]", "[0,2]", "F4", b"xy")),
    ("F4 scalar", shaped("[]", "[0,0]", "F4", b"")),
    ("F6 of two", shaped("[2]", "[0,1]", "F6_E2M3")),
    ("F6 of four, a byte too few", shaped("[4]", "[0,2]", "F6_E3M2", b"xy")),
    ("shape of 2^64-1 bits", shaped("[18446744073709551615]", "[0,0]", "F4", b"")),
    ("product of dimensions past 2^64", shaped("[9223372036854775808,4,0]", "[0,0]", buffer=b"")),
    ("product of exactly 2^64", shaped("[4294967296,4294967296]", "[0,0]", buffer=b"")),
    ("product fits, bits do not", shaped("[2305843009213693952]", "[0,0]", buffer=b"")),
    ("bits just fit", shaped("[2305843009213693951]", "[0,2305843009213693951]", buffer=b"")),
    ("offset and dimensions of 2^63", shaped("[9223372036854775808]", "[0,9223372036854775808]", buffer=b"")),
    ("overflow before a hole", file(
        '{"a":{"dtype":"U8","shape":[9223372036854775808,4],"data_offsets":[0,0]},'
        '"b":{"dtype":"U8","shape":[1],"data_offsets":[5,6]}}')),
]  # fmt: skip

NAMES_TWICE: list[Case] = [
    ("name twice", file(f'{{"a":{{{FIELDS}}},"a":{{{FIELDS}}}}}', b"x")),
    ("name twice, once by an escape", file(f'{{"a":{{{FIELDS}}},"\\u0061":{{{FIELDS}}}}}', b"x")),
    ("name twice, the first off the buffer", file(
        f'{{"a":{{"dtype":"I8","shape":[9],"data_offsets":[7,9]}},"a":{{{FIELDS}}}}}', b"x")),
    ("name twice, the last off the buffer", file(
        f'{{"a":{{{FIELDS}}},"a":{{"dtype":"I8","shape":[9],"data_offsets":[7,9]}}}}', b"x")),
    ("name twice, the first of no known dtype", file(
        f'{{"a":{{"dtype":"X8","shape":[1],"data_offsets":[0,1]}},"a":{{{FIELDS}}}}}', b"x")),
    ("names that differ in case", file(
        f'{{"a":{{{FIELDS}}},"A":{{"dtype":"I8","shape":[1],"data_offsets":[1,2]}}}}', b"xy")),
]  # fmt: skip

METADATA: list[Case] = [
    (f"metadata {value}", file(f'{{"__metadata__":{value},"a":{{{FIELDS}}}}}', b"x"))
    for value in (
        '{"k":"v"}', "{}", "null", '{"k":"v","k":"w"}', '{"":""}', '{"k":"é"}', r'{"k":"\ud83d\ude00"}',
        r'{"k":"\ud800"}', r'{"\ud800":"v"}', '{"k":1}', '{"k":null}', '{"k":{}}', '{"k":["v"]}',
        '{"k":true}', "[]", '""', "0", "nul", '{"k":"v",}', '{"dtype":"U8","shape":"[1]"}',
        '{"dtype":"U8","shape":[1],"data_offsets":[0,1]}',
    )
] + [
    ("metadata after the tensor", file(f'{{"a":{{{FIELDS}}},"__metadata__":{{"k":"v"}}}}', b"x")),
    ("metadata twice", file('{"__metadata__":{},"__metadata__":{}}')),
    ("metadata twice, null first", file('{"__metadata__":null,"__metadata__":{}}')),
    ("metadata twice, once by an escape", file(r'{"__metadata__":{},"\u005f_metadata__":{}}')),
    ("metadata by an escape", file(r'{"\u005f_metadata__":{"k":"v"}}')),
]  # fmt: skip

# Sound for the library, with dimensions that an `array<int>` cannot hold.
HUGE_SHAPES: list[Case] = [
    ("no element, a dimension of 2^31", shaped("[0,2147483648]", "[0,0]", buffer=b"")),
    ("no element, a dimension of 2^63", shaped("[0,9223372036854775808,4]", "[0,0]", buffer=b"")),
    ("no element, a dimension of 2^64-1", shaped("[18446744073709551615,0]", "[0,0]", buffer=b"")),
]

CASES: list[Case] = [
    *LENGTHS, *TEXT, *WHITESPACE, *JSON, *STRINGS, *NUMBERS, *NESTING, *FIELD_RULES, *DTYPE_RULES,
    *OFFSET_RULES, *NAMES_TWICE, *METADATA,
]  # fmt: skip
