"""MinHash signatures, judged by exact Jaccard similarities and by the S-curve."""

from __future__ import annotations

import hashlib
import math
import os
import random
import re
import subprocess
import sys

import numpy as np
import pytest

from safetensors_spark.factory.operators._minhash import (
    NO_WORDS,
    bands,
    bands_for,
    candidate_probability,
    signatures,
)

TEXTS = [
    "",
    None,
    "   ...",
    "one",
    "Two words",
    "a b c d e",
    "naïve 数据 data 😀 x_1 " * 9,
    "the cat " * 3000,
    "\ud800 x",
]
VOCABULARY = [f"w{number}" for number in range(20_000)]

GOLDEN = [[2736496, 948880274, 982949739, 264585043], [2880417775, 1371683421, 2050291513, 3990568870]]
GOLDEN_DIGEST = "4ae92913760334fd"
GOLDEN_BANDS = [[17773106142039695831, 4943737426118091903], [8347096483495500409, 13631100278929234234]]


def shingles(text: str, ngram: int) -> set[tuple[str, ...]]:
    words = re.findall(r"\w+", text.lower())
    return {tuple(words[at : at + ngram]) for at in range(max(1, len(words) - ngram + 1))}


def jaccard(one: str, other: str, ngram: int) -> float:
    first, second = shingles(one, ngram), shingles(other, ngram)
    return len(first & second) / len(first | second)


def pair(numbers: random.Random, share: float, length: int = 300) -> tuple[str, str]:
    """Two texts, of which the first words, as many as `share` says, are the same."""
    common = numbers.choices(VOCABULARY, k=round(share * length))
    rest = length - len(common)
    return tuple(" ".join(common + numbers.choices(VOCABULARY, k=rest)) for _ in range(2))  # type: ignore[return-value]


@pytest.mark.parametrize("ngram", [1, 3, 5])
@pytest.mark.parametrize("num_perm", [64, 128, 256])
def test_estimates_are_within_the_theoretical_error(ngram: int, num_perm: int) -> None:
    numbers = random.Random(7)
    pairs = [pair(numbers, numbers.random(), numbers.randrange(20, 400)) for _ in range(500)]
    first, second = (signatures([one[side] for one in pairs], num_perm, ngram, seed=3) for side in (0, 1))
    estimates = (first == second).mean(axis=1)
    exact = np.array([jaccard(one, other, ngram) for one, other in pairs])
    errors = (estimates - exact) / np.sqrt(np.maximum(exact * (1 - exact), 1e-9) / num_perm)
    uncertain = (exact > 0.05) & (exact < 0.95)
    assert uncertain.sum() > 300
    # Standard scores: their mean is 0 and their variance 1, by as much as so many pairs allow.
    assert abs(errors[uncertain].mean()) < 4 / math.sqrt(uncertain.sum())
    assert 0.75 < errors[uncertain].var() < 1.3
    assert np.abs(errors[uncertain]).max() < 5


def test_texts_of_the_same_shingles_have_one_signature() -> None:
    one, other = signatures(["The cat, the CAT -- the cat?", "the cat the cat the cat the cat"], ngram=2)
    np.testing.assert_array_equal(one, other)


def test_other_orders_and_other_seeds_have_other_signatures() -> None:
    first, second = signatures(["a b c d e f g h", "h g f e d c b a"], num_perm=64)
    assert (first == second).mean() < 0.1
    (other,) = signatures(["a b c d e f g h"], num_perm=64, seed=1)
    assert (first == other).mean() < 0.1


def test_texts_without_words_are_told_apart() -> None:
    found = signatures([*TEXTS], num_perm=16)
    assert found.dtype == np.uint32
    assert (found == NO_WORDS).all(axis=1).tolist() == [True, True, True, *[False] * (len(TEXTS) - 3)]
    assert signatures([], num_perm=16).shape == (0, 16)


def test_a_signature_does_not_depend_on_other_texts() -> None:
    numbers = random.Random(1)
    texts = [*TEXTS, *(pair(numbers, 0.5)[0] for _ in range(700))]
    whole = signatures(texts, num_perm=32)
    np.testing.assert_array_equal(whole, np.concatenate([signatures([one], num_perm=32) for one in texts]))


