"""YAML: which values it has, and what is told of slips that it would take in silence."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from safetensors_spark.factory import ConfigError
from safetensors_spark.factory._yaml import parsed, written


@given(st.binary(max_size=30))
def test_any_bytes_are_a_value_or_told(content: bytes) -> None:
    told = "x"
    try:
        parsed(content, "x")
    except ConfigError as error:
        told = str(error)
    assert told.startswith("x")


def test_scalars_are_what_they_look_like() -> None:
    content = b"\xef\xbb\xbf[no, yes, on, 1e-3, 010, 0x10, 1_000, 2026-11-23, null, ~, .5, -.inf, true, 1:30, '1']"
    assert parsed(content, "x").value == [
        "no", "yes", "on", 0.001, 10, 16, "1_000", "2026-11-23", None, None, 0.5, float("-inf"), True, "1:30", "1",
    ]  # fmt: skip


def test_numbers_that_nobody_can_write_in_digits_are_told() -> None:
    with pytest.raises(ConfigError, match=r"^x, line 2: 0xfff.* is a number that is too large"):
        parsed(b"a: 1\nb: 0x" + b"f" * 5000, "x")


_text = st.text(st.characters(codec="utf-8"), max_size=12)
_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | _text,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(_text, inner, max_size=3),
    max_leaves=8,
)


@given(_values)
def test_what_is_written_is_read_as_the_same(value: Any) -> None:
    assert parsed(written([value]).encode(), "x").value == [value]
