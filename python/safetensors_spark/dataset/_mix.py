"""Several datasets as one, by weights; or their blocks, or packs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypeAlias

from safetensors_spark._errors import SafetensorsSparkError, counted
from safetensors_spark._files.manifest import Column
from safetensors_spark.dataset._arguments import whole
from safetensors_spark.dataset._batched import Batched
from safetensors_spark.dataset._blocks import Blocks
from safetensors_spark.dataset._dataset import Dataset
from safetensors_spark.dataset._mixed import Mixed, MixedRows
from safetensors_spark.dataset._pack import Packs
from safetensors_spark.dataset._shares import Shares, Weight

Part: TypeAlias = Dataset | Blocks | Packs


def mix(
    datasets: Sequence[tuple[Part, Weight]],
    *,
    seed: int = 0,
    samples: int | None = None,
    step_samples: int = 1024,
) -> Mix:
    """Several datasets in one stream of samples, by weights.

        mixed = mix([(web, 0.7), (code, 0.3)], seed=1)
        mixed.batches(64, shuffle=True)
        safetensors_spark.torch.BatchDataset(mixed, 64, shuffle=True)
        mix([(web.blocks(2048), 0.7), (code.blocks(2048), 0.3)], seed=1)

    Every `step_samples` samples are divided among the datasets by weight, rounded so that over 1024 steps the shares
    are exact to one sample. Within a step they are in random order. The order depends only on weights, seeds and
    epoch: not on ranks, workers and batch sizes. Each dataset is taken in its own order, and starts again, in another
    order if it is shuffled, when all its samples have been taken. The next epoch of the mixture continues where the
    last one ended. Results of `blocks` and `pack` are mixed by blocks and packs instead of samples.

    Args:
        datasets: pairs of a dataset and its weight, or of its blocks, or its packs, which must have one length. The
            sum of weights need not be 1. A weight may be a function of the step,
            from 0 on, that always returns the same value for a step; to continue from a state it is called once for
            each earlier step.
        seed: decides which dataset each sample is from.
        samples: the number of samples in an epoch of the mixture; by default as many as all datasets have.
        step_samples: the number of samples in a step: `batch_size * world_size` for the step of the training.

    Raises `SafetensorsSparkError` for datasets that do not have the same columns, or no samples, and for blocks and
    packs of different lengths; `TypeError` and `ValueError` for other arguments.
    """
    found, weights = _pairs(datasets)
    for one in found:
        _check_kinds(found[0], one)
        _check_alike(found[0], one)
        if not len(one):
            raise SafetensorsSparkError(f"{one.samples.location} has no {_unit(one)}s: leave it out of the mixture.")
    shares = Shares(weights, whole("step_samples", step_samples, 1, 1 << 31), whole("seed", seed))
    size = None if samples is None else whole("samples", samples, 1, (1 << 62) - 1)
    rows = [one.samples for one in found if not isinstance(one, Dataset)]
    mixed = MixedRows(rows, rows, shares, size) if rows else Mixed([one.samples for one in found], shares, size)
    return Mix(mixed, _unit(found[0]))


class Mix(Batched):
    """Datasets in one stream of samples, blocks or packs, by weights, which `mix` makes."""

    def __init__(self, samples: Mixed, unit: str) -> None:
        """`unit` is what one of them is called."""
        self.samples, self._unit = samples, unit

    def __len__(self) -> int:
        """The number of samples, blocks or packs in an epoch."""
        return self.samples.places

    def __repr__(self) -> str:
        return f"<Mix of {self.samples.location}: {counted(len(self), self._unit)} an epoch>"


def _pairs(datasets: Sequence[tuple[Part, Weight]]) -> tuple[list[Part], list[Weight]]:
    pairs: list[Any] = list(datasets)
    for pair in pairs:
        if not isinstance(pair, tuple | list) or len(pair) != 2 or not isinstance(pair[0], Part):
            raise TypeError(
                f"mix was given {pair!r:.200}, expected a pair of a dataset and its weight, or of its blocks or packs"
            )
    if not pairs:
        raise ValueError("mix was given no datasets, expected pairs of a dataset and its weight")
    return [dataset for dataset, _ in pairs], [weight for _, weight in pairs]


def _unit(one: Part) -> str:
    return "block" if isinstance(one, Blocks) else "pack" if isinstance(one, Packs) else "sample"


def _places(first: Part, other: Part) -> str:
    return f"{first.samples.location} and {other.samples.location}"


def _check_kinds(first: Part, other: Part) -> None:
    """Raises for samples, blocks and packs that have no place in one batch."""
    units = f"{_places(first, other)} cannot be mixed: they are given as {_unit(first)}s and {_unit(other)}s"
    if type(first) is not type(other):
        raise SafetensorsSparkError(f"{units}. Give datasets, or `blocks`, or `pack`, of all.")
    if isinstance(first, Dataset) or isinstance(other, Dataset):
        return
    if first.samples.length != other.samples.length:
        lengths = f"of length {first.samples.length:,} and of length {other.samples.length:,}"
        raise SafetensorsSparkError(f"{units} {lengths}. Give one length to all.")
    if isinstance(first, Packs) and isinstance(other, Packs) and first.samples.padding != other.samples.padding:
        paddings = f"filled up with {first.samples.padding} and with {other.samples.padding}"
        raise SafetensorsSparkError(f"{units} {paddings}. Give one `padding` to all.")


def _check_alike(first: Part, other: Part) -> None:
    """Raises for datasets whose samples have no place in one batch."""
    mine, others = ({column.name: column for column in one.samples._read} for one in (first, other))
    places = _places(first, other)
    for name in {**mine, **others}:
        if name not in mine or name not in others:
            raise SafetensorsSparkError(
                f"{places} cannot be mixed: only one of them is read with the column `{name:.200}`. Leave it out with "
                "`open_dataset(..., columns=...)`."
            )
        if _differ(mine[name], others[name]):
            raise SafetensorsSparkError(
                f"{places} cannot be mixed: their column `{name:.200}` is {_shown(mine[name])} and "
                f"{_shown(others[name])}. Write them alike, or leave it out with `open_dataset(..., columns=...)`."
            )


def _differ(one: Column, other: Column) -> bool:
    known = ((one.dtype, other.dtype), (one.shape, other.shape))
    return one.kind != other.kind or any(None not in pair and pair[0] != pair[1] for pair in known)


def _shown(column: Column) -> str:
    shape = "unknown" if column.shape is None else list(column.shape)
    return f"{column.kind}, of dtype {column.dtype or 'unknown'} and shape {shape}"
