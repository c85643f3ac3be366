"""Datasets for training with PyTorch, without Spark and Java; each byte is copied once.

    from safetensors_spark.dataset import open_dataset
    from safetensors_spark.torch import BatchDataset

    batches = BatchDataset(open_dataset("points"), batch_size=64, shuffle=True)
    for batch in batches:    # this rank's batches, prepared by threads
        batch["x"]           # a tensor of the file's dtype

`BatchDataset` is iterable, supports ranks and workers, and is resumable; `SampleDataset` is map-style, for any
sampler. Needs the extra `torch`.
"""

from safetensors_spark._extras import require

require("torch", ("torch",))

from safetensors_spark.dataset._ragged import Packed, Padded  # noqa: E402
from safetensors_spark.torch._batches import BatchDataset  # noqa: E402
from safetensors_spark.torch._samples import SampleDataset, collate  # noqa: E402
from safetensors_spark.torch._tensors import Batch  # noqa: E402

__all__ = ["Batch", "BatchDataset", "Packed", "Padded", "SampleDataset", "collate"]
