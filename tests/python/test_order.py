"""The order of samples, against a plain model of it; and the permutations that it is made of."""

from collections import Counter
from collections.abc import Callable
from itertools import accumulate, pairwise
from math import factorial

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from safetensors_spark._files.manifest import Shard
from safetensors_spark._files.numpy_dtypes import Array
from safetensors_spark.dataset._order import MOST_SHARDS, Order, Shuffle
from safetensors_spark.dataset._permutation import mixed, permuted, shuffled

SIZES = st.lists(st.tuples(st.integers(1, 30), st.integers(1, 100)), min_size=1, max_size=12)


def shards(sizes: list[tuple[int, int]]) -> list[Shard]:
    """Shards of so many samples and bytes."""
    return [Shard(str(number), length, samples) for number, (samples, length) in enumerate(sizes)]


def samples_of(sizes: list[tuple[int, int]]) -> list[range]:
    """The numbers of the samples of each shard."""
    ends = accumulate(samples for samples, _ in sizes)
    return [range(end - samples, end) for (samples, _), end in zip(sizes, ends, strict=True)]


def windows_of(sizes: list[tuple[int, int]], shuffle: Shuffle, epoch: int) -> list[list[int]]:
    """The numbers of the shards of each window."""
    windows: list[list[int]] = []
    length, before = 0, -1
    for shard in shuffled(len(sizes), mixed(shuffle.seed, epoch)).tolist():
        if length // shuffle.window_bytes != before:
            windows.append([])
        before = length // shuffle.window_bytes
        length += sizes[shard][1]
        windows[-1].append(shard)
    return windows


