"""Safetensors datasets and files."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from safetensors_spark.dataset import open_dataset, open_store
from safetensors_spark.pipeline._expression import columns_of, of_rows
from safetensors_spark.pipeline._formats.reading import Bad
from safetensors_spark.pipeline._operations import Load
from safetensors_spark.pipeline._source import SampleRange

# Samples that are read at a time.
_SAMPLES = 256


def read(path: str, load: Load, bad: Bad) -> Iterator[Any]:
    """Samples, tensors or files."""
    kind = load.options.get("rows", "samples")
    records = _samples(path, load) if kind == "samples" else _tensors(path) if kind == "tensors" else _file(path)
    if load.filter is not None:
        records = filter(of_rows(load.filter), records)
    if load.columns is None:
        return records
    columns = load.columns
    return ({name: record[name] for name in columns} for record in records)


def _samples(path: str, load: Load) -> Iterator[dict[str, Any]]:
    needed = None
    if load.columns is not None:
        further = sorted(columns_of(load.filter)) if load.filter is not None else []
        needed = list(dict.fromkeys([*load.columns, *further]))
    dataset = open_dataset(path, columns=needed)
    return samples_of(SampleRange(dataset, 0, len(dataset)))


def samples_of(some: SampleRange) -> Iterator[dict[str, Any]]:
    """Samples as records."""
    for start in range(some.start, some.end, _SAMPLES):
        batch = some.dataset[start : min(start + _SAMPLES, some.end)]
        for row in zip(*batch.values(), strict=True):
            yield dict(zip(batch, row, strict=True))


def _tensors(path: str) -> Iterator[dict[str, Any]]:
    store = open_store(path)
    for key in store:
        yield {"key": key, "tensor": store[key]}


def _file(path: str) -> Iterator[dict[str, Any]]:
    store = open_store(path)
    yield {key: store[key] for key in store}
