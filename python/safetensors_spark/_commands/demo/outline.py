"""The outlines of an image: where its ink begins, by marching squares."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

_LEVEL = 5.5  # between two values, so that an outline passes no centre of a pixel

Corner = tuple[int, int]


def strokes_of(image: NDArray[np.uint8]) -> NDArray[np.float32]:
    """The outlines of the ink, as points [n, 3]: x and y in pixels, and 1 where an outline begins, else 0.

    Each outline is closed: it ends where it began.
    """
    ink = np.pad(image.astype(float), 1)
    follow = _segments(ink >= _LEVEL)
    points: list[tuple[float, float, float]] = []
    while follow:
        begin = edge = next(iter(follow))
        points.append((*_crossing(ink, *edge), 1))
        while edge in follow:
            edge = follow.pop(edge)
            points.append((*_crossing(ink, *edge), 0))
        if edge != begin:
            raise AssertionError(f"An outline that begins at {begin} ends at {edge}.")
    return np.array(points, np.float32).reshape(-1, 3)


def _segments(inside: NDArray[np.bool_]) -> dict[tuple[Corner, Corner], tuple[Corner, Corner]]:
    """From edge to edge of the grid, through the squares that the outlines cross.

    An edge is two neighbours, of which one is inside. Around a square, an outline enters where the corners come inside,
    and leaves where they went outside before, so that ink which touches at a corner is one. In the next square, that
    edge is where it enters.
    """
    follow = {}
    counts = inside[:-1, :-1].astype(int) + inside[:-1, 1:] + inside[1:, 1:] + inside[1:, :-1]
    for row, column in np.argwhere((counts > 0) & (counts < 4)).tolist():
        corners = [(row, column), (row, column + 1), (row + 1, column + 1), (row + 1, column)] * 2
        for at in range(4):
            if not inside[corners[at]] and inside[corners[at + 1]]:
                leave = next(end for end in range(at + 3, at, -1) if inside[corners[end]] > inside[corners[end + 1]])
                follow[_edge(corners[at], corners[at + 1])] = _edge(corners[leave], corners[leave + 1])
    return follow


def _edge(one: Corner, other: Corner) -> tuple[Corner, Corner]:
    return (one, other) if one < other else (other, one)


def _crossing(ink: NDArray[np.float64], one: Corner, other: Corner) -> tuple[float, float]:
    """Where on an edge the ink has the level, as x and y; the centre of the first pixel is at 0.5."""
    part = (_LEVEL - ink[one]) / (ink[other] - ink[one])
    y, x = (a + part * (b - a) - 0.5 for a, b in zip(one, other, strict=True))
    return x, y
