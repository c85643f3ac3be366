"""How each library writes samples and loads batches of them, as its documentation recommends for speed."""

import warnings
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

import datasets
import litdata
import numpy as np
import pyarrow as pa  # type: ignore[import-untyped]
import pyarrow.parquet as pq  # type: ignore[import-untyped]
import streaming
import torch
import webdataset
from safetensors.numpy import save_file
from torch.utils.data import (
    BatchSampler,
    IterableDataset,
    RandomSampler,
    SequentialSampler,
    default_collate,
    get_worker_info,
)

from benchmarks.limits import WORKERS, Batch, Contender, Loading, empty, linked, memmap
from benchmarks.samples import Array, Samples
from safetensors_spark.dataset import open_dataset
from safetensors_spark.torch import BatchDataset, SampleDataset
from safetensors_spark.torch import collate as as_one

# Of samples that are views of read files, by `default_collate`, which copies them.
warnings.filterwarnings("ignore", "The given NumPy array is not writable")


def collate(batch: Sequence[dict[str, Any]]) -> Batch:
    """For those that give samples one by one."""
    if get_worker_info():
        # Straight to the memory that worker and consumer share.
        return {name: default_collate([sample[name] for sample in batch]) for name in ("x", "label")}
    # By NumPy: PyTorch's own threads wait for each other, milliseconds where the machine does anything else.
    x = np.stack([np.asarray(sample["x"]) for sample in batch])
    return {"x": torch.from_numpy(x), "label": torch.tensor([int(sample["label"]) for sample in batch])}


# --- this project ---


def write_safetensors(samples: Samples, folder: Path) -> None:
    for number, x, label in samples.pieces(samples.shard):
        save_file({"x": np.array(x), "label": np.array(label)}, folder / f"{number:05d}.safetensors")


def load_samples(loading: Loading) -> Iterable[Batch]:
    dataset = SampleDataset(open_dataset(loading.folder))
    return loading.loader(dataset, batch_size=loading.samples.batch, shuffle=loading.shuffled, collate_fn=as_one)


def load_batches(loading: Loading) -> Iterable[Batch]:
    batches: Iterable[Batch] = BatchDataset(
        open_dataset(loading.folder), loading.samples.batch, shuffle=loading.shuffled
    )
    return loading.loader(batches, batch_size=None) if loading.workers else batches


# --- MosaicML Streaming ---


def write_streaming(samples: Samples, folder: Path) -> None:
    kind = f"ndarray:{samples.dtype}:{','.join(map(str, samples.shape))}"
    with streaming.MDSWriter(out=str(folder), columns={"x": kind, "label": "int64"}, size_limit="64mb") as out:
        for x, label in zip(samples.x(), samples.labels(), strict=True):
            out.write({"x": x, "label": label})


def load_streaming(loading: Loading) -> Iterable[Batch]:
    # A process that was ended leaves shared memory behind, which the next one would take for its own.
    streaming.base.util.clean_stale_shared_memory()
    batch = loading.samples.batch
    dataset = streaming.StreamingDataset(local=str(loading.folder), shuffle=loading.shuffled, batch_size=batch)
    return loading.loader(dataset, batch_size=batch, collate_fn=collate)


# --- WebDataset ---


def write_webdataset(samples: Samples, folder: Path) -> None:
    with webdataset.ShardWriter(str(folder / "%05d.tar"), maxcount=samples.shard, verbose=0) as out:
        for number, (x, label) in enumerate(zip(samples.x(), samples.labels(), strict=True)):
            out.write({"__key__": f"{number:09d}", "x.bin": x.tobytes(), "label.cls": int(label)})


def load_webdataset(loading: Loading) -> Iterable[Batch]:
    samples = loading.samples

    def decoded(parts: dict[str, Any]) -> dict[str, Any]:
        x = np.frombuffer(parts["x.bin"], samples.dtype).reshape(samples.shape)
        return {"x": x, "label": int(parts["label.cls"])}

    shards = sorted(map(str, loading.folder.glob("*.tar")))
    shuffled = len(shards) if loading.shuffled else False
    dataset = webdataset.WebDataset(shards, shardshuffle=shuffled, empty_check=False)
    if loading.shuffled:
        dataset = dataset.shuffle(1000)
    batches = dataset.map(decoded).batched(samples.batch, collation_fn=collate)
    loader: Iterable[Batch] = webdataset.WebLoader(batches, batch_size=None, num_workers=loading.workers)
    return loader


# --- LitData ---


def write_litdata(samples: Samples, folder: Path) -> None:
    x, labels = samples.x(), samples.labels()

    def sample(index: int) -> dict[str, Any]:
        return {"x": torch.from_numpy(np.array(x[index])), "label": int(labels[index])}

    indices = list(range(samples.count))
    litdata.optimize(
        sample, indices, str(folder), chunk_bytes="64MB", num_workers=1, start_method="fork", verbose=False
    )


