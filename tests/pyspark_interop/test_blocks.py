"""Where tensors lie: of many keys what is found of each."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from safetensors_spark.dataset._block import Block, Place, TensorSpec, find_in, joined, places_of

SPECS = st.builds(TensorSpec, st.sampled_from(["F32", "U8"]), st.tuples(st.integers(0, 2)))
PLACES = st.tuples(st.integers(0, 3), st.integers(0, 2**63 - 1) | st.integers(0, 9), SPECS)
BLOCKS = st.lists(st.dictionaries(st.text(max_size=3), PLACES, min_size=1, max_size=8), min_size=1, max_size=4)


def _block(places: dict[str, Place]) -> Block:
    columns = places_of(list(places.values()))
    return Block(list(places), columns.starts, columns.which, columns.specs)


@given(BLOCKS, st.data())
def test_many_are_found_as_each_is(blocks: list[dict[str, Place]], data: st.DataObject) -> None:
    made = [_block(block) for block in blocks]
    asked = [(number, key) for number, block in enumerate(blocks) for key in block]
    wanted = data.draw(st.lists(st.sampled_from(asked), min_size=1))
    keys = [key for _, key in wanted]
    found, there = find_in(made, np.array([number for number, _ in wanted]), keys)
    expected = [blocks[number][key] for number, key in wanted]
    assert there.all()
    assert list(found) == expected == [made[number].find(key) for number, key in wanted]
    assert found.files.tolist() == [file for file, _, _ in expected]
    unlike = [number for number, place in enumerate(expected) if place[2] != expected[0][2]]
    assert found.unlike == (unlike[0] if unlike else None) == places_of(expected).unlike
    some, there = find_in(made, np.array([0, 0]), ["none of them", next(iter(blocks[0]))])
    assert (there.tolist(), list(some)) == ([False, True], [next(iter(blocks[0].values()))])


@given(BLOCKS, st.data())
def test_places_are_joined_in_the_order_of_their_numbers(blocks: list[dict[str, Place]], data: st.DataObject) -> None:
    places = [place for block in blocks for place in block.values()]
    numbers = np.array(data.draw(st.permutations(range(len(places)))))
    cuts = sorted(data.draw(st.lists(st.integers(0, len(places)), max_size=3)))
    found = [(places_of([places[number] for number in part.tolist()]), part) for part in np.split(numbers, cuts)]
    assert list(joined(found)) == places
