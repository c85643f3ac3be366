"""Real images, and hostile ones, for tests of operators."""

from __future__ import annotations

import struct
import zlib
from functools import lru_cache
from io import BytesIO
from typing import Any

import numpy as np
import pyarrow as pa  # type: ignore[import-untyped]
from PIL import Image
from sklearn.datasets import load_digits, load_sample_images  # type: ignore[import-untyped]

STRUCT = pa.struct({"bytes": pa.binary(), "path": pa.string()})


@lru_cache
def photos() -> tuple[Image.Image, ...]:
    """A temple in China and a flower: 640 x 427 pixels."""
    return tuple(Image.fromarray(array) for array in load_sample_images().images)


@lru_cache
def digits(count: int = 100) -> tuple[Image.Image, ...]:
    """8 x 8 grey pixels."""
    return tuple(Image.fromarray((one * 15).astype(np.uint8)) for one in load_digits().images[:count])


def encoded(image: Image.Image, format_of: str, **options: Any) -> bytes:
    file = BytesIO()
    image.save(file, format_of, **options)
    return file.getvalue()


def turned(image: Image.Image, orientation: int) -> bytes:
    exif = Image.Exif()
    exif[0x0112] = orientation
    return encoded(image, "JPEG", quality=95, exif=exif)


def png_of_size(width: int, height: int) -> bytes:
    """A PNG whose header claims this size, and which has no pixels."""

    def chunk(kind: bytes, data: bytes) -> bytes:
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

    header = struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) + chunk(b"IDAT", zlib.compress(b"")) + chunk(b"IEND", b"")


def good() -> dict[str, bytes]:
    """Images of many kinds that can be decoded, by name."""
    photo = photos()[0]
    small = photo.resize((40, 30))
    frames = [small.rotate(angle) for angle in (0, 90, 180)]
    deep = Image.fromarray(np.arange(1200, dtype=np.uint16).reshape(30, 40) * 54)
    return {
        "jpeg": encoded(photo, "JPEG"),
        "cmyk": encoded(small.convert("CMYK"), "JPEG"),
        "grey": encoded(small.convert("L"), "JPEG"),
        "png": encoded(small, "PNG"),
        "deep": encoded(deep, "PNG"),
        "alpha": encoded(small.convert("RGBA"), "PNG"),
        "palette": encoded(small.convert("P"), "PNG", transparency=0),
        "bits": encoded(small.convert("1"), "PNG"),
        "dot": encoded(Image.new("RGB", (1, 1), "red"), "PNG"),
        "gif": encoded(frames[0], "GIF", save_all=True, append_images=frames[1:]),
        "webp": encoded(small, "WEBP"),
        "tiff": encoded(small, "TIFF"),
        "bmp": encoded(small, "BMP"),
        "ppm": encoded(small, "PPM"),
        "turned": turned(small, 6),
    }


def bad() -> dict[str, tuple[bytes, str]]:
    """What cannot be decoded, and a part of what is said of it."""
    jpeg = encoded(photos()[0], "JPEG")
    return {
        "empty": (b"", "0 bytes"),
        "text": (b"<html>404 Not Found</html>", "no image of a known format"),
        "magic": (b"\x89PNG\r\n\x1a\n", "no image of a known format"),
        "eps": (b"%!PS-Adobe-3.0 EPSF-3.0\n%%BoundingBox: 0 0 9 9\n", "no image of a known format"),
        "bomb": (png_of_size(10_000, 10_000), "more than 89,478,485 pixels"),
        "larger bomb": (png_of_size(2**31 - 1, 2**31 - 1), "more than 89,478,485 pixels"),
        "cut": (jpeg[: len(jpeg) // 2], "truncated"),
        "no pixels": (png_of_size(40, 30), "OSError"),
    }


def column(rows: list[bytes | None], kind: pa.DataType = STRUCT) -> pa.RecordBatch:
    """A batch with the field `image`, stored in this way."""
    values = [None if one is None else {"bytes": one, "path": None} for one in rows] if kind == STRUCT else rows
    return pa.record_batch({"image": pa.array(values, kind)})
