"""Headers as the official library writes them: compact JSON, padded so that the byte buffer begins at a multiple of 8.

The library's order of metadata is random; here the keys are sorted, so that the same tensors give the same bytes.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping

from safetensors_spark._files.dtypes import DTYPES
from safetensors_spark._files.tensors import TensorInfo

METADATA = "__metadata__"

# Readers refuse larger ones.
MAX_HEADER_BYTES = 100_000_000

_RANKS = {name: rank for rank, name in enumerate(DTYPES)}
_ALIGNMENT = 8

# `json.dumps` makes an encoder for each of the names.
_text = json.JSONEncoder(ensure_ascii=False).encode


def order(dtype: str, name: str) -> tuple[int, bytes]:
    """The sort key of a tensor in a file: from the widest dtype on, which aligns all tensors; then by name as UTF-8."""
    return -_RANKS[dtype], name.encode()


def header_bytes(metadata: Mapping[str, str], tensors: Iterable[TensorInfo]) -> bytes:
    """The length prefix and the header. The tensors are in the order of their bytes."""
    members = [f'"{METADATA}":{sorted_json(metadata)}'] if metadata else []
    members += [
        f'{_text(one.name)}:{{"dtype":"{one.dtype}","shape":[{",".join(map(str, one.shape))}],'
        f'"data_offsets":[{one.begin},{one.end}]}}'
        for one in tensors
    ]
    content = f"{{{','.join(members)}}}".encode()
    content += b" " * (-len(content) % _ALIGNMENT)
    return len(content).to_bytes(8, "little") + content


def sorted_json(values: Mapping[str, str]) -> str:
    """A JSON object, without spaces, sorted by name as UTF-8 bytes."""
    return json.dumps(dict(sorted(values.items())), ensure_ascii=False, separators=(",", ":"))


def name_bytes(name: str) -> int:
    """The length of a name in a header, without its quotes."""
    return len(_text(name).encode()) - 2
