"""Deduplication of nearly equal texts."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa  # type: ignore[import-untyped]
from pydantic import Field

from safetensors_spark.factory._operator import Deduplicator, Keys
from safetensors_spark.factory.operators._minhash import NO_WORDS, bands, bands_for, signatures


class MinhashDedup(Deduplicator):
    """Drops texts that share most of their shingles (runs of `ngram` words in lower case) with an earlier text.

    MinHash signatures (Broder 1997) estimate the Jaccard similarity of two texts' shingles, with a standard error of
    sqrt(J (1 - J) / num_perm). Texts are candidates if a band of their signatures is equal; the bands are chosen to
    separate best at `threshold` (Leskovec, Rajaraman and Ullman, Mining of Massive Datasets, chapter 3). Candidates are
    duplicates if the estimate is at least `threshold`. Of the texts with a common band, each is compared with the
    first and with the previous one. Texts connected through others are one group, of which the first text is kept.
    A text without a word is kept.
    """

    type = "minhash_dedup"

    field: str = Field(default="text", description="The text field.")
    threshold: float = Field(default=0.7, gt=0, lt=1, description="The minimum similarity of duplicates.")
    ngram: int = Field(default=5, ge=1, description="The number of words in a shingle.")
    num_perm: int = Field(default=128, ge=2, le=4096, description="The number of hashes in a signature.")
    seed: int = Field(default=0, description="The seed of the permutations.")

    @property
    def reads(self) -> tuple[str, ...]:
        return (self.field,)

    def keys(self, batch: pa.RecordBatch) -> Keys:
        found = signatures(batch.column(self.field).to_pylist(), self.num_perm, self.ngram, self.seed)
        rows = np.flatnonzero((found != NO_WORDS).any(axis=1))
        hashes = np.stack(bands(found[rows], *bands_for(self.threshold, self.num_perm)), axis=1)
        keys = np.stack([hashes.reshape(-1), np.zeros(hashes.size, np.uint64)], axis=1)
        return Keys(np.repeat(rows, hashes.shape[1]), keys, found)

    def are_similar(self, some: Any, others: Any) -> Any:
        return (some == others).mean(axis=1) >= self.threshold
