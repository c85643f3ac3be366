"""Repair of wrongly decoded text."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Literal

import pyarrow as pa  # type: ignore[import-untyped]
from pydantic import Field

from safetensors_spark._extras import require
from safetensors_spark.factory._operator import Columns, Refiner

# What ftfy may change: all but printable ASCII, tabs and line ends, and entities. It would look at each line.
_MAY_CHANGE = re.compile(r"[^\t\n -%'-~]")


class UnicodeFix(Refiner):
    """Repairs text that was decoded with the wrong encoding (`schÃ¶n` is `schön`), with the library ftfy.

    It also replaces HTML entities, terminal escapes, ligatures, control characters and line ends, as
    ftfy's documentation describes, and normalises the text. Text that looks correct is kept. A null stays null.
    """

    type = "unicode_fix"

    field: str = Field(default="text", description="The text field.")
    normalization: Literal["NFC", "NFKC", "NFD", "NFKD"] | None = Field(
        default="NFC", description="The Unicode normalization form; none leaves texts as they are."
    )
    uncurl_quotes: bool = Field(default=False, description="Whether “curly” quotes become straight ones.")

    @property
    def reads(self) -> tuple[str, ...]:
        return (self.field,)

    @property
    def writes(self) -> Mapping[str, pa.DataType]:
        return {self.field: pa.string()}

    def load(self) -> None:
        require("factory", ("ftfy",))

    def refine(self, batch: pa.RecordBatch) -> Columns:
        from ftfy import TextFixerConfig, fix_text

        # Without `explain`, which makes a list of what it has done.
        config = TextFixerConfig(normalization=self.normalization, uncurl_quotes=self.uncurl_quotes, explain=False)
        texts = batch.column(self.field).to_pylist()
        return {self.field: [fix_text(text, config) if text and _MAY_CHANGE.search(text) else text for text in texts]}
