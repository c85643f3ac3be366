"""Rows of memory, copied by their addresses."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from safetensors_spark.dataset._gather import Rows


@given(
    st.integers(1, 40),
    st.lists(st.tuples(st.integers(0, 3), st.integers(0, 30), st.integers(1, 9)), min_size=1, max_size=5),
    st.data(),
)
def test_rows_are_copied_from_wherever_they_lie(
    width: int, gaps: list[tuple[int, int, int]], data: st.DataObject
) -> None:
    """Pieces of so many rows lie so many rows and bytes apart; what they are copied to lies before one of them."""
    which = data.draw(st.lists(st.integers(0, len(gaps) - 1), min_size=1, max_size=30))
    rows = [data.draw(st.integers(0, gaps[piece][2] - 1)) for piece in which]
    begin = data.draw(st.integers(0, len(rows) - 1))
    before = data.draw(st.integers(0, len(gaps) - 1))
    memory = np.random.default_rng(0).integers(0, 256, 100_000, np.uint8)
    pieces, at = [], 0
    for number, (rows_apart, bytes_apart, count) in enumerate(gaps):
        if number == before:
            target = memory[at : at + (len(rows) - begin) * width].reshape(-1, width)
            at += target.size
        at += rows_apart * width + bytes_apart
        pieces.append(memory[at : at + count * width].reshape(-1, width))
        at += count * width
    expected = [pieces[piece][row].tolist() for piece, row in zip(which, rows, strict=True)][begin:]
    Rows(pieces, np.array(which), np.array(rows) * width, width).copy(begin, len(rows), target)
    assert target.tolist() == expected
