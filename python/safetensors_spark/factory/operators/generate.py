"""Texts that a language model writes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from hashlib import blake2b
from string import Formatter
from typing import Any

import pyarrow as pa  # type: ignore[import-untyped]
from pydantic import Field, PrivateAttr, field_validator

from safetensors_spark._errors import counted
from safetensors_spark.factory._operator import Columns, Generator
from safetensors_spark.factory.operators._models import (
    computing,
    in_batches,
    load_model,
    load_tokenizer,
    most_tokens,
    padded,
    place_of,
)


class Generate(Generator):
    """A text that a causal language model writes after a prompt, which is built from fields of the row.

    The model is a folder as `save_pretrained` of transformers writes it, with safetensors weights and a
    `tokenizer.json`, and its code is that of transformers. If the folder's content changes, the stage changes. A row
    with a null in a field of the prompt gives null. A prompt that leaves no room for the new tokens is an error.

    Random numbers are computed from `seed`, the row's `key` and the number of the token. So a row's text does not
    depend on other rows or on workers, and rows with equal keys and prompts have equal texts: use an id as the key to
    get different ones. On a CPU rows are computed one by one, so this holds exactly; on GPUs (`gpus`) prompts of
    similar length are computed `batch_size` at a time, and rounding may change the choice between two tokens of nearly
    equal likelihood. It needs the extra `factory-models`.
    """

    type = "generate"

    model: str = Field(description="The folder of the model: config.json, tokenizer.json and *.safetensors.")
    prompt: str = Field(
        default="{text}",
        description="The prompt, with fields in braces: `Question: {question}\\nAnswer:`. `{{` is a brace.",
    )
    output: str = Field(default="generated", description="The new field.")
    max_new_tokens: int = Field(default=64, ge=1, description="The maximum number of tokens of a text.")
    temperature: float = Field(default=1.0, ge=0, description="The sampling temperature; 0 takes the likeliest token.")
    top_p: float = Field(
        default=1.0,
        gt=0,
        le=1,
        description="Tokens are sampled from the likeliest ones, whose probabilities sum to this.",
    )
    key: str | None = Field(
        default=None, description="The field that seeds random numbers, such as an id; by default the prompt."
    )
    batch_size: int = Field(default=16, ge=1, description="The number of rows computed at a time on a GPU.")

    _writer: Any = PrivateAttr(default=None)

    @field_validator("prompt")
    @classmethod
    def _has_fields(cls, value: str) -> str:
        _fields(value)
        return value

    @property
    def reads(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys([*_fields(self.prompt), *([] if self.key is None else [self.key])]))

    @property
    def writes(self) -> Mapping[str, pa.DataType]:
        return {self.output: pa.string()}

    @property
    def files(self) -> tuple[str, ...]:
        return (self.model,)

    def load(self) -> None:
        place = place_of(self, self.model)
        model = load_model(self, place, "AutoModelForCausalLM")
        self._writer = Writer(
            model,
            load_tokenizer(place),
            most_tokens=most_tokens(place) - self.max_new_tokens,
            new_tokens=self.max_new_tokens,
            temperature=self.temperature,
            top_p=self.top_p,
            batch_size=self.batch_size if self.gpus else 1,
        )

    def generate(self, batch: pa.RecordBatch) -> Columns:
        fields = {name: batch.column(name).to_pylist() for name in _fields(self.prompt)}
        rows = (dict(zip(fields, values, strict=True)) for values in zip(*fields.values(), strict=True))
        prompts = {
            row: self.prompt.format_map(values)
            for row, values in enumerate(rows)
            if not any(value is None for value in values.values())
        }
        keys: Mapping[int, Any] = prompts if self.key is None else dict(enumerate(batch.column(self.key).to_pylist()))
        start = blake2b(str(self.seed).encode(), digest_size=16).digest()
        found = self._writer(prompts, {row: _digest(start, keys[row]) for row in prompts})
        return {self.output: [found.get(row) for row in range(batch.num_rows)]}


def _fields(prompt: str) -> list[str]:
    """The fields that a prompt names. Raises `ValueError` for anything else in braces."""
    found = []
    for _, name, form, conversion in Formatter().parse(prompt):
        if name is None:
            continue
        if not name or form or conversion or set(name) & set(".[]"):
            raise ValueError(f"{prompt!r} has braces with {name!r}, expected the name of a field in them")
        found.append(name)
    if not found:
        raise ValueError(f"{prompt!r} names no field: put one in braces, such as {{text}}")
    return found


def _digest(start: bytes, key: Any) -> bytes:
    """Distinguishes keys, including null."""
    content = key if isinstance(key, bytes) else str(key).encode("utf-8", "surrogatepass")
    return blake2b((b"n" if key is None else b"v" + content), key=start, digest_size=16).digest()


def drawn(key: bytes, step: int) -> float:
    """A number from 0 to 1, determined by a key and the number of a token."""
    digest = blake2b(step.to_bytes(8, "little"), key=key, digest_size=8).digest()
    return (int.from_bytes(digest, "little") >> 11) / 2**53


class Writer:
    """A model that continues prompts."""

    def __init__(
        self,
        model: Any,
        tokenizer: Any,
        *,
        most_tokens: int,
        new_tokens: int,
        temperature: float,
        top_p: float,
        batch_size: int,
    ) -> None:
        from transformers import GenerationConfig

        self._model, self._tokenizer = model, tokenizer
        self._most_tokens, self._temperature, self._top_p = most_tokens, temperature, top_p
        self._batch_size = batch_size
        ends = model.generation_config.eos_token_id
        self._ends = set(ends if isinstance(ends, list) else [] if ends is None else [ends])
        self._pad = next((one for one in (model.config.pad_token_id, *sorted(self._ends)) if one is not None), 0)
        # The model's own settings might sample, or punish repetitions, which only the operator's say.
        model.generation_config = GenerationConfig(
            max_new_tokens=new_tokens, do_sample=False, eos_token_id=ends, pad_token_id=self._pad
        )

    def __call__(self, prompts: Mapping[int, str], keys: Mapping[int, bytes]) -> dict[int, str]:
        """The texts after prompts, by their numbers."""
        encoded = self._tokenizer.encode_batch(list(prompts.values()))
        rows = {row: one.ids for row, one in zip(prompts, encoded, strict=True)}
        for row, ids in rows.items():
            if not 0 < len(ids) <= self._most_tokens:
                raise ValueError(
                    f"a prompt has {counted(len(ids), 'token')}, expected 1 to {self._most_tokens:,}, which leaves "
                    f"room for the new ones. It begins with {prompts[row][:80]!r}. Shorten the fields or the new "
                    "tokens; `on_error: quarantine` of the stage drops such rows"
                )
        return in_batches(
            rows, self._batch_size, lambda some: self._texts([rows[row] for row in some], [keys[row] for row in some])
        )

    def _texts(self, rows: Sequence[Sequence[int]], keys: Sequence[bytes]) -> list[str]:
        tokens, mask = padded(rows, self._pad, left=True, device=self._model.device)
        chooses = [self._choice(keys)] if self._temperature else []
        with computing():
            found = self._model.generate(input_ids=tokens, attention_mask=mask, logits_processor=chooses)
        return [self._text(ids) for ids in found[:, tokens.shape[1] :].tolist()]

    def _text(self, ids: Sequence[int]) -> str:
        end = next((place for place, one in enumerate(ids) if one in self._ends), len(ids))
        text: str = self._tokenizer.decode(ids[:end], skip_special_tokens=True)
        return text

    def _choice(self, keys: Sequence[bytes]) -> Any:
        """A logits processor that keeps one token of each row, drawn by the row's key."""
        import torch

        step = -1

        def choose(_: Any, scores: Any) -> Any:
            nonlocal step
            step += 1
            likely = torch.softmax(scores.cpu().double() / self._temperature, -1)
            shares, order = likely.sort(dim=-1, descending=True, stable=True)
            sums = shares.cumsum(-1)
            if self._top_p < 1:
                # The first that reaches the share is one of them.
                count = (sums < self._top_p).sum(-1, keepdim=True)
                total = sums.gather(1, count.clamp(max=sums.shape[1] - 1))
            else:
                total = sums[:, -1:]
            points = torch.tensor([[drawn(key, step)] for key in keys], dtype=torch.float64) * total
            places = torch.searchsorted(sums, points, right=True).clamp(max=sums.shape[1] - 1)
            chosen = order.gather(1, places).to(scores.device)
            return torch.full_like(scores, float("-inf")).scatter(1, chosen, 0.0)

        return choose
