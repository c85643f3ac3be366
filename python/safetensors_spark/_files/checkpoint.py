"""`model.safetensors.index.json`: the file of each tensor of a checkpoint, as Hugging Face's libraries write it."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping

from safetensors_spark._errors import InvalidCheckpointError
from safetensors_spark._files.json_text import parse_json
from safetensors_spark._files.storage import Folder, is_plain_name

# A variant of the weights has an index such as `model.safetensors.index.fp16.json`.
_NAME = re.compile(r"[^_.].*\.safetensors\.index(?P<variant>\.[^.]+)?\.json", re.DOTALL)
# As of a header, which says more of each tensor.
_LARGEST = 100_000_000


def is_index(name: str) -> bool:
    """Whether a file by this name is the index of a checkpoint."""
    return _NAME.fullmatch(name) is not None


def index_among(names: Iterable[str], location: str) -> str | None:
    """The index of the checkpoint in a folder, or None. A variant's counts only where there is no other.

    Raises `InvalidCheckpointError` if there are several.
    """
    found = [match for match in map(_NAME.fullmatch, sorted(names)) if match]
    indexes = [match.string for match in found if not match["variant"]] or [match.string for match in found]
    if len(indexes) > 1:
        raise InvalidCheckpointError(
            f"{location} has several checkpoint indexes: {', '.join(indexes)}. Give the path of one of them."
        )
    return indexes[0] if indexes else None


def read_weights(folder: Folder, name: str) -> Mapping[str, str]:
    """The file of each tensor, by the index of this name. Raises `InvalidCheckpointError`, or `FileNotFoundError`."""
    path = f"{folder.location}/{name}"
    if (length := folder.size(name)) > _LARGEST:
        raise _invalid(path, f"it has {length:,} bytes, and at most {_LARGEST:,} are read")
    try:
        weights = parse_json(folder.read(name))["weight_map"]
    except (ValueError, KeyError, TypeError):
        raise _invalid(path, "it is not JSON with an object `weight_map`") from None
    if not isinstance(weights, dict) or not weights:
        raise _invalid(path, "its `weight_map` is not an object with tensors")
    for tensor, file in weights.items():
        if not isinstance(file, str) or not is_plain_name(file):
            raise _invalid(
                path, f"tensor `{tensor:.200}` is in {file!r:.100}, which is not the name of a file beside it"
            )
    return weights


def _invalid(path: str, what: str) -> InvalidCheckpointError:
    return InvalidCheckpointError(
        f"{path} is not a valid checkpoint index: {what}. Correct it, or give the path of a safetensors file."
    )
