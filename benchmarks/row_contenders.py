"""How each library writes rows of different lengths and loads batches of them, as its documentation recommends."""

from __future__ import annotations

import random
import struct
from collections.abc import Iterable, Iterator, Sequence
from functools import partial
from itertools import pairwise
from pathlib import Path
from typing import Any

import datasets
import grain
import litdata
import numpy as np
import pyarrow as pa  # type: ignore[import-untyped]
import pyarrow.parquet as pq  # type: ignore[import-untyped]
import spdl.io
import spdl.pipeline
import streaming
import torch
import webdataset
from array_record.python.array_record_module import ArrayRecordWriter
from megatron import energon
from torch.utils.data import (
    BatchSampler,
    Dataset,
    IterableDataset,
    RandomSampler,
    SequentialSampler,
    get_worker_info,
)

from benchmarks.limits import Again, Batch, Contender, Loading, as_is
from benchmarks.rows import Rows
from benchmarks.samples import Array
from safetensors_spark.dataset import Ragged, open_dataset, write_dataset
from safetensors_spark.torch import BatchDataset

# Rows that are shuffled at a time by loaders that read streams.
_BUFFER = 1000


# --- two limits ---


def linked(rows: Rows, folder: Path) -> None:
    """For what reads the rows where they are."""
    for name in ("values.npy", "offsets.npy", "label.npy"):
        (folder / name).hardlink_to(rows.folder / name)


class Memmap(Dataset[Batch]):
    """Rows sliced out of one mapped array, and put together."""

    def __init__(self, rows: Rows) -> None:
        self.rows, self.values, self.labels = rows, rows.values(), rows.labels()
        self.offsets = rows.offsets().tolist()

    def __len__(self) -> int:
        return self.rows.count

    def __getitems__(self, indices: Sequence[int]) -> Batch:
        offsets = self.offsets
        parts = [self.values[offsets[index] : offsets[index + 1]] for index in indices]
        label = torch.from_numpy(self.labels[indices])
        if not self.rows.packed:
            return {"x": [part.tobytes() for part in parts], "label": label}
        return self.rows.packed_of(np.concatenate(parts), [len(part) for part in parts], label)


def load_memmap(loading: Loading) -> Iterable[Batch]:
    dataset, rows = Memmap(loading.samples), loading.samples
    if loading.workers:
        return loading.loader(dataset, batch_size=rows.batch, shuffle=loading.shuffled, collate_fn=as_is)
    order = list(range(rows.count))
    if loading.shuffled:
        random.shuffle(order)
    return Again(
        lambda: (dataset.__getitems__(order[begin : begin + rows.batch]) for begin in range(0, rows.count, rows.batch))
    )


class Empty(Memmap):
    """Batches of the mean length that nothing is copied to."""

    def __getitems__(self, indices: Sequence[int]) -> Batch:
        mean = len(self.values) // self.rows.count
        label = torch.empty(len(indices), dtype=torch.int64)
        if not self.rows.packed:
            return {"x": [bytes(mean)] * len(indices), "label": label}
        return self.rows.packed_of(np.empty(mean * len(indices), self.rows.dtype), [mean] * len(indices), label)


def load_empty(loading: Loading) -> Iterable[Batch]:
    dataset, batch = Empty(loading.samples), loading.samples.batch
    return loading.loader(dataset, batch_size=batch, shuffle=loading.shuffled, collate_fn=as_is)


# --- this project ---


def write_safetensors(rows: Rows, folder: Path) -> None:
    def batches() -> Iterator[dict[str, Any]]:
        for _, values, offsets, label in rows.pieces():
            x = Ragged(values, offsets) if rows.packed else [bytes(values[b:e]) for b, e in pairwise(offsets)]
            yield {"x": x, "label": label}

    write_dataset(batches(), folder / "dataset", batch_size="auto", ragged=["x"] if rows.packed else [], progress=False)


def load_batches(loading: Loading, threads: int = 2) -> Iterable[Batch]:
    rows = loading.samples
    dataset = open_dataset(loading.folder / "dataset")
    batches = BatchDataset(
        dataset,
        rows.batch,
        shuffle=loading.shuffled,
        threads=threads,
        ragged="packed",
        transform=partial(flat, rows.packed),
    )
    return loading.loader(batches, batch_size=None) if loading.workers else batches