def test_a_short_text_is_one_shingle() -> None:
    found = signatures(["one two", "one two", "two one"], num_perm=32, ngram=5)
    np.testing.assert_array_equal(found[0], found[1])
    assert (found[0] != found[2]).all()


def test_a_long_text_takes_its_parts() -> None:
    words = random.Random(2).choices(VOCABULARY, k=100_000)
    (found,) = signatures([" ".join(words)], num_perm=32, ngram=1)
    np.testing.assert_array_equal(found, signatures(words, num_perm=32, ngram=1).min(axis=0))


def test_signatures_never_change() -> None:
    """Signatures that are kept are compared with those of later versions: these numbers must stay."""
    found = signatures(["the quick brown fox jumps over the lazy dog", "naïve 数据"], num_perm=4, ngram=3, seed=1)
    assert found.tolist() == GOLDEN
    digest = hashlib.sha256(signatures(TEXTS, num_perm=128).astype("<u4").tobytes()).hexdigest()
    assert digest[:16] == GOLDEN_DIGEST
    assert [one.tolist() for one in bands(found, 2, 2)] == GOLDEN_BANDS


def test_signatures_are_the_same_in_each_process() -> None:
    script = (
        "import hashlib\nfrom factory.test_minhash import TEXTS, bands, signatures\n"
        "found = signatures(TEXTS)\n"
        "print(hashlib.sha256(found.tobytes() + b''.join(one.tobytes() for one in bands(found, 16, 8))).hexdigest())"
    )
    said = set()
    for seed in ("0", "1"):
        environment = os.environ | {"PYTHONHASHSEED": seed, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
        run = subprocess.run(
            [sys.executable, "-c", script], env=environment, capture_output=True, text=True, check=True
        )
        said.add(run.stdout)
    assert len(said) == 1


@pytest.mark.parametrize("shape", [(14, 8), (25, 5), (9, 13)])
def test_near_duplicates_are_found_as_the_s_curve_says(shape: tuple[int, int]) -> None:
    numbers = random.Random(11)
    for share in (0.6, 0.8, 0.9, 0.97):
        pairs = [pair(numbers, share) for _ in range(400)]
        sides = [bands(signatures([one[side] for one in pairs], 128, ngram=5), *shape) for side in (0, 1)]
        equal = np.any([one == other for one, other in zip(*sides, strict=True)], axis=0)
        expected = np.array([candidate_probability(jaccard(*one, ngram=5), *shape) for one in pairs])
        error = math.sqrt((expected * (1 - expected)).sum()) / len(pairs)
        assert abs(equal.mean() - expected.mean()) < 4 * error + 0.005, share


def test_bands_of_other_numbers_have_other_hashes() -> None:
    found = bands(np.zeros((1, 128), np.uint32), 16, 8)
    assert len(found) == 16
    assert len({int(one[0]) for one in found}) == 16
    assert all(one.dtype == np.uint64 for one in found)


def test_bands_of_no_texts_are_empty() -> None:
    assert [len(one) for one in bands(signatures([]), 4, 32)] == [0] * 4


@pytest.mark.parametrize("threshold", [0.3, 0.5, 0.7, 0.8, 0.9])
def test_bands_for_a_threshold_rise_there(threshold: float) -> None:
    count, rows = bands_for(threshold)
    assert count * rows <= 128
    assert candidate_probability(threshold - 0.2, count, rows) < 0.25
    assert candidate_probability(min(0.99, threshold + 0.15), count, rows) > 0.75
    assert abs((1 / count) ** (1 / rows) - threshold) < 0.1


def test_wrong_parameters_are_named() -> None:
    with pytest.raises(ValueError, match="num_perm is 0 and ngram is 5"):
        signatures(["a"], num_perm=0)
    with pytest.raises(ValueError, match="20 bands of 7 do not fit in signatures of 128"):
        bands(signatures(["a"]), 20, 7)
    with pytest.raises(ValueError, match=r"threshold is 1\.0"):
        bands_for(1.0)
