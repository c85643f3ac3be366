"""The length of texts."""

from __future__ import annotations

import re
from collections.abc import Mapping

import pyarrow as pa  # type: ignore[import-untyped]
import pyarrow.compute as pc  # type: ignore[import-untyped]
from pydantic import Field

from safetensors_spark.factory._operator import Columns, Score

_WORD = re.compile(r"\S+")


class TextLength(Score):
    """The number of characters (code points) of a text; null for a null."""

    type = "text_length"

    field: str = Field(default="text", description="The text field.")
    output: str = Field(default="text_length", description="The new field.")

    @property
    def reads(self) -> tuple[str, ...]:
        return (self.field,)

    @property
    def writes(self) -> Mapping[str, pa.DataType]:
        return {self.output: pa.int64()}

    def score(self, batch: pa.RecordBatch) -> Columns:
        return {self.output: pc.utf8_length(batch.column(self.field)).cast(pa.int64())}


class WordCount(Score):
    """The number of words of a text, separated by white space; null for a null."""

    type = "word_count"

    field: str = Field(default="text", description="The text field.")
    output: str = Field(default="word_count", description="The new field.")

    @property
    def reads(self) -> tuple[str, ...]:
        return (self.field,)

    @property
    def writes(self) -> Mapping[str, pa.DataType]:
        return {self.output: pa.int64()}

    def score(self, batch: pa.RecordBatch) -> Columns:
        texts = batch.column(self.field).to_pylist()
        return {self.output: [None if text is None else len(_WORD.findall(text)) for text in texts]}
