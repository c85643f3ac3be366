"""A dataset for PyTorch by samples."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from torch.utils.data import Dataset as TorchDataset

from safetensors_spark.dataset import Dataset
from safetensors_spark.torch._columns import Batch, Columns


class SampleDataset(TorchDataset[Batch]):
    """The samples of a dataset by their numbers, for a DataLoader with any sampler.

        loader = DataLoader(SampleDataset(open_dataset("points")), batch_size=64, shuffle=True)

    A sample is a dictionary of tensors, which are the caller's: copies of the file's bytes, with the file's dtypes.
    Those of a batch are asked for at once (`__getitems__`), and lie in one tensor for each column. To go through all
    samples in an order that shards can be prefetched in, take `BatchDataset`.
    """

    def __init__(self, dataset: Dataset) -> None:
        self._length = len(dataset)
        self._columns = Columns(dataset.samples)

    def __len__(self) -> int:
        return self._length

    def __getitem__(self, index: int) -> Batch:
        return self.__getitems__([range(self._length)[index]])[0]

    def __getitems__(self, indices: Sequence[int]) -> list[Batch]:
        if len(indices) == 0:
            return []
        numbers = np.asarray(indices, np.int64)
        if not (numbers.min() >= 0 and numbers.max() < self._length):
            raise IndexError(
                f"samples are numbered 0 to {self._length - 1}, and {numbers.min()} to {numbers.max()} are asked for"
            )
        columns = {name: tensor.unbind(0) for name, tensor in self._columns.take(numbers).items()}
        return [dict(zip(columns, sample, strict=True)) for sample in zip(*columns.values(), strict=True)]
