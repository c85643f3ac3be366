"""How the ranks share an epoch."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Steps:
    """Steps in which each rank takes a batch: of `samples` places that are left of an epoch, the next ones.

    Within a step the batches of the ranks follow each other, so that what a step takes does not depend on the number of
    workers, nor the order in which places are taken on the number of ranks. What is left in the end, if it is not to be
    dropped, is spread evenly over the ranks: as one more step; or where it is less than a sample for each, with the
    last whole step, whose batches then may have one sample more. Only where a whole epoch, or what is left of one when
    it is resumed, is less than a sample for each rank, some samples are taken by several ranks. Where no batch may have
    one sample more, with `exact`, what is left is one more step.
    """

    samples: int
    batch_size: int
    world_size: int
    drop_last: bool
    exact: bool = False

    def __len__(self) -> int:
        return self._whole if self._rest == 0 else self._whole + 1

    def places(self, step: int, rank: int) -> range:
        """The places that the rank takes in the step, counted from the first that is left."""
        begin = step * self._step_size
        if step < self._whole:
            first = begin + rank * self.batch_size
            return range(first, first + self.batch_size)
        if self._rest < self.world_size:
            first = begin + rank % self._rest
            return range(first, first + 1)
        each, more = divmod(self._rest, self.world_size)
        first = begin + rank * each + min(rank, more)
        return range(first, first + each + (rank < more))

    def taken(self, batches: int) -> int:
        """How many places are gone after so many steps."""
        return self.samples if batches >= len(self) else batches * self._step_size

    @property
    def _step_size(self) -> int:
        return self.batch_size * self.world_size

    @property
    def _whole(self) -> int:
        """Steps in which all batches are of `batch_size`."""
        whole, rest = divmod(self.samples, self._step_size)
        joined = whole > 0 and 0 < rest < self.world_size and not self.drop_last and not self.exact
        return whole - joined

    @property
    def _rest(self) -> int:
        """The places of one more step."""
        return 0 if self.drop_last else self.samples - self._whole * self._step_size
