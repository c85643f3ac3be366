"""Folders named `key=value`, below each other: one folder with partition columns, as Spark reads it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

from safetensors_spark._errors import SafetensorsSparkError, printable
from safetensors_spark._files import partition_columns
from safetensors_spark._files.contents import Contents, Part
from safetensors_spark._files.manifest import Shard
from safetensors_spark._files.storage import Folder

# Folders that are listed at the same time.
_THREADS = 16

_APART = "Move them, or open the folders one by one."


def leaves(folder: Folder, look: Callable[[Folder], Contents | None]) -> Mapping[str, Contents]:
    """What is in the folder, by the path "", or else in the partitions below it, by their paths in it.

    Args:
        look: says what is directly in a folder; None if there is nothing to read.
    """
    found: dict[str, Contents] = {}
    level = {"": folder}
    with ThreadPoolExecutor(_THREADS) as threads:
        while level:
            contents = dict(zip(level, threads.map(look, level.values()), strict=True))
            # Files that a manifest or an index lists are all that is read.
            open_ended = {path: level[path] for path, one in contents.items() if one is None or one.kind == "folder"}
            below = dict(zip(open_ended, threads.map(_named, open_ended.values()), strict=True))
            for path, names in below.items():
                if names and contents[path]:
                    raise SafetensorsSparkError(
                        f"{level[path].location} holds both safetensors files and folders of partitions such as "
                        f"`{names[0]}`: the files would have no value of the partition column. {_APART}"
                    )
            found |= {path: one for path, one in contents.items() if one}
            level = {
                f"{path}/{name}".lstrip("/"): level[path].below(name) for path, names in below.items() for name in names
            }
            for path in level:
                _check_names(folder, path)
    return found


def joined(folder: Folder, parts: Mapping[str, Contents]) -> Contents:
    """The partitions as one. Raises `SafetensorsSparkError` if their folders do not have the same columns."""
    texts = {path: dict(_values(path)) for path in parts}
    (first, names), *others = ((path, list(values)) for path, values in texts.items())
    for path, other in others:
        if other != names:
            raise SafetensorsSparkError(
                f"the folders of {folder.location} have different partition columns: {', '.join(names)} in `{first}`, "
                f"and {', '.join(other)} in `{path}`. {_APART}"
            )
    typed = [partition_columns.column(name, [values[name] for values in texts.values()]) for name in names]
    values = zip(*(encoded for _, encoded in typed), strict=True)
    return Contents(
        folder,
        "partitions",
        tuple(_below(path, shard) for path, one in parts.items() for shard in one.shards),
        {f"{path}/{name}": length for path, one in parts.items() for name, length in one.names.items()},
        parts={
            path: Part(one, dict(zip(names, of, strict=True)))
            for (path, one), of in zip(parts.items(), values, strict=True)
        },
        partition_columns=tuple(column for column, _ in typed),
    )


def _below(path: str, shard: Shard) -> Shard:
    return replace(shard, file=f"{path}/{shard.file}")


def _named(folder: Folder) -> list[str]:
    """The folders directly in it that are partitions, in the order of their names."""
    return sorted(name for name in folder.folders() if partition_columns.parse(name) and name[0] != ".")


def _values(path: str) -> Iterator[tuple[str, str]]:
    return filter(None, map(partition_columns.parse, path.split("/")))


def _check_names(folder: Folder, path: str) -> None:
    """A link to a folder above it would lead here for ever."""
    names = [name for name, _ in _values(path)]
    # Spark does not tell names by their case.
    if names[-1].lower() in (name.lower() for name in names[:-1]):
        raise SafetensorsSparkError(
            printable(f"`{path}` in {folder.location} gives the partition column `{names[-1]}` twice. {_APART}")
        )
