"""What a writer has written, and nobody sees before a commit."""

from __future__ import annotations

import json
import re
from dataclasses import asdict, dataclass
from typing import Any

from safetensors_spark._errors import InvalidWriteError
from safetensors_spark._files.manifest import Column, KeyBucket, Mode, Shard
from safetensors_spark._files.storage import is_plain_name

STAGING = "_temporary"


@dataclass(frozen=True)
class WriteRecord:
    """What one writer has written, for the process that commits. It is small, and can be pickled.

    Attributes:
        folder: where in the dataset's directory the shards are until the commit.
        columns: with the dtype and shape of the rows, as far as they tell.
        shards: in row order.
    """

    folder: str
    mode: Mode
    columns: tuple[Column, ...]
    shards: tuple[Shard, ...]

    def to_json(self) -> str:
        """The record as text, for queues and files."""
        return json.dumps(asdict(self))

    @staticmethod
    def from_json(text: str) -> WriteRecord:
        """The record of this text. Raises `InvalidWriteError` if it is none."""
        try:
            root: dict[str, Any] = json.loads(text)
            columns = tuple(Column(**one | {"shape": _dims(one["shape"])}) for one in root["columns"])
            return WriteRecord(root["folder"], root["mode"], columns, tuple(map(_shard, root["shards"])))
        except (ValueError, KeyError, TypeError) as error:
            raise InvalidWriteError(
                f"{text[:100]!r} is not a record of a writer ({error!r}). Pass what `finish` returned."
            ) from None

    def __post_init__(self) -> None:
        if not re.fullmatch(rf"{STAGING}/[0-9a-f-]{{36}}", self.folder):
            raise InvalidWriteError(f"{self.folder!r} is not a folder of a writer. Pass what `finish` returned.")
        for shard in self.shards:
            if not is_plain_name(shard.file):
                raise InvalidWriteError(f"{shard.file!r} is not the name of a shard. Pass what `finish` returned.")


def _shard(fields: dict[str, Any]) -> Shard:
    bucket = fields["key_bucket"]
    if bucket is not None:
        bucket = KeyBucket(bucket["buckets"], bucket["bucket"], bucket["keys"] and tuple(bucket["keys"]))
    return Shard(**fields | {"key_bucket": bucket})


def _dims(shape: list[int] | None) -> tuple[int, ...] | None:
    return None if shape is None else tuple(shape)
