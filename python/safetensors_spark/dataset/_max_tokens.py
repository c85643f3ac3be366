"""Batches of so many tokens at most."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from heapq import heapify, heapreplace

import numpy as np

from safetensors_spark._files.numpy_dtypes import Array
from safetensors_spark.dataset._arguments import whole
from safetensors_spark.dataset._groups import GroupedSamples, Groups, TooLongError
from safetensors_spark.dataset._lengths import length_column
from safetensors_spark.dataset._permutation import mixed, permuted
from safetensors_spark.dataset._samples import Samples


@dataclass(frozen=True)
class MaxTokens:
    """Samples that follow each other, as many as have so many values; in a random order if there is a seed."""

    most: int
    seed: int | None

    def __call__(self, lengths: Array, window: int) -> Groups:
        samples = np.arange(len(lengths))
        if self.seed is not None:
            samples = permuted(samples, len(samples), mixed(self.seed, window))
        longest = int(lengths.argmax())
        if lengths[longest] > self.most:
            raise TooLongError(
                longest, f"{lengths[longest]:,} values", f"expected {self.most:,} at most (`max_tokens`)"
            )
        ends = np.cumsum(lengths[samples])
        bounds = [0]
        taken = 0
        while bounds[-1] < len(samples):
            bounds.append(int(ends.searchsorted(taken + self.most, side="right")))
            taken = int(ends[bounds[-1] - 1])
        return Groups(samples, np.array(bounds))


class TokenBatches(GroupedSamples):
    """Samples in groups, each of which is a batch."""

    _exact = True

    def _batch(self, numbers: Array, rank: int = 0, ranks: int = 1) -> tuple[int, Array]:
        samples = [self.members(group)[0] for group in numbers.tolist()]
        which, begin, end = share([len(one) for one in samples], rank, ranks)
        return which, samples[which][begin:end]

    def _batches(self, size: int) -> str:
        return f"batches by tokens of `{self._column}`"


def share(counts: Sequence[int], rank: int, ranks: int) -> tuple[int, int, int]:
    """Of batches of so many samples, no more of them than ranks: the one that the rank has a part of, that part's first
    sample, and the one behind its last.

    A sample is in the parts of several ranks only where there are fewer samples than ranks.
    """
    total = sum(counts)
    rank, ranks = rank % total, min(ranks, total)
    parts = [1] * len(counts)
    sizes: list[tuple[float, int]] = [(-count, batch) for batch, count in enumerate(counts)]
    heapify(sizes)
    for _ in range(ranks - len(counts)):
        batch = sizes[0][1]
        parts[batch] += 1
        heapreplace(sizes, (-counts[batch] / parts[batch], batch))
    ends = np.cumsum(parts)
    batch = int(ends.searchsorted(rank, side="right"))
    part = rank - int(ends[batch]) + parts[batch]
    return batch, counts[batch] * part // parts[batch], counts[batch] * (part + 1) // parts[batch]


def by_tokens(
    samples: Samples,
    batch_size: int | None,
    max_tokens: int | None,
    tokens: str | None,
    shuffle: bool,
    seed: int,
    window_bytes: int,
) -> tuple[Samples, int]:
    """The samples, or groups of them, and how many of them are a batch. Raises for wrong arguments."""
    if (batch_size is None) == (max_tokens is None):
        raise TypeError("batches take either `batch_size` or `max_tokens`")
    if batch_size is not None:
        if tokens is not None:
            raise TypeError("`tokens` names the column that `max_tokens` counts, and there is no `max_tokens`")
        return samples, batch_size
    if type(samples)._order is not Samples._order:
        raise TypeError("`max_tokens` is for samples in their own order: give a `batch_size` for mixtures and blocks")
    grouping = MaxTokens(whole("max_tokens", max_tokens, 1), whole("seed", seed) if shuffle else None)
    column = length_column(samples, tokens, "`max_tokens`")
    return TokenBatches(samples, column, grouping, whole("window_bytes", window_bytes, 1)), 1
