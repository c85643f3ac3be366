"""A dataset for PyTorch by samples."""

from __future__ import annotations

from collections.abc import Sequence
from operator import index as whole
from typing import Any, overload

from torch.utils.data import Dataset as TorchDataset
from torch.utils.data import default_collate

from safetensors_spark.dataset import Dataset
from safetensors_spark.torch._tensors import Batch, samples_of, tensor_columns


class SampleDataset(TorchDataset[Batch]):
    """The samples of a dataset by their numbers, for a DataLoader with any sampler.

        samples = SampleDataset(open_dataset("points"))
        loader = DataLoader(samples, batch_size=64, shuffle=True, collate_fn=collate)

    A sample is a dictionary of tensors, which are the caller's: copies of the file's bytes, with the file's dtypes. To
    go through all samples in an order that shards can be prefetched in, take `BatchDataset`.
    """

    def __init__(self, dataset: Dataset) -> None:
        self._samples = samples_of(dataset, "SampleDataset")
        self._columns = tensor_columns(self._samples)

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
        return _Stacked(self._columns.choose(numbers).take(0, len(numbers)), len(numbers))


def collate(samples: Sequence[Any]) -> Any:
    """A DataLoader's `collate_fn`: gives the batch that the samples of a `SampleDataset` are in already.

    DataLoader's own would copy every byte once more. What other datasets give, it collates as that one does.
    """
    return samples.batch if isinstance(samples, _Stacked) else default_collate(samples)


class _Stacked(Sequence[Batch]):
    """Samples that are rows of a batch."""

    def __init__(self, batch: Batch, count: int) -> None:
        self.batch = batch
        self._count = count

    def __len__(self) -> int:
        return self._count

    @overload
    def __getitem__(self, index: int) -> Batch: ...
    @overload
    def __getitem__(self, index: slice) -> list[Batch]: ...
    def __getitem__(self, index: int | slice) -> Batch | list[Batch]:
        if isinstance(index, slice):
            return [self[number] for number in range(self._count)[index]]
        return {name: tensor[index] for name, tensor in self.batch.items()}
