"""Opens and decodes the images of rows with Pillow. Every image is either decoded or an `ImageError`."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from io import BytesIO
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa  # type: ignore[import-untyped]
from numpy.typing import NDArray

from safetensors_spark._extras import require

if TYPE_CHECKING:
    from PIL.Image import Image

# How Hugging Face's library stores images.
STRUCT = pa.struct({"bytes": pa.binary(), "path": pa.string()})

# Above it Pillow warns, and raises at twice as many.
MAX_PIXELS = 89_478_485

# Those that Pillow decodes in this process: EPS, for one, would start Ghostscript.
_FORMATS = ("JPEG", "PNG", "WEBP", "GIF", "BMP", "TIFF", "PPM", "JPEG2000", "AVIF", "ICO")

_ORIENTATION = 0x0112
_LATE_EXIF = "PNG"


class ImageError(ValueError):
    """An image that cannot be decoded, and why."""


def require_pillow() -> None:
    """Raise `MissingExtraError` without Pillow."""
    require("factory", ("PIL",))


def sources_of(column: pa.Array, field: str) -> list[bytes | str | None]:
    """For each row the encoded image, or its path if it has no bytes; None for no image.

    Args:
        column: binary, or structs with `bytes` and perhaps `path`.
        field: the column's name, for errors.
    """
    kind = column.type
    if pa.types.is_null(kind):
        return [None] * len(column)
    if pa.types.is_binary(kind) or pa.types.is_large_binary(kind):
        return list(column.to_pylist())
    if not pa.types.is_struct(kind) or kind.get_field_index("bytes") < 0:
        raise ValueError(f"field `{field}` is {kind}, expected binary, or a struct of `bytes` and `path`")
    # Unlike `field`, `flatten` knows which structs are null.
    parts = dict(zip((one.name for one in kind), column.flatten(), strict=True))
    encoded = parts["bytes"].to_pylist()
    if "path" not in parts:
        return list(encoded)
    return [path if one is None else one for one, path in zip(encoded, parts["path"].to_pylist(), strict=True)]


def open_image(source: bytes | str, max_pixels: int) -> Image:
    """Open an image, reading only its header. Raises `ImageError`."""
    from PIL import Image

    with _told(max_pixels):
        image = Image.open(BytesIO(_bytes_of(source)), formats=_FORMATS)
        if image.width * image.height > max_pixels:
            raise ImageError(_too_large(max_pixels))
        return image


def turn_of(image: Image) -> int:
    """The orientation that EXIF states, 1 to 8; 1 is upright.

    Call it before pixels are decoded: a PNG's EXIF may come after them, and whether they were decoded must not
    change the result.
    """
    if image.format == _LATE_EXIF and "exif" not in image.info:
        return 1
    try:
        turn = image.getexif().get(_ORIENTATION, 1)
    except Exception:  # Broken EXIF is no reason against a good image.
        return 1
    return turn if isinstance(turn, int) and 1 <= turn <= 8 else 1


def load_pixels(image: Image, max_pixels: int) -> None:
    """Decode the pixels. Raises `ImageError`."""
    with _told(max_pixels):
        image.load()


def upright(image: Image, turn: int) -> Image:
    """The image rotated according to its orientation."""
    from PIL.Image import Transpose

    turns = {
        2: Transpose.FLIP_LEFT_RIGHT,
        3: Transpose.ROTATE_180,
        4: Transpose.FLIP_TOP_BOTTOM,
        5: Transpose.TRANSPOSE,
        6: Transpose.ROTATE_270,
        7: Transpose.TRANSVERSE,
        8: Transpose.ROTATE_90,
    }
    return image.transpose(turns[turn]) if turn in turns else image


def decode(source: bytes | str, max_pixels: int) -> Image:
    """The first frame of an image, upright. Raises `ImageError`."""
    image = open_image(source, max_pixels)
    turn = turn_of(image)
    load_pixels(image, max_pixels)
    return upright(image, turn)


def in_mode(image: Image, mode: str) -> Image:
    """The image in a mode of 8 bits for each channel, such as RGB or L. Raises `ImageError`.

    Pixels of 16 bits are scaled; Pillow would clip them. Transparency is dropped.
    """
    if image.mode == "F":
        raise ImageError("pixels are floating-point numbers, whose range is not known")
    if image.mode == "I" or image.mode.startswith("I;16"):
        image = _scaled(image)
    return image if image.mode == mode else image.convert(mode)


def _scaled(image: Image) -> Image:
    from PIL import Image

    wide: NDArray[Any] = np.asarray(image).astype(np.int64)
    if wide.size and (wide.min() < 0 or wide.max() > 65535):
        raise ImageError("pixels have 32 bits, whose range is not known")
    return Image.fromarray(((wide * 255 + 32767) // 65535).astype(np.uint8))


def _bytes_of(source: bytes | str) -> bytes:
    if isinstance(source, str):
        # A device or a pipe might never end.
        if not Path(source).is_file():
            raise ImageError(f"no bytes, and no file here: {source}")
        source = Path(source).read_bytes()
    if not source:
        raise ImageError("0 bytes")
    return source


@contextmanager
def _told(max_pixels: int) -> Iterator[None]:
    """Convert Pillow's exceptions into `ImageError`s, with the same text in each process."""
    from PIL import Image, UnidentifiedImageError

    try:
        yield
    except (ImageError, MemoryError):
        # Too little memory is this machine's fault, and not the image's.
        raise
    except (Image.DecompressionBombError, Image.DecompressionBombWarning) as error:
        raise ImageError(_too_large(max_pixels)) from error
    except UnidentifiedImageError as error:
        raise ImageError(f"no image of a known format ({', '.join(_FORMATS)})") from error
    except Exception as error:  # Pillow's decoders raise whatever hostile bytes make them.
        text = re.sub(r" at 0x[0-9a-f]+", "", str(error))
        raise ImageError(f"{type(error).__name__}: {text}"[:500]) from error


def _too_large(max_pixels: int) -> str:
    return f"more than {max_pixels:,} pixels"
