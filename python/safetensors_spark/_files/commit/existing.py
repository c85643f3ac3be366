"""Checks of the directory that is written to, and of the dataset that is there already."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from typing import Literal

from safetensors_spark._errors import InvalidManifestError, InvalidWriteError
from safetensors_spark._files.commit.columns import differ, remedy, shown
from safetensors_spark._files.commit.target import Target
from safetensors_spark._files.format_version import check_writable
from safetensors_spark._files.manifest import MANIFEST, Column, Manifest, Mode, parse_manifest

_LOGGER = logging.getLogger("safetensors_spark")

SaveMode = Literal["append", "overwrite", "error"]

# What is known of a dataset whose manifest is damaged.
DAMAGED = Manifest("", "batch", {}, (), ())


def read_existing(target: Target) -> Manifest | None:
    """The manifest of the directory; None without one."""
    content = target.read(MANIFEST)
    return None if content is None else parse_manifest(content, f"{target.location}/{MANIFEST}")


def check_existing(target: Target, save_mode: SaveMode, mode: Mode, columns: Sequence[Column]) -> Manifest | None:
    """The dataset that is there, if this write may continue.

    Checked when a write begins, and again under the commit lock, as other writes may have committed since.

    Args:
        columns: those of the write; none while they are not known.

    Raises:
        InvalidWriteError: the write would mix with what is there, or make it unreadable.
        IncompatibleVersionError: a newer version of safetensors-spark has written the dataset.
        InvalidManifestError: the dataset that is appended to is damaged.
    """
    if target.is_file():
        raise InvalidWriteError(f"{target.location} is a file, and a dataset is a directory. Name another path.")
    found = _read(target, save_mode)
    if found is None and (name := _first_file(target)) is not None:
        # Another write may have begun since: it puts its manifest there before its shards.
        found = _read(target, save_mode)
        if found is None:
            raise InvalidWriteError(
                f"{target.location} is not a dataset of safetensors, as it has no {MANIFEST}, but it is not empty: it "
                f"holds {name}, for one. Name an empty directory, or a dataset."
            )
    if found is None:
        return None
    # Without rows and columns it is what a first write that died has begun with.
    if save_mode == "error" and (found.shards or found.columns):
        raise InvalidWriteError(
            f"{target.location} is a dataset already, and was to be created. Append to it, replace it, or name another "
            "path."
        )
    if save_mode == "append" and found.shards:
        _check_like(found, mode, columns, target.location)
    return found


def _read(target: Target, save_mode: SaveMode) -> Manifest | None:
    """The manifest. A damaged one may be replaced: its shards stay, because nothing names them."""
    try:
        found = read_existing(target)
    except InvalidManifestError as error:
        if save_mode != "overwrite":
            raise
        _LOGGER.warning("%s It is overwritten, and its shards are kept.", error)
        return DAMAGED
    if found is not None:
        check_writable(found.version, f"{target.location}/{MANIFEST}")
    return found


def _first_file(target: Target) -> str | None:
    return next((name for name in target.names() if name[0] not in "_."), None)


def _check_like(old: Manifest, mode: Mode, columns: Sequence[Column], path: str) -> None:
    def refuse(
        what: str, there: object, here: object, advice: str = "Write to another directory, or overwrite it"
    ) -> InvalidWriteError:
        return InvalidWriteError(
            f"{path} was written with {what} {there}, and cannot be appended to with {here}. {advice}."
        )

    if old.mode != mode:
        raise refuse("the mode", old.mode, mode)
    if not columns:
        return
    there, here = sorted(one.name for one in old.columns), sorted(one.name for one in columns)
    if there != here:
        raise refuse("the columns", ", ".join(there), ", ".join(here))
    was = {column.name: column for column in old.columns}
    for column in columns:
        known = was[column.name]
        if mode == "batch" and known.kind == "fixed" and None in (known.dtype, known.shape):
            raise InvalidWriteError(
                f"The manifest of {path} names no shape that all rows of column `{column.name}` have, as older "
                f"versions let them differ: nothing can be appended. `safetensors-spark verify {path}` names the "
                "shards that differ. Write to another directory, or overwrite it."
            )
        if mode == "batch" and differ(known, column):
            raise refuse(f"column `{column.name}` as", shown(known), shown(column), remedy(column, known, True))
        if None not in (known.dtype, column.dtype) and known.dtype != column.dtype:
            raise refuse(f"column `{column.name}` as", known.dtype, column.dtype, remedy(column, known, True))
