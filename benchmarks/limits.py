"""What is asked of a loader of training data, and two limits: a mapped array, and batches of nothing."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch.utils.data import DataLoader, Dataset, IterableDataset

from benchmarks.samples import Array, Samples

Batch = dict[str, Any]
WORKERS = 2


@dataclass(frozen=True)
class Loading:
    """What is asked of a loader: batches that are the consumer's own, in order or shuffled.

    Attributes:
        samples: `Samples`, or `Rows` of different lengths.
    """

    samples: Any
    folder: Path
    shuffled: bool
    workers: int

    def loader(self, dataset: Any, **options: Any) -> Iterable[Batch]:
        loader: Iterable[Batch] = DataLoader(dataset, num_workers=self.workers, **options)
        return loader


@dataclass(frozen=True)
class Contender:
    """A way to load samples.

    Attributes:
        name: As the table shows it.
        write: Puts the samples into an empty folder; the same for those that load the same files.
        load: Makes batches of them.
        aims: The least that its rate should be, as a ratio to the limit's, by worker processes.
        whole: Whether its batches have all samples.
        is_ours: Whether it is this project; else it is an alternative, or a limit.
    """

    name: str
    write: Callable[[Any, Path], object]
    load: Callable[[Loading], Iterable[Batch]]
    aims: dict[int, float] = field(default_factory=dict, hash=False)
    whole: bool = True
    is_ours: bool = False


def linked(samples: Samples, folder: Path) -> None:
    """For what reads the samples where they are."""
    (folder / "x.npy").hardlink_to(samples.folder / "x.npy")


class Memmap(Dataset[Batch]):
    """Batches copied from the mapped array."""

    def __init__(self, samples: Samples) -> None:
        self.x, self.labels = samples.x(), samples.labels()

    def __len__(self) -> int:
        return len(self.labels)

    def __getitems__(self, indices: Sequence[int]) -> Batch:
        return self.take(np.asarray(indices))

    def take(self, chosen: Array | slice) -> Batch:
        x = np.array(self.x[chosen]) if isinstance(chosen, slice) else self.x[chosen]
        return {"x": torch.from_numpy(x), "label": torch.from_numpy(np.array(self.labels[chosen]))}


class Empty(Memmap):
    """Batches that nothing is copied to."""

    def __init__(self, samples: Samples) -> None:
        self.samples = samples

    def __len__(self) -> int:
        return self.samples.count

    def __getitems__(self, indices: Sequence[int]) -> Batch:
        x = torch.empty(len(indices), *self.samples.shape, dtype=getattr(torch, self.samples.dtype))
        return {"x": x, "label": torch.empty(len(indices), dtype=torch.int64)}


def as_is(batch: Batch) -> Batch:
    return batch


def memmap(loading: Loading) -> Iterable[Batch]:
    dataset, samples = Memmap(loading.samples), loading.samples
    if loading.workers:
        return loading.loader(dataset, batch_size=samples.batch, shuffle=loading.shuffled, collate_fn=as_is)
    begins = range(0, samples.count, samples.batch)
    if loading.shuffled:
        order = np.random.default_rng().permutation(samples.count)
        return Again(lambda: (dataset.take(order[begin : begin + samples.batch]) for begin in begins))
    return Again(lambda: (dataset.take(slice(begin, begin + samples.batch)) for begin in begins))


def empty(loading: Loading) -> Iterable[Batch]:
    dataset = Empty(loading.samples)
    return loading.loader(dataset, batch_size=loading.samples.batch, shuffle=loading.shuffled, collate_fn=as_is)


class Again(IterableDataset[Batch]):
    """Iterates again each time."""

    def __init__(self, batches: Callable[[], Iterator[Batch]]) -> None:
        self.batches = batches

    def __iter__(self) -> Iterator[Batch]:
        return self.batches()
