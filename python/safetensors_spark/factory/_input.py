"""The dataset that a configuration names as its input."""

from __future__ import annotations

import glob
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from fsspec.implementations.local import LocalFileSystem
from pydantic import BaseModel, ConfigDict, Field

from safetensors_spark.factory._errors import ConfigError
from safetensors_spark.factory._nearest import meant

# What `path` may be beside folders and datasets of the Hub.
_FORMATS = ("arrow", "audiofolder", "csv", "imagefolder", "json", "parquet", "text", "webdataset", "xml")

Files = str | tuple[str, ...] | dict[str, str | tuple[str, ...]]

_SUFFIXES = {
    ".arrow": "arrow",
    ".csv": "csv",
    ".json": "json",
    ".jsonl": "json",
    ".parquet": "parquet",
    ".txt": "text",
}


class DatasetInput(BaseModel):
    """Arguments of `datasets.load_dataset`. Files of this machine are seen from the configuration's folder."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    path: str = Field(description="A format such as `parquet` or `json`, a folder, or a dataset of the Hub.")
    name: str | None = Field(default=None, description="Name of a configuration of the dataset.")
    data_dir: str | None = Field(default=None, description="Folder of the files.")
    data_files: Files | None = Field(default=None, description="Files or patterns of files; by split, as a mapping.")
    split: str = Field(default="train", description="The split that is read.")
    revision: str | None = Field(default=None, description="Revision of a dataset of the Hub.")
    streaming: bool = Field(default=True, description="Read rows as they are needed, and keep no copy of the dataset.")
    options: dict[str, Any] = Field(default={}, description="Further arguments, such as `columns` of Parquet.")

    def resolved(self, folder: Path) -> DatasetInput:
        """The same input, seen from anywhere."""
        there = absolute(self.path, folder)
        if Path(there).exists():
            return self.model_copy(update={"path": there})
        if "/" in self.path:
            # Files of a dataset of the Hub are within it.
            return self
        place = None if self.data_dir is None else absolute(self.data_dir, folder)
        # Files are in that folder, if there is one. Nothing in the name of a folder is a pattern.
        here = Path(glob.escape(str(folder)))
        files = self.data_files if place is not None else _all_absolute(self.data_files, here)
        return self.model_copy(update={"data_dir": place, "data_files": files})

    def open(self) -> Any:
        """The dataset. Raises `ConfigError` if there is none."""
        import datasets

        for pattern in _patterns(self.data_files):
            if "://" not in pattern and Path(pattern).is_absolute() and not LocalFileSystem().glob(pattern):
                raise ConfigError(f"the input cannot be opened: no file is `{pattern}`.", ("input", "data_files"))
        arguments = {name: value for name in type(self).model_fields if (value := getattr(self, name)) is not None}
        options, path = arguments.pop("options"), arguments.pop("path")
        try:
            return datasets.load_dataset(path, **arguments | {"data_files": _lists(self.data_files)}, **options)
        except StopIteration:
            raise ConfigError("the input cannot be opened: its files are empty.", ("input",)) from None
        except Exception as error:
            told = f"{type(error).__name__}: {error}".strip().removesuffix(".")
            near = meant(path, _FORMATS)
            hint = f" {near}" if path not in _FORMATS and near.startswith("Did") else ""
            raise ConfigError(f"the input cannot be opened: {told}.{hint}", ("input",)) from error


def input_of(files: Sequence[str], configured: DatasetInput | None) -> DatasetInput:
    """Files, patterns of files or a folder, seen from the current folder, with the format that was configured.

    Raises `ConfigError` if there is none, and the names do not tell it.
    """
    if len(files) == 1 and Path(absolute(files[0], Path.cwd())).is_dir():
        return DatasetInput(path=files[0]).resolved(Path.cwd())
    if configured is not None and configured.path in _FORMATS:
        changed = configured.model_copy(update={"data_files": tuple(files), "data_dir": None})
        return changed.resolved(Path.cwd())
    formats = {_format(name) for name in files}
    if None in formats or len(formats) > 1:
        raise ConfigError(
            f"the names of the input's files do not tell one format: {', '.join(files):.200}. Expected "
            f"{', '.join(_SUFFIXES)}; or give the configuration an `input` with the format as `path`."
        )
    return DatasetInput(path=str(formats.pop()), data_files=tuple(files)).resolved(Path.cwd())


def _format(name: str) -> str | None:
    """The format that a file's name tells, which may be compressed."""
    return next((kind for kind in map(_SUFFIXES.get, reversed(Path(name).suffixes[-2:])) if kind), None)


def _patterns(files: Files | None) -> list[str]:
    if isinstance(files, Mapping):
        return [one for some in files.values() for one in _patterns(some)]
    return [files] if isinstance(files, str) else list(files or ())


def _all_absolute(files: Files | None, folder: Path) -> Files | None:
    if files is None:
        return None
    if isinstance(files, str):
        return absolute(files, folder)
    if isinstance(files, Mapping):
        return {split: _all_absolute(some, folder) for split, some in files.items()}  # type: ignore[misc]
    return tuple(absolute(one, folder) for one in files)


def absolute(name: str, folder: Path) -> str:
    """A path, seen from a folder, as one seen from anywhere. URLs stay."""
    if "://" in name:
        return name
    try:
        return str(folder / Path(name).expanduser())
    except RuntimeError:
        # `~name` of no user is a file's.
        return str(folder / name)


def _lists(files: Files | None) -> Any:
    """As `load_dataset` takes them, which knows no tuples."""
    if isinstance(files, Mapping):
        return {split: _lists(some) for split, some in files.items()}
    return list(files) if isinstance(files, tuple) else files
