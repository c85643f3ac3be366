"""Checks a dataset, a checkpoint or a file: headers, lengths, checksums, and the index against the shards."""

from __future__ import annotations

import os
from array import array
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, closing
from dataclasses import dataclass, field
from functools import partial

from safetensors_spark._errors import DamagedShardError, InvalidFileError, InvalidIndexError
from safetensors_spark._files.checksum import checksum
from safetensors_spark._files.column_kinds import columns_in, kinds_in, rows_tensor
from safetensors_spark._files.contents import Contents
from safetensors_spark._files.header import Header
from safetensors_spark._files.index import IndexEntry, TensorIndex
from safetensors_spark._files.key_buckets import buckets_of
from safetensors_spark._files.look import SUFFIX, look
from safetensors_spark._files.manifest import KeyBucket, Manifest, Shard
from safetensors_spark._files.storage import StorageOptions
from safetensors_spark._files.tensors import TensorInfo
from safetensors_spark._files.verify_index import PartCheck, Tensors, check
from safetensors_spark._files.verify_rows import Read, Samples, against_offsets, differing, unrecorded

Progress = Callable[[int], None]


@dataclass(frozen=True)
class Fault:
    """A fault of a file."""

    file: str
    what: str


@dataclass
class Report:
    """What was checked, the faults, and notes that are not faults."""

    files: int = 0
    bytes: int = 0
    tensors: int = 0
    index_entries: int | None = None
    faults: list[Fault] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)


def verify(
    path: str | os.PathLike[str],
    storage_options: StorageOptions | None = None,
    *,
    workers: int = 4,
    progress: Progress = lambda _: None,
) -> Report:
    """Check every byte of a dataset, or the headers of a checkpoint, a folder or a file, which have no checksums.

    Args:
        path: a local path, or an fsspec URL.
        storage_options: for fsspec's file system.
        workers: the number of files to check at a time.
        progress: called with the number of bytes checked since its last call, from any thread.

    Faults, also of files that cannot be read, are in the report.

    Raises:
        FileNotFoundError: there is no dataset.
        InvalidManifestError, InvalidCheckpointError: the list of files is not valid.
    """
    return verify_contents(look(path, storage_options), workers, progress)


def verify_contents(contents: Contents, workers: int, progress: Progress) -> Report:
    """Check what a path has, as `verify` does."""
    if contents.parts:
        return _of_parts(contents, workers, progress)
    report = Report(files=len(contents.shards))
    with ThreadPoolExecutor(workers) as threads:
        checked = list(threads.map(lambda shard: _Checked(contents, shard, progress), contents.shards))
    for one in checked:
        report.faults += [Fault(one.shard.file, what) for what in one.faults]
        report.bytes += one.bytes
        report.tensors += len(one.hashes)
    if contents.manifest:
        report.faults += (
            Fault(file, what) for file, what in differing((one.shard.file, one.samples) for one in checked)
        )
        report.notes += _leftovers(contents)
        _against_index(contents, contents.manifest, checked, report)
    return report


def _of_parts(contents: Contents, workers: int, progress: Progress) -> Report:
    """The faults of each partition."""
    report = Report()
    for path, part in contents.parts.items():
        found = verify_contents(part.contents, workers, progress)
        report.faults += [Fault(f"{path}/{fault.file}", fault.what) for fault in found.faults]
        report.notes += [f"{path}: {note}" for note in found.notes]
        report.files += found.files
        report.bytes += found.bytes
        report.tensors += found.tensors
        if found.index_entries is not None:
            report.index_entries = (report.index_entries or 0) + found.index_entries
    return report


