"""What tells the rows of a stream from those of another one: its files, and the functions that its rows pass."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from safetensors_spark.pipeline._fingerprint import fingerprint

# What changes while a stream is read, or where it is read.
_OF_READERS = {"_state_dict", "_owned_loops_and_tasks", "decoding_pool", "token_per_repo_id"}


def version_of_stream(stream: Any, epoch: int) -> str:
    """A fingerprint of the stream's chain of iterables, its epoch, and the node that it is for. A generator's rows are
    known by its code and arguments.
    """
    return fingerprint([epoch, stream._distributed, list(_parts(stream._ex_iterable))])


def _parts(iterable: Any) -> Iterator[Any]:
    from datasets import DatasetBuilder
    from datasets.iterable_dataset import _BaseExamplesIterable

    yield type(iterable).__name__
    for name, value in sorted(vars(iterable).items()):
        builder = getattr(value, "__self__", None)
        if name in _OF_READERS:
            continue
        yield name
        if isinstance(value, _BaseExamplesIterable):
            yield from _parts(value)
        elif isinstance(value, list) and any(isinstance(one, _BaseExamplesIterable) for one in value):
            for one in value:
                yield from _parts(one)
        elif isinstance(builder, DatasetBuilder):
            # Its configuration names the files of all shards; those of this one are arguments.
            settings = {key: one for key, one in vars(builder.config).items() if key != "data_files"}
            yield [type(builder), value.__name__, settings]
        else:
            yield value
            if name == "kwargs":
                yield from map(_file_version, _texts(value))


def _texts(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict):
        for one in value.values():
            yield from _texts(one)
    elif isinstance(value, list | tuple):
        for one in value:
            yield from _texts(one)


def _file_version(text: str) -> str:
    """Size and time of a local file; the names of others, such as those of the Hub, have a revision."""
    try:
        found = Path(text).stat()
    except (OSError, ValueError):
        return ""
    return f"{found.st_size} {found.st_mtime_ns}"