def model(sizes: list[tuple[int, int]], shuffle: Shuffle, epoch: int) -> list[int]:
    """All of an epoch's samples: whole permutations, in lists."""
    key = mixed(shuffle.seed, epoch)
    numbers = samples_of(sizes)
    order: list[int] = []
    window: list[int] = []
    number, length, count = 0, 0, 0
    for shard in [*shuffled(len(sizes), key).tolist(), None]:
        if window and (shard is None or length // shuffle.window_bytes != number or count % MOST_SHARDS == 0):
            begin = len(order)
            places = permuted(np.arange(len(window)), len(window), mixed(key, begin)).tolist()
            order += [window[place] for place in places]
            window = []
        if shard is not None:
            number = length // shuffle.window_bytes
            count += 1
            length += sizes[shard][1]
            window += numbers[shard]
    return order


@settings(deadline=None)
@given(SIZES, st.integers(1, 200), st.integers(0, 2**40), st.integers(0, 1000), st.randoms())
def test_the_order_is_the_model_s(sizes: list[tuple[int, int]], window: int, seed: int, epoch: int, at: object) -> None:
    shuffle = Shuffle(seed, window)
    expected = model(sizes, shuffle, epoch)
    count = sum(samples for samples, _ in sizes)
    assert sorted(expected) == list(range(count))
    order = Order(shards(sizes), shuffle, epoch)
    assert order.take(np.arange(count)).tolist() == expected
    some = np.flatnonzero([at.random() < 0.3 for _ in range(count)])  # type: ignore[attr-defined]
    assert order.take(some).tolist() == [expected[place] for place in some]
    assert Order(shards(sizes), None, epoch).take(some).tolist() == some.tolist()


def test_a_window_has_no_more_shards_than_can_be_open() -> None:
    sizes = [(2, 1)] * 300
    expected = model(sizes, Shuffle(1, 1000), 0)
    found = Order(shards(sizes), Shuffle(1, 1000), 0).take(np.arange(600)).tolist()
    assert found == expected
    windows = [{number // 2 for number in found[begin : begin + 256]} for begin in (0, 256, 512)]
    assert [len(window) for window in windows] == [128, 128, 44]


@settings(deadline=None)
@given(SIZES, st.integers(1, 200), st.booleans())
def test_the_shards_of_what_comes_next(sizes: list[tuple[int, int]], window: int, shuffled: bool) -> None:
    everything = shards(sizes)
    order = Order(everything, Shuffle(5, window) if shuffled else None, 2)
    count = sum(samples for samples, _ in sizes)
    numbers = order.take(np.arange(count))
    of = [shard for shard, numbers in zip(everything, samples_of(sizes), strict=True) for _ in numbers]
    needed = [of[number] for number in numbers]
    for place in range(count):
        coming = order.shards(place, count)
        assert needed[place] in coming
        assert len({shard.file for shard in coming}) == len(coming)
        if not shuffled:
            assert coming == everything[everything.index(needed[place]) :][:2]


@settings(deadline=None)
@given(SIZES, st.integers(1, 200), st.data())
def test_the_shards_of_a_window_and_the_next_one_and_none_behind_a_stop(
    sizes: list[tuple[int, int]], window: int, data: st.DataObject
) -> None:
    everything, count = shards(sizes), sum(samples for samples, _ in sizes)
    order, numbers = Order(everything, Shuffle(5, window), 2), samples_of(sizes)
    windows = [{everything[shard] for shard in found} for found in windows_of(sizes, Shuffle(5, window), 2)]
    place = data.draw(st.integers(0, count - 1))
    stop = data.draw(st.integers(place + 1, count))
    of = {number: shard for shard, found in zip(everything, numbers, strict=True) for number in found}
    taken = [of[number] for number in order.take(np.arange(count)).tolist()]
    at, last = ([taken[one] in found for found in windows].index(True) for one in (place, stop - 1))
    assert set(order.shards(place, stop)) == set().union(*windows[at : min(at + 2, last + 1)])


def test_an_order_stays_what_it_is() -> None:
    """States that were saved rely on it."""
    order = Order(shards([(3, 10), (5, 10), (4, 10)]), Shuffle(seed=1, window_bytes=15), epoch=2)
    assert order.take(np.arange(12)).tolist() == [1, 2, 5, 6, 4, 0, 3, 7, 11, 9, 8, 10]
    assert permuted(np.arange(3) + 10**12, 10**15, 3).tolist() == [279991978964431, 137931378293787, 299564361254965]


@settings(deadline=None)
@given(st.integers(0, 5000), st.integers(0, 2**64 - 1))
def test_a_permutation_has_each_number_once(size: int, key: int) -> None:
    found = permuted(np.arange(size), size, key)
    assert sorted(found.tolist()) == list(range(size))
    assert permuted(np.arange(size)[::3], size, key).tolist() == found[::3].tolist()


@pytest.mark.parametrize("size", [10**6, 2**31 + 11, 2**61 - 1])
def test_large_ones_are_within_their_range(size: int) -> None:
    numbers = np.unique(np.linspace(0, size - 1, 10_000).astype(np.int64))
    found = permuted(numbers, size, 7)
    assert found.min() >= 0
    assert found.max() < size
    assert len(np.unique(found)) == len(numbers)
    # All parts of the range are met: of 100 equal ones each about a hundred times.
    met = np.bincount((found // (size // 100 + 1)).astype(int), minlength=100)
    assert 50 < met.min() < met.max() < 150


@pytest.mark.parametrize("shuffle", [lambda size, key: permuted(np.arange(size), size, key), shuffled])
def test_all_orders_of_four_are_as_likely(shuffle: Callable[[int, int], Array]) -> None:
    times = 3_000
    counts = Counter(tuple(shuffle(4, mixed(11, key)).tolist()) for key in range(times))
    assert chi_square([*counts.values()], factorial(4), times) < 60  # of 23 degrees: by chance once in 30,000


def test_neighbours_are_as_far_apart_as_by_chance() -> None:
    counts: Counter[int] = Counter()
    for key in range(1000):
        found = permuted(np.arange(100), 100, mixed(13, key)).tolist()
        counts.update((right - left) % 100 for left, right in pairwise(found))
    assert chi_square([*counts.values()], 99, 99_000) < 170  # of 98 degrees: by chance once in 100,000


def chi_square(counts: list[int], kinds: int, times: int) -> float:
    expected = times / kinds
    return sum((count - expected) ** 2 for count in counts) / expected + (kinds - len(counts)) * expected
