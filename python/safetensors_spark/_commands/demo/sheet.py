"""A contact sheet: tiles in rows by what they are, each with its caption beside it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from PIL import Image, ImageDraw, ImageFont

_COLUMNS = 14
_SCALE = 7  # screen pixels for one pixel of a digit
_FINE = 4  # lines are drawn so much larger, and then smoothed
_GAP, _MARGIN, _HEAD = 8, 28, 64
_PAPER, _INK, _LABEL, _FAINT = (250, 249, 246), (24, 36, 72), (214, 84, 38), (120, 124, 136)

Tile = Callable[[int], Image.Image]


def draw(captions: Sequence[str], side: int, tile: Tile, title: str, note: str, path: Path) -> None:
    """Draw tiles of digits, of `side` pixels, to a PNG: a row for each caption, evenly picked."""
    kinds = list(dict.fromkeys(captions))
    rows = [_picks(np.flatnonzero(np.array(captions) == kind)) for kind in kinds]
    beside = 6 + max(int(ImageFont.load_default(16).getlength(kind)) for kind in kinds)
    down, right = side * _SCALE + _GAP, beside + side * _SCALE + _GAP
    size = (2 * _MARGIN + _COLUMNS * right - _GAP, _HEAD + _MARGIN + len(rows) * down - _GAP)
    canvas = Image.new("RGB", size, _PAPER)
    for row, picks in enumerate(rows):
        for column, index in enumerate(picks.tolist()):
            place = (_MARGIN + column * right, _HEAD + row * down)
            ImageDraw.Draw(canvas).text(place, captions[index], _LABEL, ImageFont.load_default(16))
            canvas.paste(tile(index), (place[0] + beside, place[1]))
    _heading(canvas, title, f"{sum(map(len, rows))} of {len(captions):,} {note}")
    canvas.save(path)


def of_pixels(image: NDArray[np.uint8]) -> Image.Image:
    """An image (U8 [h, w] of 0 to 16) scaled up, ink on white."""
    ink = image.astype(float)[..., None] / 16
    colours = (255 * (1 - ink) + np.array(_INK) * ink).astype(np.uint8)
    height, width = image.shape
    return Image.fromarray(colours).resize((width * _SCALE, height * _SCALE), Image.Resampling.NEAREST)


def of_lines(lines: Sequence[NDArray[Any]], side: int) -> Image.Image:
    """Lines of points [n, 2], x and y in pixels of a digit, on white."""
    width = side * _SCALE * _FINE
    image = Image.new("RGB", (width, width), "white")
    for line in lines:
        # Outlines reach up to half a pixel beyond the image.
        points = [((x + 0.5) * width / (side + 1), (y + 0.5) * width / (side + 1)) for x, y in line.tolist()]
        ImageDraw.Draw(image).line(points, _INK, 2 * _FINE, joint="curve")
    return image.resize((side * _SCALE, side * _SCALE), Image.Resampling.LANCZOS)


def _heading(canvas: Image.Image, title: str, note: str) -> None:
    pen = ImageDraw.Draw(canvas)
    pen.text((_MARGIN, 16), title, _INK, ImageFont.load_default(22))
    pen.text((canvas.width - _MARGIN, 24), note, _FAINT, ImageFont.load_default(14), anchor="ra")


def _picks(indexes: NDArray[np.intp]) -> NDArray[np.intp]:
    """As many as a row holds, spread over all of them, so that every shard has its share."""
    places = np.linspace(0, len(indexes) - 1, min(_COLUMNS, len(indexes)))
    return np.take(indexes, places.astype(int))
