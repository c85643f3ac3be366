"""What was used last."""

import pytest

from safetensors_spark.dataset._recent import Recent


def kept(recent: Recent[str], keys: str) -> str:
    return "".join(key for key in keys if key in recent)


def test_what_was_used_longest_ago_goes_first() -> None:
    recent: Recent[str] = Recent(3)
    for key in "abc":
        recent.keep(key, key)
    assert recent.get("a") == "a"
    recent.keep("d", "d")
    assert kept(recent, "abcd") == "acd"
    recent.keep("c", "again")
    recent.keep("e", "e")
    assert kept(recent, "abcde") == "cde"
    assert (recent.get("c"), recent.get("a")) == ("again", None)


def test_the_limit_is_of_sizes() -> None:
    recent: Recent[str] = Recent(5, len)
    for key, value in (("a", "aa"), ("b", "bb"), ("a", "a"), ("c", "cc")):
        recent.keep(key, value)
    assert kept(recent, "abc") == "abc"
    recent.keep("d", "d")
    assert kept(recent, "abcd") == "acd"
    # One is kept, whatever it has.
    recent.keep("e", "eeeeeeee")
    assert kept(recent, "abcde") == "e"


@pytest.mark.parametrize(("limit", "expected"), [(5, "abcde"), (3, "ade"), (0, "a")])
def test_it_shrinks_to_what_is_needed(limit: int, expected: str) -> None:
    recent: Recent[str] = Recent(9)
    for key in "abcde":
        recent.keep(key, key)
    recent.shrink(limit, lambda _: 1, {"a"})
    assert kept(recent, "abcde") == expected
