"""Options of a write, by the names that Spark has for them."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, cast, get_args

from safetensors_spark._errors import InvalidWriteError
from safetensors_spark._files.commit.existing import SaveMode
from safetensors_spark._files.manifest import Manifest, Mode
from safetensors_spark.dataset._write.batch_shards import Tail
from safetensors_spark.dataset._write.column_options import ColumnOptions
from safetensors_spark.dataset._write.key_shards import Duplicates
from safetensors_spark.dataset._write.numbers import Rounding

_LARGEST_BATCH = 2**31 - 1
_MEGABYTES = range(50, 1001)
_BUCKETS = range(1, 100_001)


@dataclass(frozen=True)
class WriteOptions:
    """Options that passed their checks. Either `batch_size` or `name_col` is None."""

    mode: SaveMode
    batch_size: int | Literal["auto"] | None
    name_col: str | None
    ragged: tuple[str, ...]
    tail_strategy: Tail
    kv_separator: str
    duplicates_strategy: Duplicates
    target_shard_size_mb: int
    generate_index: bool
    metadata: Mapping[str, str]
    dtype: str | Mapping[str, str] | None
    shapes: Mapping[str, Sequence[int]]
    rounding: Rounding
    key_buckets: int | None

    def __post_init__(self) -> None:
        _check_one_of("mode", self.mode, get_args(SaveMode))
        _check_one_of("tail_strategy", self.tail_strategy, get_args(Tail))
        _check_one_of("duplicates_strategy", self.duplicates_strategy, get_args(Duplicates))
        _check_one_of("rounding", self.rounding, get_args(Rounding))
        if self.batch_size is None and self.name_col is None:
            raise InvalidWriteError(
                "A write needs `batch_size`, the number of rows that make one shard or `auto`, or `name_col`, the "
                "column whose values name the tensors."
            )
        if self.batch_size is not None and self.name_col is not None:
            raise InvalidWriteError(
                "`batch_size` and `name_col` exclude each other: rows are stacked into one tensor for each column, or "
                "each becomes a tensor of its own. Drop one."
            )
        self._check_values()

    def _check_values(self) -> None:
        size, target = self.batch_size, self.target_shard_size_mb
        if size not in (None, "auto") and (type(size) is not int or not 0 < size <= _LARGEST_BATCH):
            expected = f"a whole number from 1 to {_LARGEST_BATCH}, or `auto`"
            raise InvalidWriteError(f"`batch_size` is {size!r}, expected {expected}.")
        if size == "auto" and self.tail_strategy != "write":
            raise InvalidWriteError(
                f"`tail_strategy={self.tail_strategy}` needs a number of rows as `batch_size`: with `auto`, the last "
                "shard has the rows that are left. Leave it out."
            )
        if target not in _MEGABYTES:
            raise InvalidWriteError(
                f"`target_shard_size_mb` is {target!r}, expected a whole number from 50, under which small files slow "
                "readers down, to 1000, above which memory does."
            )
        if self.name_col is not None and self.ragged:
            raise InvalidWriteError(
                "`ragged` is for batches. With `name_col` each row is a tensor of its own shape. Leave `ragged` out."
            )
        if self.key_buckets is not None and self.key_buckets not in _BUCKETS:
            raise InvalidWriteError(
                f"`key_buckets` is {self.key_buckets!r}, expected a whole number from 1 to {_BUCKETS[-1]}."
            )
        if self.key_buckets is not None and self.name_col is None:
            raise InvalidWriteError("`key_buckets` needs `name_col`: rows of a batch have no keys. Leave it out.")
        if not all(isinstance(one, str) for pair in self.metadata.items() for one in pair):
            raise InvalidWriteError(f"`metadata` is {self.metadata!r:.200}, expected a dictionary of strings.")

    def buckets_beside(self, place: str, kept: Manifest | None) -> int | None:
        """How many buckets of keys the shards are in; None if they are not in buckets.

        Args:
            kept: the dataset whose shards stay.

        Raises `InvalidWriteError` if these shards are in other buckets, or rows cannot be put in buckets.
        """
        there = kept.key_buckets if kept else None
        if kept and kept.shards and self.key_buckets not in (None, there):
            found = "not in buckets of keys" if there is None else f"in {there} buckets of keys"
            raise InvalidWriteError(
                f"The shards in {place} are {found}, and cannot be appended to with `key_buckets={self.key_buckets}`. "
                "Leave the option out, or overwrite the dataset."
            )
        buckets = self.key_buckets or there
        if buckets is not None and self.duplicates_strategy == "lastWin":
            raise InvalidWriteError(
                f"Rows cannot be written in {buckets} buckets of keys: `duplicates_strategy=lastWin` keeps the last "
                "row of a key, and no row is the last once rows are sorted by key. Remove the duplicates before the "
                "write."
            )
        return buckets

    @property
    def columns(self) -> ColumnOptions:
        """What they say of each column."""
        return ColumnOptions(self.dtype, self.shapes, self.rounding)

    @property
    def dataset_mode(self) -> Mode:
        return "batch" if self.name_col is None else "key_value"


def _check_one_of(option: str, value: object, names: Sequence[str]) -> None:
    if value not in names:
        raise InvalidWriteError(f"`{option}` is {value!r}, expected one of {', '.join(names)}.")


_DEFAULTS: dict[str, Any] = {
    "batch_size": None,
    "name_col": None,
    "ragged": (),
    "tail_strategy": "write",
    "kv_separator": "__",
    "duplicates_strategy": "fail",
    "target_shard_size_mb": 300,
    "generate_index": False,
    "metadata": {"format": "pt"},
    "dtype": None,
    "shapes": {},
    "rounding": "truncate",
    "key_buckets": None,
}
_IN_SPARK = {"duplicates_strategy": "duplicatesStrategy"}


def options_of(mode: str, given: Mapping[str, Any]) -> tuple[WriteOptions, dict[str, str]]:
    """The options, and those that differ from the defaults as the manifest has them."""
    ragged = (given["ragged"],) if isinstance(given["ragged"], str) else tuple(given["ragged"])
    values = dict(given) | {"ragged": ragged}
    for name in ("metadata", "shapes"):
        values[name] = _DEFAULTS[name] if values[name] is None else dict(values[name])
    options = WriteOptions(cast(SaveMode, mode), **values)
    set_by_user = {name: value for name, value in values.items() if value != _DEFAULTS[name]}
    return options, {_IN_SPARK.get(name, name): _text(value) for name, value in set_by_user.items()}


def _text(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
