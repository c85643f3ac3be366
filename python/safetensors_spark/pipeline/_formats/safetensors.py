"""Safetensors datasets and files."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from safetensors_spark.dataset import open_dataset, open_store
from safetensors_spark.pipeline._expression import columns_of
from safetensors_spark.pipeline._formats.reading import Bad
from safetensors_spark.pipeline._formats.selecting import loaded, record_filter
from safetensors_spark.pipeline._operations import Load
from safetensors_spark.pipeline._source import SampleRange

# Samples that are read at a time.
_SAMPLES = 256


def read(path: str, load: Load, bad: Bad) -> Iterator[Any]:
    """Samples, tensors or files."""
    kind = load.options.get("rows", "samples")
    if kind == "samples":
        dataset = open_dataset(path)
        return samples_of(SampleRange(dataset, 0, len(dataset)), load, bad)
    return loaded(_tensors(path) if kind == "tensors" else _file(path), load, bad)


def samples_of(some: SampleRange, load: Load, bad: Bad) -> Iterator[dict[str, Any]]:
    """Samples as records: the columns of the filter first, and the others of those samples alone that it keeps."""
    names = some.dataset.samples.columns if load.columns is None else load.columns
    if load.filter is None:
        dataset = some.dataset.select_columns(names)
        for start, end in _ranges(some):
            yield from _records(dataset[start:end], end - start)
        return
    keeps, used = record_filter(load.filter, bad), columns_of(load.filter)
    # A column that does not exist is null, as in any record without it.
    looked_at = some.dataset.select_columns([name for name in some.dataset.samples.columns if name in used])
    further = some.dataset.select_columns([name for name in names if name not in used])
    for start, end in _ranges(some):
        found = list(_records(looked_at[start:end], end - start))
        kept = [place for place, record in enumerate(found) if keeps(record)]
        if not kept:
            continue
        batch = further[start:end] if len(kept) == len(found) else further.take([start + place for place in kept])
        for place, record in zip(kept, _records(batch, len(kept)), strict=True):
            whole = found[place] | record
            yield {name: whole[name] for name in names}


def _ranges(some: SampleRange) -> Iterator[tuple[int, int]]:
    for start in range(some.start, some.end, _SAMPLES):
        yield start, min(start + _SAMPLES, some.end)


def _records(batch: dict[str, Any], count: int) -> Iterator[dict[str, Any]]:
    if not batch:
        yield from ({} for _ in range(count))
    for row in zip(*batch.values(), strict=True):
        yield dict(zip(batch, row, strict=True))


def _tensors(path: str) -> Iterator[dict[str, Any]]:
    store = open_store(path)
    for key in store:
        yield {"key": key, "tensor": store[key]}


def _file(path: str) -> Iterator[dict[str, Any]]:
    store = open_store(path)
    yield {key: store[key] for key in store}
