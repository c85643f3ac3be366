"""The number of tokens of a text."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pyarrow as pa  # type: ignore[import-untyped]
from pydantic import Field, PrivateAttr

from safetensors_spark._extras import require
from safetensors_spark.factory._operator import Columns, Score


class TokenCount(Score):
    """The number of tokens of a text with any tokenizer of the library `tokenizers`, and optionally the tokens.

    Special tokens, such as the one that begins a text, do not count, and long texts are not truncated. A null gives
    null.
    """

    type = "token_count"

    tokenizer: str = Field(description="The file of the tokenizer, usually `tokenizer.json`.")
    field: str = Field(default="text", description="The text field.")
    output: str = Field(default="token_count", description="The new field.")
    tokens: str | None = Field(
        default=None, description="A new field for the tokens themselves, int32; none by default."
    )

    _encoder: Any = PrivateAttr(default=None)

    @property
    def reads(self) -> tuple[str, ...]:
        return (self.field,)

    @property
    def writes(self) -> Mapping[str, pa.DataType]:
        further = {} if self.tokens is None else {self.tokens: pa.list_(pa.int32())}
        return {self.output: pa.int64(), **further}

    @property
    def files(self) -> tuple[str, ...]:
        return (self.tokenizer,)

    def load(self) -> None:
        self._encoder = _tokenizer(self.tokenizer)

    def score(self, batch: pa.RecordBatch) -> Columns:
        texts = batch.column(self.field).to_pylist()
        there = [text for text in texts if text is not None]
        # Offsets are not needed, and take a third of the time.
        encoded = iter(self._encoder.encode_batch_fast(there, add_special_tokens=False))
        found = [None if text is None else next(encoded).ids for text in texts]
        columns: dict[str, Any] = {self.output: [None if ids is None else len(ids) for ids in found]}
        return columns if self.tokens is None else {**columns, self.tokens: found}


def _tokenizer(path: str) -> Any:
    require("factory", ("tokenizers",))
    from tokenizers import Tokenizer

    if not Path(path).is_file():
        raise FileNotFoundError(f"{path}, the tokenizer of `token_count`, does not exist: name a file `tokenizer.json`")
    try:
        found = Tokenizer.from_file(path)
    except Exception as error:
        # The library raises no other class.
        raise ValueError(f"{path} is not a file of the library `tokenizers`: {error}") from None
    found.no_padding()
    found.no_truncation()
    return found
