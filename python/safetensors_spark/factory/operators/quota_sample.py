"""A sample of rows, by quotas of buckets."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from hashlib import blake2b
from typing import Any

import pyarrow as pa  # type: ignore[import-untyped]
import pyarrow.compute as pc  # type: ignore[import-untyped]
from pydantic import BaseModel, ConfigDict, Field, field_validator

from safetensors_spark.factory._errors import ConfigError, ContractError
from safetensors_spark.factory._expressions import columns_of, truth_of
from safetensors_spark.factory._operator import Filter

# What rows are in that are in none.
_NONE = "no bucket"


class Bucket(BaseModel):
    """Rows for which an expression is true, and how many of them to keep."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    name: str = Field(min_length=1, description="The name of the bucket, used in reasons.")
    where: str = Field(description="An SQL expression whose value is true or false.")
    keep: float = Field(default=1.0, ge=0, le=1, description="The share of the bucket's rows that is kept.")

    @field_validator("where")
    @classmethod
    def _is_one(cls, value: str) -> str:
        columns_of(value)
        return value


class QuotaSample(Filter):
    """Keeps a share of the rows of each bucket, such as all good rows and a tenth of the others.

    A row is in the first bucket whose expression is true; the expressions are those of `expression_filter`. Rows in no
    bucket are dropped, unless `others` keeps a share of them. Whether a row is kept is computed from the value of `key`
    and the seed: equal values are kept or dropped together, in any order and any shards, and nothing is shuffled. So
    shares are approximate: for `n` rows with different keys, within about `2 * sqrt(keep * (1 - keep) / n)`. A
    row that a share of 0.1 keeps is also kept by all larger shares. The stage's manifest and `factory report` have the
    actual shares and ratios.

    To get given ratios of buckets in the output, use `QuotaSample.of_ratios`: it computes the shares from the buckets'
    sizes, which `QuotaSample.sizes` counts in the output of the previous stage.
    """

    type = "quota_sample"

    buckets: tuple[Bucket, ...] = Field(
        min_length=1, description="The buckets; a row is in the first one that matches."
    )
    key: str = Field(description="The field that decides, of text, bytes or whole numbers, such as an id or the text.")
    others: float = Field(default=0.0, ge=0, le=1, description="The share of rows in no bucket that is kept.")
    seed: int = Field(default=0, description="Decides which rows are kept.")

    @field_validator("buckets")
    @classmethod
    def _has_names(cls, value: tuple[Bucket, ...]) -> tuple[Bucket, ...]:
        names = [bucket.name for bucket in value]
        if twice := sorted({name for name in names if names.count(name) > 1}):
            raise ValueError(f"two buckets have the name {twice[0]!r}")
        if _NONE in names:
            raise ValueError(f"a bucket has the name {_NONE!r}, which rows in none of them have")
        return value

    @property
    def reads(self) -> tuple[str, ...]:
        fields = {field for bucket in self.buckets for field in columns_of(bucket.where).values()}
        return tuple(sorted({self.key, *fields}))

    def reasons(self, batch: pa.RecordBatch) -> Any:
        places = self._buckets_of(batch)
        shares = [(bucket.name, bucket.keep) for bucket in self.buckets] + [(_NONE, self.others)]
        keys = batch.column(self.key)
        if not _is_key(keys.type):
            raise ContractError(
                f"{self.id}: `{self.key}` is {keys.type}, expected text, bytes or whole numbers to sample by."
            )
        start = f"{self.seed}\0".encode()
        found: list[str | None] = []
        for place, key in zip(places, keys.to_pylist(), strict=True):
            name, share = shares[place]
            is_kept = share == 1 or (share > 0 and _drawn(start, key) < share)
            found.append(None if is_kept else f"sampled out of {name}, of which {share:.6g} is kept")
        return found

    @property
    def quotas(self) -> Mapping[str, float]:
        return {bucket.name: bucket.keep for bucket in self.buckets} | {_NONE: self.others}

    def bucket_of(self, batch: pa.RecordBatch) -> list[str]:
        names = list(self.quotas)
        return [names[place] for place in self._buckets_of(batch)]

    def _buckets_of(self, batch: pa.RecordBatch) -> list[int]:
        """For each row the index of its bucket; for a row in none, the number of buckets."""
        found = pa.array([len(self.buckets)] * len(batch), pa.int64())
        for place in reversed(range(len(self.buckets))):
            is_in = truth_of(self.buckets[place].where, batch, self.id)
            found = pc.if_else(pc.fill_null(is_in, False), place, found)
        return found.to_pylist()  # type: ignore[no-any-return]

    def sizes(self, dataset: Any) -> dict[str, int]:
        """The number of rows in each bucket of a dataset, by name; reads all rows once."""
        from datasets import IterableDataset

        names = list(self.reads)
        counts = [0] * (len(self.buckets) + 1)
        chosen = dataset.select_columns(names).with_format("arrow")
        batches = chosen.iter(batch_size=1024)
        if not isinstance(dataset, IterableDataset) and not len(dataset):
            batches = iter(())
        for table in batches:
            for batch in table.select(names).combine_chunks().to_batches():
                for place in self._buckets_of(batch):
                    counts[place] += 1
        return {bucket.name: count for bucket, count in zip(self.buckets, counts, strict=False)}

    def of_ratios(self, ratios: Mapping[str, float], sizes: Mapping[str, int], rows: int | None = None) -> QuotaSample:
        """The same operator, with shares that give the output these ratios of buckets.

        Args:
            ratios: the ratio of each bucket, by name; their sum need not be 1.
            sizes: the number of rows in each bucket.
            rows: the total number of rows to keep; by default as many as the ratios allow.

        Raises `ConfigError` for unknown buckets, and for buckets with too few rows.
        """
        names = [bucket.name for bucket in self.buckets]
        for what, given in (("ratios", ratios), ("sizes", sizes)):
            if set(given) != set(names):
                raise ConfigError(f"{what} are of {_told(given)}, expected one of each bucket: {_told(names)}.")
        if min(ratios.values()) < 0 or not sum(ratios.values()):
            raise ConfigError(f"ratios are {dict(ratios)}, expected numbers from 0 on, one of them larger.")
        total = sum(ratios.values())
        wanted = {name: ratio / total for name, ratio in ratios.items()}
        most = min(int(sizes[name] / share) for name, share in wanted.items() if share)
        if (most if rows is None else rows) > most or not most:
            least = min((name for name in names if wanted[name]), key=lambda name: sizes[name] / wanted[name])
            raise ConfigError(
                f"bucket `{least}` has {sizes[least]:,} rows, enough for {most:,} in these ratios. Ask for fewer rows, "
                "or for less of it."
            )
        found = most if rows is None else rows
        kept = {name: min(1.0, wanted[name] * found / sizes[name]) if sizes[name] else 0.0 for name in names}
        buckets = tuple(bucket.model_copy(update={"keep": kept[bucket.name]}) for bucket in self.buckets)
        return self.model_copy(update={"buckets": buckets})


def _drawn(start: bytes, key: Any) -> float:
    """A number from 0 to 1, determined by the key. Null is a key like any other."""
    content = key if isinstance(key, bytes) else str(key).encode("utf-8", "surrogatepass")
    digest = blake2b(start + (b"n" if key is None else b"v" + content), digest_size=8).digest()
    return int.from_bytes(digest, "big") / 2**64


def _is_key(kind: pa.DataType) -> bool:
    types = pa.types
    is_text = types.is_string(kind) or types.is_large_string(kind)
    return bool(is_text or types.is_binary(kind) or types.is_large_binary(kind) or types.is_integer(kind))


def _told(names: Sequence[str] | Mapping[str, Any]) -> str:
    return ", ".join(names) or "none"
