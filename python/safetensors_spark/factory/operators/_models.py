"""Models in folders, as `save_pretrained` of the library `transformers` writes them, in PyTorch.

On a CPU each row is computed alone, without padding, and on one thread: so the bits of its result depend only on
the row. That costs little there, and more workers use more cores. On a GPU rows are computed in batches, in which the
last bits of a result depend on the other rows of the batch.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from threading import Lock
from typing import Any, TypeVar

from safetensors_spark._extras import require
from safetensors_spark.factory._errors import ConfigError
from safetensors_spark.factory._loaded import require_gpu
from safetensors_spark.factory._operator import Operator

# Threads of a process take turns, since PyTorch has one number of threads for all of them.
_turn = Lock()

_T = TypeVar("_T")


def place_of(operator: Operator, model: str) -> Path:
    """The folder of a model. Raises `ConfigError` if a required file is missing."""
    place = Path(model).expanduser()
    missing = [name for name in ("config.json", "tokenizer.json") if not (place / name).is_file()]
    missing += [] if any(place.glob("*.safetensors")) else ["*.safetensors"]
    if missing:
        told = f"has no {', '.join(missing)}" if place.is_dir() else "is not a folder"
        raise ConfigError(
            f"`{operator.id or operator.type}`: {place} {told}, expected a model with config.json, tokenizer.json and "
            "*.safetensors, as `save_pretrained` of transformers writes them."
        )
    return place


def read(place: Path, name: str) -> Any:
    """The content of a JSON file in a model's folder; an empty object if it does not exist."""
    file = place / name
    try:
        return json.loads(file.read_bytes()) if file.is_file() else {}
    except ValueError as error:
        raise ConfigError(f"{file} is not JSON: {error}.") from None


def most_tokens(place: Path) -> int:
    """The maximum number of tokens of the model, according to its files."""
    found = [
        read(place, "sentence_bert_config.json").get("max_seq_length"),
        read(place, "tokenizer_config.json").get("model_max_length"),
        *(read(place, "config.json").get(name) for name in ("max_position_embeddings", "n_positions")),
    ]
    # Tokenizers without a limit have one of 10^30.
    return min((int(one) for one in found if one and one < 1e9), default=512)


def load_tokenizer(place: Path) -> Any:
    """The tokenizer, without padding and truncation."""
    require("factory", ("tokenizers",))
    from tokenizers import Tokenizer

    found = Tokenizer.from_file(str(place / "tokenizer.json"))
    found.no_padding()
    found.no_truncation()
    return found


def load_model(operator: Operator, place: Path, kind: str) -> Any:
    """A model in float32, of a transformers class such as `AutoModel`, on the operator's device."""
    require("factory-models", ("torch", "transformers"))
    import torch
    import transformers
    from transformers.utils import logging

    shows = logging.is_progress_bar_enabled()
    logging.disable_progress_bar()
    try:
        model = getattr(transformers, kind).from_pretrained(
            place, local_files_only=True, use_safetensors=True, dtype=torch.float32
        )
    finally:
        if shows:
            logging.enable_progress_bar()
    if not operator.gpus:
        return model.eval()
    require_gpu(operator)
    return model.eval().to(torch.accelerator.current_accelerator())


@contextmanager
def computing() -> Iterator[None]:
    """Use one thread, and no gradients."""
    import torch

    with _turn, torch.inference_mode():
        threads = torch.get_num_threads()
        torch.set_num_threads(1)
        try:
            yield
        finally:
            torch.set_num_threads(threads)


def in_batches(
    rows: Mapping[int, Sequence[int]], size: int, compute: Callable[[list[int]], Sequence[_T]]
) -> dict[int, _T]:
    """The results for rows, by their numbers.

    Args:
        rows: the tokens of each row; rows of similar length are in one batch.
        compute: gets the numbers of at most `size` rows.
    """
    order = sorted(rows, key=lambda row: (len(rows[row]), row))
    found: dict[int, _T] = {}
    for begin in range(0, len(order), size):
        some = order[begin : begin + size]
        found.update(zip(some, compute(some), strict=True))
    return found


def padded(rows: Sequence[Sequence[int]], pad: int, *, left: bool, device: Any) -> tuple[Any, Any]:
    """Tokens and their mask: int64, of shape rows x tokens of the longest row."""
    import torch

    length = max(map(len, rows))
    tokens, mask = (torch.full((len(rows), length), value, dtype=torch.int64) for value in (pad, 0))
    for row, ids in enumerate(rows):
        place = slice(length - len(ids), length) if left else slice(len(ids))
        tokens[row, place] = torch.tensor(ids, dtype=torch.int64)
        mask[row, place] = 1
    return tokens.to(device), mask.to(device)
