"""Buckets of keys, by the values that Spark's `pmod(hash(key), n)` gives."""

import pytest

from safetensors_spark._files.key_buckets import buckets_of


@pytest.mark.parametrize(("key", "bucket"), [("", 372), ("a", 170), ("abc", 556), ("k12345678", 802)])
def test_buckets_are_those_of_spark(key: str, bucket: int) -> None:
    assert buckets_of([key], 1000) == {bucket}


def test_keys_of_several_lengths() -> None:
    assert buckets_of(["abc", "k12345678", "", "a"], 1000) == {372, 170, 556, 802}
    assert buckets_of([], 4) == set()
    assert buckets_of(["é中😀"] * 3, 1) == {0}