def flat(packed: bool, batch: Batch) -> Batch:
    if not packed:
        return batch
    values, begins, _ = batch["x"]
    return {"x": values, "cu_seqlens": begins, "label": batch["label"]}


# --- MosaicML Streaming ---


def write_streaming(rows: Rows, folder: Path) -> None:
    kind = "ndarray:int32" if rows.packed else "bytes"
    with streaming.MDSWriter(out=str(folder), columns={"x": kind, "label": "int64"}, size_limit="64mb") as out:
        for x, label in rows.rows():
            out.write({"x": x if rows.packed else bytes(x), "label": np.int64(label)})


def load_streaming(loading: Loading) -> Iterable[Batch]:
    streaming.base.util.clean_stale_shared_memory()
    rows = loading.samples
    dataset = streaming.StreamingDataset(local=str(loading.folder), shuffle=loading.shuffled, batch_size=rows.batch)
    return loading.loader(dataset, batch_size=rows.batch, collate_fn=partial(by_name, rows))


def by_name(rows: Rows, samples: Sequence[dict[str, Any]]) -> Batch:
    return rows.batch_of([sample["x"] for sample in samples], [int(sample["label"]) for sample in samples])


def in_pairs(rows: Rows, samples: Sequence[tuple[Any, int]]) -> Batch:
    return rows.batch_of([x for x, _ in samples], [label for _, label in samples])


# --- WebDataset ---


def write_webdataset(rows: Rows, folder: Path) -> None:
    with webdataset.ShardWriter(str(folder / "%05d.tar"), maxsize=256 << 20, maxcount=1 << 40, verbose=0) as out:
        for number, (x, label) in enumerate(rows.rows()):
            out.write({"__key__": f"{number:09d}", "x.bin": x.tobytes(), "label.cls": label})


def load_webdataset(loading: Loading) -> Iterable[Batch]:
    rows = loading.samples
    shards = sorted(map(str, loading.folder.glob("*.tar")))
    dataset = webdataset.WebDataset(shards, shardshuffle=len(shards) if loading.shuffled else False, empty_check=False)
    if loading.shuffled:
        dataset = dataset.shuffle(_BUFFER)
    pairs = dataset.map(lambda parts: (parts["x.bin"], int(parts["label.cls"])))
    batches = pairs.batched(rows.batch, collation_fn=partial(in_pairs, rows))
    loader: Iterable[Batch] = webdataset.WebLoader(batches, batch_size=None, num_workers=loading.workers)
    return loader


# --- LitData ---


def write_litdata(rows: Rows, folder: Path) -> None:
    values, offsets, labels = rows.values(), rows.offsets().tolist(), rows.labels()

    def sample(index: int) -> dict[str, Any]:
        x = values[offsets[index] : offsets[index + 1]]
        return {"x": torch.from_numpy(np.array(x)) if rows.packed else bytes(x), "label": int(labels[index])}

    litdata.optimize(
        sample,
        list(range(rows.count)),
        str(folder),
        chunk_bytes="64MB",
        num_workers=1,
        start_method="fork",
        verbose=False,
    )


def load_litdata(loading: Loading) -> Iterable[Batch]:
    rows = loading.samples
    decoding = 0 if loading.shuffled else "auto"
    dataset = litdata.StreamingDataset(str(loading.folder), shuffle=loading.shuffled, batch_decode=decoding)
    loader: Iterable[Batch] = litdata.StreamingDataLoader(
        dataset, batch_size=rows.batch, num_workers=loading.workers, collate_fn=partial(by_name, rows)
    )
    return loader


# --- Arrow: Hugging Face datasets, and Parquet ---


def columns(rows: Rows, values: Array, offsets: Array, label: Array) -> pa.Table:
    if rows.packed:
        x = pa.LargeListArray.from_arrays(offsets, pa.array(values))
    else:
        buffers = [None, pa.py_buffer(offsets.astype(np.int64)), pa.py_buffer(np.ascontiguousarray(values))]
        x = pa.LargeBinaryArray.from_buffers(pa.large_binary(), len(offsets) - 1, buffers)
    return pa.table({"x": x, "label": label})


