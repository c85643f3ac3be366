"""Profiles of whylogs: of each file of a stage, and of the stage."""

from __future__ import annotations

import os
from collections.abc import Iterable
from hashlib import blake2b
from pathlib import PurePosixPath
from typing import Any

import numpy as np
import pyarrow as pa  # type: ignore[import-untyped]
from pydantic import Field

from safetensors_spark._extras import require
from safetensors_spark._files.commit.target import open_target
from safetensors_spark.factory._fields import PREFIX
from safetensors_spark.factory._hook import Hook, PartitionEnd, StageFiles
from safetensors_spark.factory._places import parquet_file
from safetensors_spark.pipeline._whole_file import whole_file

_FOLDER = "profiles"


class WhylogsProfiles(Hook):
    """Profiles the rows that stages leave with whylogs, in files beside them that the manifest names.

    Columns of numbers, texts and truth values are profiled; others, such as images, lists and times, are not. A file of
    rows is read in batches when its shard is made, and has a profile of its own, so that a later run profiles new
    shards alone. The first one that the manifest names is that of the stage, which is merged of them:

        whylogs.core.DatasetProfileView.read("web/quality/profiles/whylogs-3f1c0a92b1d4e877.bin").to_pandas()

    A profile has the most frequent values of a column as they are, so one of texts is as private as these. The usage
    statistics of whylogs are off, unless `WHYLOGS_NO_ANALYTICS` or an earlier import of it has decided that.
    """

    type = "whylogs"

    columns: tuple[str, ...] | None = Field(
        default=None, description="The columns to profile, where rows have them: by default all that can be."
    )
    rows: int = Field(default=8192, ge=1, description="Rows that are in memory at a time.")

    def model_post_init(self, _: Any) -> None:
        # Now, and not in the middle of a run.
        _whylogs()

    def on_partition_end(self, event: PartitionEnd) -> None:
        for path in event.paths:
            self._profile(path)

    def profiles(self, event: StageFiles) -> Iterable[str]:
        target = open_target(event.folder)
        there = set(target.names(_FOLDER))
        names = [self._name(path) for path in event.paths]
        for path, name in zip(event.paths, names, strict=True):
            # That of a shard which an earlier run has made without this hook.
            if name not in there:
                self._profile(path)
        if not names:
            return []
        # A shard that is made again has a profile of the same name.
        of = [(name, target.status(f"{_FOLDER}/{name}")) for name in names]
        merged = f"whylogs-{blake2b(repr(of).encode(), digest_size=8).hexdigest()}.bin"
        if merged not in there:
            view = None
            for name in names:
                content = target.read(f"{_FOLDER}/{name}")
                one = _whylogs().DatasetProfileView.deserialize(content)
                view = one if view is None else view.merge(one)
            _write(event.folder, merged, view)
        return [f"{_FOLDER}/{name}" for name in (merged, *names)]

    def _name(self, path: str) -> str:
        """Of the profile of a file. With other options it is another one."""
        options = blake2b(repr(self.columns).encode(), digest_size=3).hexdigest()
        return f"whylogs-{options}-{PurePosixPath(path).stem}.bin"

    def _profile(self, path: str) -> None:
        core = _whylogs()
        with parquet_file(path) as file:
            types = {one.name: kind for one in file.schema_arrow if (kind := self._type_of(one)) is not None}
            profile = core.DatasetProfile(schema=core.DatasetSchema(types=types))
            for batch in file.iter_batches(self.rows, columns=list(types)) if types else ():
                # With nulls whole numbers would be floats.
                profile.track(batch.to_pandas(integer_object_nulls=True))
        _write(path.rpartition("/")[0].rpartition("/")[0], self._name(path), profile.view())

    def _type_of(self, column: pa.Field) -> Any:
        """The type that whylogs takes for a column, so that it does not depend on a batch; None of one to leave out."""
        if column.name.startswith(PREFIX) if self.columns is None else column.name not in self.columns:
            return None
        types, kind = pa.types, column.type
        if types.is_boolean(kind) or types.is_integer(kind):
            return int
        if types.is_floating(kind):
            return float
        # As pandas has texts: of `str` it asks NumPy for a name that NumPy 2 does not have, as it does of times.
        return np.dtype("O") if types.is_string(kind) or types.is_large_string(kind) else None


def _write(folder: str, name: str, view: Any) -> None:
    with whole_file(open_target(folder), f"{_FOLDER}/{name}", durable=True) as file:
        file.write(view.serialize())


def _whylogs() -> Any:
    require("factory-whylogs", ("pandas", "whylogs"))
    # It would tell its makers of each import.
    os.environ.setdefault("WHYLOGS_NO_ANALYTICS", "True")
    import whylogs.core

    return whylogs.core
