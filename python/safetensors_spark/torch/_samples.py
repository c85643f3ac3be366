"""A dataset for PyTorch by samples."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from operator import index as whole
from typing import Any, overload

from torch.utils.data import Dataset as TorchDataset
from torch.utils.data import default_collate

from safetensors_spark.dataset import Blocks, Dataset, Mix, Packs
from safetensors_spark.dataset._forms import Form, checked_forms
from safetensors_spark.torch._tensors import Batch, finish_tensors, samples_of, tensor_columns


class SampleDataset(TorchDataset[Batch]):
    """The samples of a dataset by their numbers, for a DataLoader with any sampler.

        samples = SampleDataset(open_dataset("points"))
        loader = DataLoader(samples, batch_size=64, shuffle=True, collate_fn=collate)

    A sample is a dictionary of tensors: copies of the file's bytes, of the file's dtypes, that the caller may change;
    text and binary columns are strings or bytes. To iterate over all samples in an order that allows prefetching of
    shards, use `BatchDataset`.
    """

    def __init__(self, dataset: Dataset, *, ragged: Mapping[str, Form] | Form = "nested") -> None:
        """`ragged` is the form that `collate` gives to columns whose samples differ in length: see `BatchDataset`."""
        if isinstance(dataset, Mix | Blocks | Packs):
            raise TypeError(f"a {type(dataset).__name__} has no samples by number: take a BatchDataset of it")
        self._samples = samples_of(dataset, "SampleDataset")
        self._columns = tensor_columns(self._samples)
        self._finish = partial(finish_tensors, checked_forms(ragged, self._samples), None)

    def __len__(self) -> int:
        return len(self._samples)

    def __getitem__(self, index: int) -> Batch:
        try:
            number = whole(index)
        except TypeError:
            raise TypeError(
                f"a SampleDataset is indexed by the number of a sample, not by {type(index).__name__}: of several "
                "samples take a batch, `collate(samples.__getitems__([1, 2]))`."
            ) from None
        return self.__getitems__([self._samples.number(number)])[0]

    def __getitems__(self, indices: Sequence[int]) -> Sequence[Batch]:
        """The samples of these numbers, which share one tensor for each column: see `collate`."""
        numbers = self._samples.numbers(indices)
        if not len(numbers):
            return []
        return _Stacked(self._columns.choose(numbers).take(0, len(numbers)), len(numbers), self._finish)


def collate(samples: Sequence[Any]) -> Any:
    """A DataLoader's `collate_fn`: returns the batch that already contains the samples of a `SampleDataset`.

    DataLoader's own function would copy every byte once more. Samples of other datasets are collated by that function.
    """
    return samples.batch() if isinstance(samples, _Stacked) else default_collate(samples)


class _Stacked(Sequence[Batch]):
    """Samples that are rows of a batch."""

    def __init__(self, rows: Batch, count: int, finish: Callable[[Batch], Batch]) -> None:
        """`rows` has columns of a row for each sample, of which `finish` makes the batch."""
        self._rows, self._count, self._finish = rows, count, finish

    def batch(self) -> Batch:
        return self._finish(self._rows)

    def __len__(self) -> int:
        return self._count

    @overload
    def __getitem__(self, index: int) -> Batch: ...
    @overload
    def __getitem__(self, index: slice) -> list[Batch]: ...
    def __getitem__(self, index: int | slice) -> Batch | list[Batch]:
        if isinstance(index, slice):
            return [self[number] for number in range(self._count)[index]]
        return {name: rows[index] for name, rows in self._rows.items()}