def of_table(rows: Rows, table: pa.Table) -> Batch:
    x, label = table["x"].combine_chunks(), torch.from_numpy(np.array(table["label"].to_numpy()))
    if not rows.packed:
        return {"x": x.to_pylist(), "label": label}
    lengths = np.diff(x.offsets.to_numpy())
    return rows.packed_of(np.array(x.flatten().to_numpy()), lengths, label)


def write_datasets(rows: Rows, folder: Path) -> None:
    datasets.disable_progress_bars()
    table = pa.concat_tables(columns(rows, *piece[1:]) for piece in rows.pieces())
    datasets.Dataset(datasets.table.InMemoryTable(table)).save_to_disk(str(folder), max_shard_size="256MB")


def load_datasets(loading: Loading) -> Iterable[Batch]:
    rows = loading.samples
    dataset = datasets.load_from_disk(str(loading.folder)).with_format("arrow")
    order = RandomSampler(dataset) if loading.shuffled else SequentialSampler(dataset)
    batches = BatchSampler(order, rows.batch, drop_last=False)
    return loading.loader(dataset, sampler=batches, batch_size=None, collate_fn=partial(of_table, rows))


def write_parquet(rows: Rows, folder: Path) -> None:
    for number, *piece in rows.pieces():
        pq.write_table(
            columns(rows, *piece),
            folder / f"{number:05d}.parquet",
            row_group_size=4 * rows.batch,
            compression="none",
            use_dictionary=False,
            write_statistics=False,
        )


class Parquet(IterableDataset[Batch]):
    """Row groups, in order or shuffled as their rows are; each worker has its share of them."""

    def __init__(self, loading: Loading) -> None:
        self.loading = loading

    def __iter__(self) -> Iterator[Batch]:
        rows, worker, order = self.loading.samples, get_worker_info(), np.random.default_rng()
        files = [pq.ParquetFile(file, memory_map=True) for file in sorted(self.loading.folder.glob("*.parquet"))]
        groups = [(file, group) for file in files for group in range(file.num_row_groups)]
        groups = groups[worker.id :: worker.num_workers] if worker else groups
        for number in order.permutation(len(groups)) if self.loading.shuffled else range(len(groups)):
            file, group = groups[number]
            table = file.read_row_group(group, use_threads=worker is None)
            if self.loading.shuffled:
                table = table.take(order.permutation(len(table)))
            for begin in range(0, len(table), rows.batch):
                yield of_table(rows, table.slice(begin, rows.batch))


def load_parquet(loading: Loading) -> Iterable[Batch]:
    return loading.loader(Parquet(loading), batch_size=None)


# --- Grain, of ArrayRecord ---


def write_array_record(rows: Rows, folder: Path) -> None:
    # One record in a group, which is what random access wants.
    writer = ArrayRecordWriter(str(folder / "rows.array_record"), "group_size:1,uncompressed")
    for x, label in rows.rows():
        writer.write(struct.pack("<q", label) + x.tobytes())
    writer.close()


def of_record(record: bytes) -> tuple[memoryview, int]:
    return memoryview(record)[8:], struct.unpack_from("<q", record)[0]


def load_grain(loading: Loading) -> Iterable[Batch]:
    rows = loading.samples
    source = grain.sources.ArrayRecordDataSource([str(loading.folder / "rows.array_record")])
    dataset = grain.MapDataset.source(source)
    if loading.shuffled:
        dataset = dataset.shuffle(seed=random.getrandbits(31))
    found = dataset.map(of_record).to_iter_dataset().batch(rows.batch, batch_fn=partial(in_pairs, rows))
    if loading.workers:
        found = found.mp_prefetch(grain.multiprocessing.MultiprocessingOptions(num_workers=loading.workers))
    return Again(lambda: iter(found))


# --- SPDL, of the tar files of WebDataset ---


def load_spdl(loading: Loading) -> Iterable[Batch]:
    """Threads in place of workers; rows that follow each other are shuffled by a buffer, as WebDataset does."""
    return Again(partial(spdl_batches, loading))


