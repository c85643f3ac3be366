"""How long samples are, by their offsets alone."""

from __future__ import annotations

import numpy as np

from safetensors_spark._errors import DamagedShardError, SafetensorsSparkError
from safetensors_spark._files.column_kinds import offsets_fault, rows_tensor
from safetensors_spark._files.manifest import Shard
from safetensors_spark._files.numpy_dtypes import Array
from safetensors_spark.dataset._samples import Samples


def length_column(samples: Samples, name: str | None, asker: str) -> str:
    """The column whose lengths count: the one of this name, or the only one that is ragged.

    Raises `SafetensorsSparkError` if there is none.
    """
    partitions = samples.contents.partition_columns
    lengthy = [column.name for column in samples._read if column.has_offsets and column not in partitions]
    ragged = [one for one in lengthy if samples.kinds[one] == "ragged"]
    if name is None and len(ragged) == 1:
        return ragged[0]
    if name is None or name not in lengthy:
        asked = f"`tokens` names `{name:.200}`" if name is not None else f"{asker} counts the values of a ragged column"
        there = ", ".join(lengthy) if lengthy else "none"
        raise SafetensorsSparkError(
            f"{asked}, and the columns of {samples.location} whose samples differ in length are {there}: name one of "
            "them, `tokens=...`."
        )
    return name


def sample_lengths(samples: Samples, shard: Shard, name: str) -> Array:
    """How many values the column has in each sample of the shard. Raises `DamagedShardError` for wrong offsets."""
    header, file = samples._header(shard), f"{samples.location}/{shard.file}"
    column = next(column for column in samples._read if column.name == name)
    tensor, _ = rows_tensor(header, column, file)
    contents = samples._contents(shard)
    begin, end = header.data_start + tensor.begin, header.data_start + tensor.end
    offsets = np.frombuffer(contents.folder.read(shard.file, begin, end), "<i8")
    values, count = header.by_name[name].shape[0], shard.samples or 0
    if len(offsets) <= count:
        raise DamagedShardError(f"{file}: tensor `{tensor.name}` has {len(offsets)} offsets of {count} samples.")
    if fault := offsets_fault(offsets, count, values):
        raise DamagedShardError(f"{file}: tensor `{tensor.name}` {fault}.")
    return np.diff(offsets[: count + 1])
