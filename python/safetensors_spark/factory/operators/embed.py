"""Embeddings of texts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Literal

import numpy as np
import pyarrow as pa  # type: ignore[import-untyped]
from pydantic import Field, PrivateAttr

from safetensors_spark.factory._errors import ConfigError
from safetensors_spark.factory._operator import Columns, Score
from safetensors_spark.factory.operators._models import (
    computing,
    in_batches,
    load_model,
    load_tokenizer,
    most_tokens,
    padded,
    place_of,
    read,
)

Pooling = Literal["mean", "cls", "max", "last"]

# As configurations of sentence-transformers name them.
_POOLING: dict[str, Pooling] = {
    "pooling_mode_mean_tokens": "mean",
    "pooling_mode_cls_token": "cls",
    "pooling_mode_max_tokens": "max",
    "pooling_mode_lasttoken": "last",
    "mean": "mean",
    "cls": "cls",
    "max": "max",
    "lasttoken": "last",
}


class Embed(Score):
    """The embedding of a text by a sentence encoder: a float32 list of fixed length.

    The model is a folder as `save_pretrained` writes it, or a model of sentence-transformers, whose files also say how
    its tokens are pooled and whether the result is normalized; the weights are safetensors. The code is that of
    transformers. If the folder's content changes, the stage changes. Texts are truncated to `max_tokens`. A null gives
    null. An empty text has the embedding of only the special tokens, or null if the tokenizer adds none.

    On a CPU the bytes of an embedding depend only on its text, the model and the machine: texts are computed one by
    one, on one thread of each worker. On GPUs (`gpus`) texts of similar length are computed `batch_size` at a time,
    and the last bits of an embedding depend on the other texts in its batch. It needs the extra `factory-models`.
    """

    type = "embed"

    model: str = Field(description="The folder of the model: config.json, tokenizer.json and *.safetensors.")
    field: str = Field(default="text", description="The text field.")
    output: str = Field(default="embedding", description="The new field.")
    pooling: Pooling | None = Field(
        default=None,
        description="How the tokens' vectors are pooled: their mean or maximum, or the first (`cls`) or last one. By "
        "default what 1_Pooling/config.json says, and `mean` without one.",
    )
    normalize: bool | None = Field(
        default=None, description="Whether to scale it to length 1. By default, what modules.json says."
    )
    max_tokens: int | None = Field(
        default=None, ge=1, description="The maximum number of tokens of a text. By default what the model's files say."
    )
    prefix: str = Field(default="", description="A prefix of each text, such as `query: `, if the model needs it.")
    batch_size: int = Field(default=32, ge=1, description="The number of texts computed at a time on a GPU.")

    _encoder: Any = PrivateAttr(default=None)

    @property
    def reads(self) -> tuple[str, ...]:
        return (self.field,)

    @property
    def writes(self) -> Mapping[str, pa.DataType]:
        place = place_of(self, self.model)
        config = read(place, "config.json")
        names = ("hidden_size", "dim", "d_model", "n_embd")
        sizes = [config[name] for name in names if isinstance(config.get(name), int)]
        if not sizes:
            raise ConfigError(f"{place}/config.json has none of {', '.join(names)}, so the length is not known.")
        return {self.output: pa.list_(pa.float32(), sizes[0])}

    @property
    def files(self) -> tuple[str, ...]:
        return (self.model,)

    def load(self) -> None:
        place = place_of(self, self.model)
        parts = [str(one["type"]).rpartition(".")[2] for one in read(place, "modules.json") or ()]
        if unknown := [one for one in parts if one not in ("Transformer", "Pooling", "Normalize")]:
            raise ConfigError(
                f"{place}/modules.json has the module {unknown[0]}, which `embed` does not compute: take `map_batches` "
                "with a function of sentence-transformers."
            )
        normalize = "Normalize" in parts if self.normalize is None else self.normalize
        tokens = most_tokens(place) if self.max_tokens is None else self.max_tokens
        pooling = self.pooling or _pooling_of(read(place, "1_Pooling/config.json"))
        self._encoder = Encoder(
            load_model(self, place, "AutoModel"),
            load_tokenizer(place),
            pooling,
            normalize=normalize,
            max_tokens=tokens,
            batch_size=self.batch_size if self.gpus else 1,
        )

    def score(self, batch: pa.RecordBatch) -> Columns:
        kind = self.writes[self.output]
        texts = batch.column(self.field).to_pylist()
        there = {row: self.prefix + text for row, text in enumerate(texts) if text is not None}
        found = self._encoder(there)
        values = np.zeros((len(texts), kind.list_size), np.float32)
        for row, vector in found.items():
            values[row] = vector
        absent = pa.array([row not in found for row in range(len(texts))], pa.bool_())
        return {self.output: pa.FixedSizeListArray.from_arrays(pa.array(values.reshape(-1)), type=kind, mask=absent)}


def _pooling_of(config: Mapping[str, Any]) -> Pooling:
    """What a file of sentence-transformers says."""
    asked = [name for name, value in config.items() if name.startswith("pooling_mode_") and value is True]
    if config.get("pooling_mode"):
        asked = [str(config["pooling_mode"])]
    if not asked:
        return "mean"
    if len(asked) > 1 or asked[0] not in _POOLING:
        raise ConfigError(
            f"1_Pooling/config.json asks for {' and '.join(asked)}, which `embed` does not compute. Choose one of "
            "mean, cls, max, last by `pooling`."
        )
    return _POOLING[asked[0]]


class Encoder:
    """A model that makes a vector of a text."""

    def __init__(
        self, model: Any, tokenizer: Any, pooling: Pooling, *, normalize: bool, max_tokens: int, batch_size: int
    ) -> None:
        self._model, self._tokenizer = model, tokenizer
        self._pooling, self._normalize, self._batch_size = pooling, normalize, batch_size
        tokenizer.enable_truncation(max_tokens)

    def __call__(self, texts: Mapping[int, str]) -> dict[int, Any]:
        """The vectors of texts that have a token, float32, by the texts' numbers."""
        encoded = self._tokenizer.encode_batch(list(texts.values()))
        rows = {row: one.ids for row, one in zip(texts, encoded, strict=True) if one.ids}
        return in_batches(rows, self._batch_size, lambda some: self._vectors([rows[row] for row in some]))

    def _vectors(self, rows: Sequence[Sequence[int]]) -> Any:
        from torch.nn.functional import normalize

        tokens, mask = padded(rows, self._model.config.pad_token_id or 0, left=False, device=self._model.device)
        with computing():
            states = self._model(input_ids=tokens, attention_mask=mask).last_hidden_state
            found = self._pooled(states, mask)
            return (normalize(found, dim=1) if self._normalize else found).cpu().numpy()

    def _pooled(self, states: Any, mask: Any) -> Any:
        """One vector for each row, from states of shape rows x tokens x length."""
        import torch

        if self._pooling == "cls":
            return states[:, 0]
        if self._pooling == "last":
            return states[torch.arange(len(states), device=states.device), mask.sum(1) - 1]
        if self._pooling == "max":
            return states.masked_fill(mask[:, :, None] == 0, float("-inf")).amax(1)
        weights = mask[:, :, None].to(states.dtype)
        return (states * weights).sum(1) / weights.sum(1)