def spdl_batches(loading: Loading) -> Iterator[Batch]:
    rows, shards = loading.samples, sorted(loading.folder.glob("*.tar"))
    if loading.shuffled:
        random.shuffle(shards)
    builder = spdl.pipeline.PipelineBuilder().add_source(shards).pipe(rows_of_tar)
    if loading.shuffled:
        builder = builder.aggregate(_BUFFER).pipe(mixed).disaggregate()
    builder = builder.aggregate(rows.batch).pipe(
        partial(in_pairs, rows), concurrency=max(1, loading.workers), output_order="input"
    )
    pipeline = builder.add_sink(4).build(num_threads=max(1, loading.workers))
    with pipeline.auto_stop():
        yield from pipeline


def rows_of_tar(path: Path) -> Iterator[tuple[memoryview, int]]:
    # A row's members follow each other: the label, then the row.
    label = None
    for name, content in spdl.io.iter_tarfile(path.read_bytes()):
        if name.endswith(".label.cls"):
            label, other = int(bytes(content)), label
            if isinstance(other, memoryview):
                yield other, label
                label = None
        elif isinstance(label, int):
            yield content, label
            label = None
        else:
            label = content


def mixed(rows: list[Any]) -> list[Any]:
    random.shuffle(rows)
    return rows


# --- Megatron Energon, of such tar files with its own index ---


def write_energon(rows: Rows, folder: Path) -> None:
    write_webdataset(rows, folder)
    shards = sorted(path.name for path in folder.glob("*.tar"))
    energon.BaseWebdatasetFactory.prepare_dataset(
        folder, shards, split_parts_patterns=[("train", ".*"), ("val", ".*")], shuffle_seed=None, workers=1
    )
    (folder / ".nv-meta" / "dataset.yaml").write_text("__module__: megatron.energon\n__class__: CrudeWebdataset\n")


@energon.edataclass
class Row(energon.Sample):
    x: bytes
    label: int


@energon.stateless  # type: ignore[untyped-decorator, unused-ignore]
def cook(sample: dict[str, Any]) -> Row:
    return Row(**energon.basic_sample_keys(sample), x=sample["x.bin"], label=int(sample["label.cls"]))


class Encoder(energon.DefaultTaskEncoder[Any, Any, Any, Any]):
    cookers = [energon.Cooker(cook)]  # noqa: RUF012 (as Energon wants it)
    decoder = None

    def __init__(self, rows: Rows) -> None:
        super().__init__()
        self.rows = rows

    def batch(self, samples: list[Row]) -> Batch:
        return self.rows.batch_of([row.x for row in samples], [row.label for row in samples])


def load_energon(loading: Loading) -> Iterable[Batch]:
    rows = loading.samples
    how: dict[str, Any] = {
        "worker_config": energon.WorkerConfig(rank=0, world_size=1, num_workers=loading.workers),
        "batch_size": rows.batch,
        "task_encoder": Encoder(rows),
    }
    if loading.shuffled:
        dataset = energon.get_train_dataset(
            str(loading.folder), shuffle_buffer_size=_BUFFER, max_samples_per_sequence=_BUFFER, repeat=False, **how
        )
    else:
        dataset = energon.get_val_dataset(str(loading.folder), **how)
    loader: Iterable[Batch] = energon.get_loader(dataset)
    return loader


CONTENDERS: Sequence[Contender] = [
    Contender("NumPy memmap", linked, load_memmap),
    Contender("empty dataset", linked, load_empty, whole=False),
    Contender("`BatchDataset`", write_safetensors, load_batches, is_ours=True),
    Contender(
        "`BatchDataset(threads=0)`", write_safetensors, partial(load_batches, threads=0), aims={0: 1.0}, is_ours=True
    ),
    Contender("MosaicML Streaming", write_streaming, load_streaming),
    Contender("WebDataset", write_webdataset, load_webdataset),
    Contender("LitData", write_litdata, load_litdata),
    Contender("Hugging Face datasets", write_datasets, load_datasets),
    Contender("Parquet", write_parquet, load_parquet),
    Contender("Grain, ArrayRecord", write_array_record, load_grain),
    Contender("SPDL", write_webdataset, load_spdl),
    Contender("Megatron Energon", write_energon, load_energon),
]
