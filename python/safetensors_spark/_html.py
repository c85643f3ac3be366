"""What notebooks and terminals show of rows: small tables of a few, whatever is in them."""

from __future__ import annotations

import base64
import struct
import zlib
from collections.abc import Iterable, Sequence
from html import escape
from typing import Any

from safetensors_spark._errors import printable

ROWS, COLUMNS = 5, 20
_LONGEST, _IMAGE_BYTES, _PIXELS = 120, 100_000, 65_536
# How files of images begin that browsers show.
_IMAGES = {b"\x89PNG\r\n": "png", b"\xff\xd8\xff": "jpeg", b"GIF8": "gif"}


def table(title: str, names: Sequence[str], rows: Iterable[Sequence[Any]], note: str = "") -> str:
    """A table of HTML with a title; values are cut, and images are shown."""
    head = "".join(f"<th>{text(name)}</th>" for name in names[:COLUMNS])
    body = "".join(f"<tr>{''.join(f'<td>{cell(value)}</td>' for value in row[:COLUMNS])}</tr>" for row in rows)
    more = f"{len(names) - COLUMNS} more columns" if len(names) > COLUMNS else ""
    notes = "; ".join(one for one in (note, more) if one)
    return f"<div><p>{text(title, 1000)}</p><table><tr>{head}</tr>{body}</table><p>{text(notes)}</p></div>"


def lines(content: str) -> str:
    """Text as it is."""
    return f"<pre>{escape(content)}</pre>"


def text(value: str, longest: int = _LONGEST) -> str:
    """Text of HTML without control characters, of some length at most."""
    shown = printable(value[: longest + 1])
    return escape(shown if len(shown) <= longest else f"{shown[:longest]}…")


def cell(value: Any) -> str:
    """What is in a cell: an image, or the begin of a value's text."""
    content = bytes(value) if isinstance(value, bytes | bytearray) and len(value) <= _IMAGE_BYTES else b""
    kind = next((one for begin, one in _IMAGES.items() if content.startswith(begin)), None)
    if kind is None and (content := _png(value)):
        kind = "png"
    if kind is not None:
        return f'<img src="data:image/{kind};base64,{base64.b64encode(content).decode()}" style="max-height:96px">'
    return text(short(value))


def short(value: Any) -> str:
    """The begin of a value's text; of an array its dtype, its shape and the first numbers."""
    if hasattr(value, "dtype") and hasattr(value, "reshape") and value.ndim:
        shape = ", ".join(map(str, value.shape))
        begin = ", ".join(str(one) for one in value.reshape(-1)[:6].tolist())
        return f"{value.dtype} [{shape}]: {begin}{', …' if value.size > 6 else ''}"
    if isinstance(value, str):
        return value[: _LONGEST + 1]
    return repr(value[:_LONGEST] if isinstance(value, bytes) else value)


def _png(value: Any) -> bytes:
    """A file of PNG, where the value has the dtype and the shape of an image; nothing otherwise."""
    if str(getattr(value, "dtype", "")) != "uint8" or not 2 <= value.ndim <= 3 or not 64 <= value.size <= 4 * _PIXELS:
        return b""
    if value.ndim == 3 and value.shape[0] in (1, 3) and value.shape[2] not in (1, 3):
        # Channels first, as PyTorch has them.
        value = value.transpose(1, 2, 0)
    channels = value.shape[2] if value.ndim == 3 else 1
    height, width = value.shape[:2]
    if channels not in (1, 3) or min(height, width) < 8:
        return b""
    rows = b"".join(b"\0" + value[row].tobytes() for row in range(height))
    head = struct.pack(">IIBBBBB", width, height, 8, 2 if channels == 3 else 0, 0, 0, 0)
    return b"\x89PNG\r\n\x1a\n" + b"".join(
        struct.pack(">I", len(content)) + kind + content + struct.pack(">I", zlib.crc32(kind + content))
        for kind, content in ((b"IHDR", head), (b"IDAT", zlib.compress(rows)), (b"IEND", b""))
    )