class _Checked:
    """One shard, checked.

    Attributes:
        hashes: a hash of each tensor's index entry.
        samples: what the manifest does not say of its samples.
    """

    def __init__(self, contents: Contents, shard: Shard, progress: Progress) -> None:
        self.shard = shard
        self.faults: list[str] = []
        self.bytes = 0
        self.hashes = array("q")
        self.samples: Samples = {}
        length = contents.length(shard)
        if length is None:
            self.faults.append("it does not exist")
        elif length != shard.bytes:
            self.faults.append(f"it has {length} bytes, and the manifest says {shard.bytes}")
        else:
            try:
                self._read(contents, length, progress)
            except OSError as error:
                self.faults.append(f"it cannot be read: {error}")

    def _read(self, contents: Contents, length: int, progress: Progress) -> None:
        self._look(contents, length, progress)
        if contents.manifest and not self.faults:
            self._checksum(contents, progress)

    def _look(self, contents: Contents, length: int, progress: Progress) -> None:
        try:
            header = contents.header(self.shard)
        except InvalidFileError as error:
            self.faults.append(str(error))
            return
        read = partial(contents.folder.read, self.shard.file)
        self.faults += _against_kinds(header, self.shard, contents.manifest, read)
        if contents.manifest:
            self.faults += _against_manifest(header, self.shard, contents.manifest, read)
            if contents.manifest.mode == "batch":
                self.samples = unrecorded(header, contents.manifest.columns)
        else:
            self.bytes = length
            progress(length)
        if contents.weights is not None:
            self.faults += _against_weights(header, self.shard, contents.weights)
        start = header.data_start
        self.hashes.extend(hash(_entry(self.shard.file, tensor, start)) for tensor in header.tensors)

    def _checksum(self, contents: Contents, progress: Progress) -> None:
        with contents.folder.open(self.shard.file) as opened:
            self.bytes, found = checksum(opened, lambda chunk: progress(len(chunk)))
        if found != self.shard.crc32c:
            said = self.shard.crc32c
            self.faults.append(f"its CRC-32C is {found}, and the manifest says {said}: bytes have changed")


def _against_kinds(header: Header, shard: Shard, manifest: Manifest | None, read: Read) -> Iterator[str]:
    """The kinds that a shard names itself: against the manifest, or else its rows against them."""
    try:
        kinds = kinds_in(header, shard.file)
        if manifest is None and kinds:
            for column in columns_in(header, shard.file):
                _, rows = rows_tensor(header, column, shard.file)
                if column.has_offsets:
                    yield from against_offsets(header, column, rows, read)
    except DamagedShardError as error:
        yield str(error)
        return
    said = {column.name: column.kind for column in manifest.columns} if manifest else kinds
    for name, kind in kinds.items():
        if kind != said.get(name):
            yield f"its metadata says that column `{name}` is {kind}, and the manifest {said.get(name)}"


def _entry(file: str, tensor: TensorInfo, data_start: int) -> IndexEntry:
    return IndexEntry(tensor.name, file, tensor.shape, tensor.dtype, data_start + tensor.begin, data_start + tensor.end)


def _against_manifest(header: Header, shard: Shard, manifest: Manifest, read: Read) -> Iterator[str]:
    if header.data_start != shard.header_bytes:
        yield f"its byte buffer begins at byte {header.data_start}, and the manifest says {shard.header_bytes}"
    samples = shard.samples or 0
    if manifest.mode == "key_value":
        # Each row has a tensor of each column.
        said = samples * len(manifest.columns)
        if len(header.tensors) != said:
            yield f"it has {len(header.tensors)} tensors, and the manifest says {said}"
        if shard.key_bucket and header.tensors:
            yield from _against_bucket(header, shard.key_bucket)
        return
    names = [name for column in manifest.columns for name in column.tensors]
    if unknown := sorted(set(header.by_name) - set(names)):
        yield f"it has a tensor `{unknown[0]}`, which is not a column of the manifest"
    for column in manifest.columns:
        tensor = header.by_name.get(column.name)
        if tensor is None:
            yield f"it has no tensor `{column.name}`, which the manifest has as a column"
            continue
        found = f"tensor `{column.name}` has {{}}, and the manifest says {{}}".format
        if column.dtype not in (None, tensor.dtype):
            yield found(f"dtype {tensor.dtype}", column.dtype)
        # Without values, a ragged tensor may not tell the shape of one.
        if column.shape not in (None, tensor.shape[1:]) and not (column.has_offsets and not tensor.bytes):
            yield found(f"samples of shape {list(tensor.shape[1:])}", list(column.shape or ()))
        if column.has_offsets:
            yield from against_offsets(header, column, samples, read)
        elif not tensor.shape or tensor.shape[0] < samples:
            yield found(f"shape {list(tensor.shape)}", f"{samples} samples")


