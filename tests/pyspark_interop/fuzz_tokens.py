"""Pieces of headers where readers differ: right ones, wrong ones, and the edges between."""

# Where numbers change what they are: for shapes, offsets, and values that no reader looks at.
NUMBERS = [
    b"0", b"1", b"7", b"8", b"00", b"01", b"-0", b"-1", b"+1", b"1.", b".5", b"1.0", b"1e0", b"1e2", b"1E+2",
    b"1e-2", b"0e0", b"1e", b"1e+", b"-", b"--1", b"0x1", b"1_0", b"NaN", b"Infinity", b"-Infinity", b"1e400",
    b"-1e400", b"1e-400", b"0e400", b"0.0e99999999999", b"1e99999999999", b"1e-99999999999", b"2147483647",
    b"2147483648", b"4294967295", b"4294967296", b"9223372036854775807", b"9223372036854775808",
    b"-9223372036854775809", b"18446744073709551615", b"18446744073709551616", b"2305843009213693951",
    b"2305843009213693952", b"1.7976931348623157e308", b"1.7976931348623158e308", b"17976931348623157081e289",
    b"1" + b"0" * 308, b"1" + b"0" * 309, b"9" * 309, b"0." + b"0" * 320 + b"1e600", b"\xd9\xa1", b"1\0",
]  # fmt: skip

DIMS = ["0", "1", "2", "3", "4", "8", "2147483648", "4294967296", "9223372036854775808", "18446744073709551615"]

WRONG_DTYPES = [
    b'"u8"', b'"U8 "', b'""', b'"F8"', b'"F8_E4M3FN"', b'"U128"', b'"BF16\\u0000"', b'"F6"', b"null", b"8", b"true",
    b'["U8"]', b"{}", b'{"U8":{}}', b'{"U8":[]}', b'{"U8":0}', b'{"X8":null}', b'{"U8":null,"U8":null}',
    b'{"U8":null,"a":null}',
]  # fmt: skip

SPACES = [b" ", b"\n", b"\t", b"\r", b"  ", b" \r\n\t"]
NO_SPACES = [
    b"\0",
    b"\v",
    b"\f",
    b"\xc2\xa0",
    b"\xe2\x80\xa8",
    b"\xef\xbb\xbf",
    b"/**/",
    b"//\n",
    b"#",
    b"\x1f",
    b"\x7f",
    b"\xff",
]

ROUGH_TEXT = [
    rb"\ud800", rb"\udc00", rb"\ud800\ud800", rb"\ud83d\ude0", rb"\ude00\ud83d", rb"\ud800a", rb"\ud800\n",
    rb"\ud800\u0061", rb"\x41", rb"\U0061", rb"\u00g0", rb"\u", rb"\u 061", rb"\u+061", b"\\", b"\\'", b"\0", b"\n",
    b"\x1f", b'"', b"\x7f", b"\x80", b"\xc0\x80", b"\xc1\xbf", b"\xe0\x80\xaf", b"\xed\xa0\x80", b"\xed\xbf\xbf",
    b"\xf0\x80\x80\x80", b"\xf4\x90\x80\x80", b"\xf8\x88\x80\x80\x80", b"\xe2\x82", b"\xf0\x9f\x98", b"\xff",
    b"\xfe", "\ufeff".encode(), "\uffff".encode(), "\ud7ff\ue000".encode(), "\U0010ffff".encode(),
]  # fmt: skip

# Lengths that a reader may take in one step.
STEPS = [1 << power for power in range(9, 19)]

SHORT_ESCAPES = {
    '"': b'\\"', "\\": b"\\\\", "/": b"\\/", "\b": b"\\b", "\f": b"\\f", "\n": b"\\n", "\r": b"\\r", "\t": b"\\t",
}  # fmt: skip

CHARACTERS = [
    '"', "\\", "/", ".", "`", "\0", "\n", "\x1f", "\x7f", "é", "\u2028", "\ud7ff", "\ue000", "\ufeff", "\uffff",
    "\U00010000", "\U0010ffff", "😀",
]  # fmt: skip