def load_litdata(loading: Loading) -> Iterable[Batch]:
    # By default a shuffled epoch decodes a window of samples for each that it takes, at a quarter of the speed.
    decoding = 0 if loading.shuffled else "auto"
    dataset = litdata.StreamingDataset(str(loading.folder), shuffle=loading.shuffled, batch_decode=decoding)
    batch, workers = loading.samples.batch, loading.workers
    loader: Iterable[Batch] = litdata.StreamingDataLoader(
        dataset, batch_size=batch, num_workers=workers, collate_fn=collate
    )
    return loader


# --- Arrow: Hugging Face datasets, and Parquet ---


def binary(x: Array, label: Array) -> pa.Table:
    """A sample's bytes are a value: lists of numbers are slower to read in both."""
    size = x[0].nbytes
    buffers = [None, pa.py_buffer(np.arange(len(x) + 1, dtype=np.int32) * size), pa.py_buffer(np.ascontiguousarray(x))]
    return pa.table({"x": pa.BinaryArray.from_buffers(pa.binary(), len(x), buffers), "label": pa.array(label)})


def stacked(column: pa.ChunkedArray, samples: Samples) -> Array:
    """A view of the column's values."""
    values = column.combine_chunks()
    begin, size = values.offset * samples.bytes_each, len(values) * samples.bytes_each
    flat = np.frombuffer(values.buffers()[2], np.uint8)[begin : begin + size]
    return flat.view(samples.dtype).reshape(len(values), *samples.shape)


def copied(x: Array, label: Array) -> Batch:
    return {"x": torch.from_numpy(np.array(x)), "label": torch.from_numpy(np.array(label))}


def write_datasets(samples: Samples, folder: Path) -> None:
    datasets.disable_progress_bars()
    table = pa.concat_tables(binary(x, label) for _, x, label in samples.pieces(samples.shard))
    datasets.Dataset(datasets.table.InMemoryTable(table)).save_to_disk(str(folder), max_shard_size="256MB")


def load_datasets(loading: Loading) -> Iterable[Batch]:
    samples = loading.samples

    def batch(table: pa.Table) -> Batch:
        return copied(stacked(table["x"], samples), table["label"].to_numpy())

    dataset = datasets.load_from_disk(str(loading.folder)).with_format("arrow")
    order = RandomSampler(dataset) if loading.shuffled else SequentialSampler(dataset)
    # Asked for a batch at once, since samples one by one are much slower.
    batches = BatchSampler(order, samples.batch, drop_last=False)
    return loading.loader(dataset, sampler=batches, batch_size=None, collate_fn=batch)


def write_parquet(samples: Samples, folder: Path) -> None:
    """A row group has four batches: memory of larger ones is new each time."""
    for number, x, label in samples.pieces(samples.shard):
        pq.write_table(
            binary(x, label),
            folder / f"{number:05d}.parquet",
            row_group_size=4 * samples.batch,
            compression="none",
            use_dictionary=False,
            write_statistics=False,
        )


class Parquet(IterableDataset[Batch]):
    """Row groups, in order or shuffled as their rows are; each worker has its share of them."""

    def __init__(self, loading: Loading) -> None:
        self.loading = loading

    def __iter__(self) -> Iterator[Batch]:
        samples, worker = self.loading.samples, get_worker_info()
        random = np.random.default_rng()
        files = [pq.ParquetFile(file, memory_map=True) for file in sorted(self.loading.folder.glob("*.parquet"))]
        groups = [(file, group) for file in files for group in range(file.num_row_groups)]
        groups = groups[worker.id :: worker.num_workers] if worker else groups
        for number in random.permutation(len(groups)) if self.loading.shuffled else range(len(groups)):
            file, group = groups[number]
            table = file.read_row_group(group, use_threads=worker is None)
            x, label = stacked(table["x"], samples), table["label"].to_numpy()
            order = random.permutation(len(x))
            for begin in range(0, len(x), samples.batch):
                chosen = slice(begin, begin + samples.batch)
                rows = order[chosen] if self.loading.shuffled else chosen
                yield copied(x[rows], label[rows])


def load_parquet(loading: Loading) -> Iterable[Batch]:
    return loading.loader(Parquet(loading), batch_size=None)


CONTENDERS = [
    Contender("NumPy memmap", linked, memmap),
    Contender("empty dataset", linked, empty, whole=False),
    Contender("`SampleDataset`", write_safetensors, load_samples, is_ours=True),
    Contender("`BatchDataset`", write_safetensors, load_batches, aims={0: 0.8, WORKERS: 0.95}, is_ours=True),
    Contender("MosaicML Streaming", write_streaming, load_streaming),
    Contender("WebDataset", write_webdataset, load_webdataset),
    Contender("LitData", write_litdata, load_litdata),
    Contender("Hugging Face datasets", write_datasets, load_datasets),
    Contender("Parquet, binary columns", write_parquet, load_parquet),
]