def _against_bucket(header: Header, said: KeyBucket) -> Iterator[str]:
    """Spark joins datasets by what the manifest says, and would lose rows of keys that are in other buckets."""
    names = list(header.by_name)
    found = buckets_of(names, said.buckets)
    if found != {said.bucket}:
        yield (
            f"it has keys of bucket {min(found - {said.bucket})} of {said.buckets}, and the manifest says that all are "
            f"in bucket {said.bucket}"
        )
    first, last = min(names, key=str.encode), max(names, key=str.encode)
    if said.keys is not None and said.keys != (first, last):
        yield (
            f"its keys are from `{first:.200}` to `{last:.200}`, and the manifest says from `{said.keys[0]:.200}` to "
            f"`{said.keys[1]:.200}`"
        )


def _leftovers(contents: Contents) -> Iterator[str]:
    known = {shard.file for shard in contents.shards}
    others = [name for name in contents.names if name.endswith(SUFFIX) and name not in known]
    if others:
        yield f"{len(others)} safetensors files beside the dataset are not part of it, {min(others)} for one"


def _against_weights(header: Header, shard: Shard, weights: Mapping[str, str]) -> Iterator[str]:
    """Each tensor in the file that the checkpoint's index names, and no tensor elsewhere."""
    found, named = set(header.by_name), {tensor for tensor, name in weights.items() if name == shard.file}
    for tensor in sorted(named - found):
        yield f"it has no tensor `{tensor}`, which the checkpoint's index says is in it"
    for tensor in sorted(found - named):
        yield f"it has a tensor `{tensor}`, which the checkpoint's index does not say is in it"


def _against_index(contents: Contents, manifest: Manifest, checked: list[_Checked], report: Report) -> None:
    """Each entry against the headers, and each header's tensors against the entries."""
    if not any(part.file in contents.names for part in manifest.index_parts):
        return
    with ExitStack() as opened:
        parts = _open_parts(contents, manifest, report, opened)
        if not parts:
            return
        tensors = Tensors(number for one in checked for number in one.hashes)
        check(parts, tensors, manifest.mode == "batch")
    report.index_entries = sum(map(len, parts))
    report.faults += [Fault(part.name, what) for part in parts for what in part.faults]
    if tensors.left:
        report.faults.append(Fault(parts[0].name, _unindexed(contents, checked, tensors, parts)))


def _open_parts(contents: Contents, manifest: Manifest, report: Report, opened: ExitStack) -> list[PartCheck]:
    """All parts of the index; none if one cannot be used, which the report then tells."""
    parts = []
    for part in manifest.index_parts:
        try:
            index = opened.enter_context(closing(TensorIndex(contents.folder, part.file)))
        except FileNotFoundError:
            report.notes.append(f"{part.file} does not exist: readers ignore the index")
            return []
        except (InvalidIndexError, OSError) as error:
            report.faults.append(Fault(part.file, str(error)))
            return []
        if index.commit_id != part.commit_id:
            report.notes.append(f"{part.file} is of another commit: readers ignore the index")
            return []
        parts.append(PartCheck(part.file, index))
    return parts


def _unindexed(contents: Contents, checked: list[_Checked], tensors: Tensors, parts: list[PartCheck]) -> str:
    whole = "it has" if len(parts) == 1 else f"the {len(parts)} parts of the index have"
    number = tensors.first_left
    shard = next(one.shard for one in checked if number in one.hashes)
    header = contents.header(shard)
    name = next(one.name for one in header.tensors if hash(_entry(shard.file, one, header.data_start)) == number)
    return (
        f"{whole} {sum(map(len, parts))} entries, and the shards have {len(tensors)} tensors: {tensors.left} of them "
        f"without a correct entry, `{name:.200}` of {shard.file} for one"
    )
