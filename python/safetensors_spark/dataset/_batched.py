"""What is taken by batches."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

from numpy.typing import DTypeLike

from safetensors_spark.dataset._arrays import Batch, array_columns, array_dtype, finish_arrays, times
from safetensors_spark.dataset._batches import Batches, Finish, casts, plan
from safetensors_spark.dataset._forms import Form, checked_forms
from safetensors_spark.dataset._max_tokens import by_tokens
from safetensors_spark.dataset._samples import Samples


class Batched:
    """Samples that are taken by batches.

    Attributes:
        samples: where they lie, for other readers of them, such as `safetensors_spark.torch`.
    """

    samples: Samples

    def batches(
        self,
        batch_size: int | None = None,
        *,
        max_tokens: int | None = None,
        tokens: str | None = None,
        shuffle: bool = False,
        seed: int = 0,
        drop_last: bool = False,
        rank: int = 0,
        world_size: int = 1,
        nodes: int = 1,
        window_bytes: int = 1 << 30,
        threads: int = 2,
        dtype: Mapping[str, DTypeLike] | DTypeLike | None = None,
        ragged: Mapping[str, Form] | Form = "nested",
        transform: Callable[[Batch], Any] | None = None,
    ) -> Batches:
        """One rank's share of the samples, in batches. An iteration is an epoch.

        A batch is a dictionary of arrays, by column; of lists of strings or bytes for text and binary columns. They are
        copies, which the caller may change.

        Args:
            batch_size: how many samples a batch of each rank has; not with `max_tokens`.
            max_tokens: how many values of a ragged column a batch of each rank has at most, instead: as many samples as
                have so many. Which samples are a batch is the same in all epochs, whose order is that of batches. To
                find them, the offsets of all shards are read now. Where the last batches are fewer than ranks, these
                share their samples: each takes a part of one batch.
            tokens: the column that `max_tokens` counts, where several are ragged.
            shuffle: take samples in a random order: shards in a random order, and the samples of those shards that are
                read together in a random order.
            seed: decides the order, together with the epoch. It must be the same on all ranks.
            drop_last: leave out the samples at the end of an epoch that do not fill a batch on every rank.
            rank, world_size: which of how many processes this one is. All have the same number of batches.
            nodes: if more than one, each of so many nodes takes only samples of its own part of an epoch, and of a
                remote dataset downloads only the shards of that part. Node 0 has the first `world_size / nodes` ranks.
            window_bytes: shuffle the samples of so many bytes of shards together, but of no more than 128 shards.
            threads: how many threads make batches while the caller is busy; 0 for none.
            dtype: cast columns of floating-point numbers to this dtype; or a dictionary with a dtype for each column
                to cast.
            ragged: the form of columns whose samples differ in length: `nested` for `Ragged`, `packed` for `Packed`,
                `padded` for `Padded`; or a dictionary with a form for some columns, and `nested` for others.
            transform: called with each batch, in those threads; what it returns takes the batch's place. A program that
                ends, as by Ctrl-C, waits for the calls that are running.

        Raises `TypeError` for an argument of another kind, `ValueError` for a number that is out of range, and
        `SafetensorsSparkError` for a column that does not exist, or a sample of more than `max_tokens`. Warns
        where there are fewer samples than ranks: some of them are then taken by several ranks.
        """
        samples, size = by_tokens(self.samples, batch_size, max_tokens, tokens, shuffle, seed, window_bytes)
        dtypes = casts(dtype, samples, array_dtype)
        return Batches(
            array_columns(samples),
            plan(samples, size, shuffle, seed, drop_last, window_bytes, rank, world_size, nodes),
            rank,
            threads,
            Finish(partial(finish_arrays, times(samples.kinds), checked_forms(ragged, samples), dtypes), transform),
        )
