"""A contact sheet: images in rows by label, each with its label drawn beside it."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from PIL import Image, ImageDraw, ImageFont

_COLUMNS = 14
_SCALE = 7  # screen pixels for one pixel of a digit
_GAP, _MARGIN, _HEAD, _CAPTION = 8, 28, 64, 16
_PAPER, _INK, _LABEL, _FAINT = (250, 249, 246), (24, 36, 72), (214, 84, 38), (120, 124, 136)


def draw(images: NDArray[np.uint8], labels: NDArray[np.uint8], source: str, path: Path) -> None:
    """Draw images (U8 [n, h, w] of 0 to 16) and labels (U8 [n]) to a PNG: a row for each label, evenly picked."""
    rows = [_picks(np.flatnonzero(labels == kind)) for kind in np.unique(labels)]
    down, right = images.shape[1] * _SCALE + _GAP, _CAPTION + images.shape[2] * _SCALE + _GAP
    size = (2 * _MARGIN + _COLUMNS * right - _GAP, _HEAD + _MARGIN + len(rows) * down - _GAP)
    canvas = Image.new("RGB", size, _PAPER)
    for row, picks in enumerate(rows):
        for column, index in enumerate(picks):
            place = (_MARGIN + column * right, _HEAD + row * down)
            _cell(canvas, place, images[index], str(labels[index]))
    _heading(canvas, f"{sum(map(len, rows))} of {len(labels):,} images, {source}; labels in orange")
    canvas.save(path)


def _cell(canvas: Image.Image, place: tuple[int, int], image: NDArray[np.uint8], label: str) -> None:
    ImageDraw.Draw(canvas).text(place, label, _LABEL, ImageFont.load_default(16))
    canvas.paste(_tile(image), (place[0] + _CAPTION, place[1]))


def _heading(canvas: Image.Image, note: str) -> None:
    pen = ImageDraw.Draw(canvas)
    pen.text((_MARGIN, 16), "Digits out of safetensors shards", _INK, ImageFont.load_default(22))
    pen.text((canvas.width - _MARGIN, 24), note, _FAINT, ImageFont.load_default(14), anchor="ra")


def _picks(indexes: NDArray[np.intp]) -> NDArray[np.intp]:
    """As many as a row holds, spread over all of them, so that every shard has its share."""
    places = np.linspace(0, len(indexes) - 1, min(_COLUMNS, len(indexes)))
    return np.take(indexes, places.astype(int))


def _tile(image: NDArray[np.uint8]) -> Image.Image:
    """The image scaled up, ink on white."""
    ink = image.astype(float)[..., None] / 16
    colours = (255 * (1 - ink) + np.array(_INK) * ink).astype(np.uint8)
    height, width = image.shape
    return Image.fromarray(colours).resize((width * _SCALE, height * _SCALE), Image.Resampling.NEAREST)
