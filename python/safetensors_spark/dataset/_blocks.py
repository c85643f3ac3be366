"""A dataset by blocks."""

from __future__ import annotations

from safetensors_spark.dataset._batched import Batched
from safetensors_spark.dataset._block_order import BlockSamples


class Blocks(Batched):
    """The values of all samples, one sample after the other, in blocks of one length, which `Dataset.blocks` makes."""

    def __init__(self, samples: BlockSamples) -> None:
        self.samples: BlockSamples = samples

    def __len__(self) -> int:
        """How many blocks an epoch takes."""
        return self.samples.places

    def __repr__(self) -> str:
        return f"<Blocks of {self.samples.location}: {len(self):,} of length {self.samples.length:,}>"
