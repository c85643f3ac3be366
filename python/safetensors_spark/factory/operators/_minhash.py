"""MinHash signatures of texts, and the bands by which near-duplicates are found (Broder, On the Resemblance and
Containment of Documents, 1997).

The share of equal numbers in two signatures estimates the Jaccard similarity of the texts' shingles, which are runs of
`ngram` words. This module does not use a library: signatures are kept between runs, so the same text must
have the same signature with each version, machine and process. Python's Unicode version defines what a letter is.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import lru_cache
from hashlib import blake2b

import numpy as np
from numpy.typing import NDArray

from safetensors_spark.factory.operators._remembered import Remembered

Hashes = NDArray[np.uint64]
Signatures = NDArray[np.uint32]

# In each place of the signature of a text without words.
NO_WORDS = 2**32 - 1

_WORD = re.compile(r"\w+")
_SHINGLES_AT_ONCE = 1024


def signatures(texts: Sequence[str | None], num_perm: int = 128, ngram: int = 5, seed: int = 0) -> Signatures:
    """The signatures of texts: uint32, of shape texts x num_perm.

    Words are runs of letters, digits and `_`, in lower case. A text with fewer words than `ngram` is one shingle. A
    text without words, or None, has `NO_WORDS` in each place.

    Args:
        num_perm: how many numbers a signature has. An estimate of J has the standard error sqrt(J (1 - J) / num_perm).
        ngram: how many words a shingle has.
        seed: signatures of different seeds are not comparable.
    """
    if num_perm < 1 or ngram < 1:
        raise ValueError(f"num_perm is {num_perm} and ngram is {ngram}, expected 1 or more")
    found = np.full((len(texts), num_perm), NO_WORDS, np.uint32)
    factors, addends = _permutations(num_perm, seed)
    for row, text in enumerate(texts):
        if text and len(words := _hashes_of(text)):
            found[row] = _smallest(_shingles(words, ngram), factors, addends)
    return found


def bands(signature: Signatures, bands: int, rows: int) -> list[Hashes]:
    """For each band a hash of each text. Texts with a common hash are candidates: one of their bands is equal.

    Args:
        signature: of shape texts x num_perm; the first `bands * rows` places are used.
        bands: how many bands there are.
        rows: how many places of a signature a band has.
    """
    if bands < 1 or rows < 1 or bands * rows > signature.shape[1]:
        raise ValueError(f"{bands} bands of {rows} do not fit in signatures of {signature.shape[1]}")
    places = signature.astype(np.uint64)
    found = []
    for band in range(bands):
        # The number of the band is part of its hash, so that hashes of all bands may stand in one table.
        hashes = np.full(len(signature), band, np.uint64)
        for place in range(band * rows, (band + 1) * rows):
            hashes = _mixed(hashes ^ places[:, place])
        found.append(hashes)
    return found


def candidate_probability(similarity: float, bands: int, rows: int) -> float:
    """The probability that two texts of this Jaccard similarity have a common band: 1 - (1 - s^rows)^bands."""
    return float(1 - (1 - similarity**rows) ** bands)


@lru_cache
def bands_for(threshold: float, num_perm: int = 128) -> tuple[int, int]:
    """The number of bands, and of rows in each, that best find pairs above a Jaccard similarity.

    They minimise, among all that fit in `num_perm`, the sum of errors if all similarities are equally common: the
    probability of being a candidate below the threshold, and of not being one above it.
    """
    if not 0 < threshold < 1:
        raise ValueError(f"threshold is {threshold}, expected a number between 0 and 1")
    below = np.linspace(0, threshold, 200)
    above = np.linspace(threshold, 1, 200)
    fitting = [(count, rows) for rows in range(1, num_perm + 1) for count in range(1, num_perm // rows + 1)]

    def error(shape: tuple[int, int]) -> float:
        count, rows = shape
        wrong = 1 - (1 - below**rows) ** count
        missed = (1 - above**rows) ** count
        return float(wrong.mean() * threshold + missed.mean() * (1 - threshold))

    return min(fitting, key=error)


def _hashes_of(text: str) -> Hashes:
    """A hash of each word."""
    # No word crosses white space.
    return np.frombuffer(b"".join(map(_packed.__getitem__, text.lower().split())), np.uint64)


def _hashes_in(part: str) -> bytes:
    """A hash of each word in a text between blanks, 8 bytes each."""
    words = (word.encode("utf-8", "surrogatepass") for word in _WORD.findall(part))
    return np.array([_number(blake2b(word, digest_size=8).digest()) for word in words], np.uint64).tobytes()


def _number(digest: bytes) -> int:
    return int.from_bytes(digest, "little")


_packed = Remembered(_hashes_in)


def _shingles(words: Hashes, ngram: int) -> NDArray[np.uint32]:
    """A hash of each run of words, by a polynomial of them."""
    length = min(ngram, len(words))
    count = len(words) - length + 1
    hashes = np.zeros(count, np.uint64)
    for place in range(length):
        hashes *= _ODD
        hashes += words[place : place + count]
    return (_mixed(hashes) >> np.uint64(32)).astype(np.uint32)


def _smallest(shingles: NDArray[np.uint32], factors: Signatures, addends: Signatures) -> Signatures:
    """The smallest number of each permutation, computed in parts that fit the processor's cache."""
    found = np.full(len(factors), NO_WORDS, np.uint32)
    for first in range(0, len(shingles), _SHINGLES_AT_ONCE):
        permuted = factors[:, None] * shingles[first : first + _SHINGLES_AT_ONCE]
        permuted += addends[:, None]
        np.minimum(found, permuted.min(axis=1), out=found)
    return found


@lru_cache
def _permutations(num_perm: int, seed: int) -> tuple[Signatures, Signatures]:
    """Permutations x -> factor * x + addend of the 32-bit numbers: the factor must be odd."""
    counter = np.arange(2 * num_perm, dtype=np.uint64)
    start = _number(blake2b(str(seed).encode(), digest_size=8).digest())
    numbers = (_mixed(counter * _ODD + np.uint64(start)) >> np.uint64(32)).astype(np.uint32)
    return numbers[:num_perm] | np.uint32(1), numbers[num_perm:]


# Of SplitMix64 (Steele, Lea and Flood, Fast Splittable Pseudorandom Number Generators, 2014).
_ODD = np.uint64(0x9E3779B97F4A7C15)
_MIX = ((30, np.uint64(0xBF58476D1CE4E5B9)), (27, np.uint64(0x94D049BB133111EB)))


def _mixed(numbers: Hashes) -> Hashes:
    """A permutation of the 64-bit numbers, each bit of which depends on all bits."""
    for shift, factor in _MIX:
        numbers = (numbers ^ (numbers >> np.uint64(shift))) * factor
    return numbers ^ (numbers >> np.uint64(31))
