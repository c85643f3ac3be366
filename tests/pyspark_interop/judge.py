"""The official library's verdict on files, in a process of its own.

Run as `python judge.py`: reads a path in each line of standard input, as a JSON string, and answers with a line
of JSON on standard output. A file that the library loads: `{"metadata": {...} or null, "tensors": {name: {"dtype",
"shape", "data"}}}`, with `data` in base64. A file that it refuses: `{"refused": name, "message": text}`, with
the name of the library's error.

The library reads a file in two ways. `deserialize`, of bytes in memory, is the judge, since it hands out tensors of
any dtype and shape. Where `safe_open`, of a file, does not agree, the answer has `{"safe_open": what it says}` too.
"""

import base64
import json
import sys
from pathlib import Path
from typing import Any

from safetensors import SafetensorError, deserialize, safe_open

# The Python binding gives the text of an error alone. Each text begins in its own way.
ERROR_NAMES = {
    "invalid UTF-8 in header": "InvalidHeader",
    "invalid JSON in header": "InvalidHeaderDeserialization",
    "header too large": "HeaderTooLarge",
    "header too small": "HeaderTooSmall",
    "invalid header length": "InvalidHeaderLength",
    "invalid shape, data type, or offset": "TensorInvalidInfo",
    "invalid offset for tensor": "InvalidOffset",
    "incomplete metadata": "MetadataIncompleteBuffer",
    "overflow computing buffer size": "ValidationOverflow",
    "The slice is slicing for subbytes": "MisalignedSlice",
}

Answer = dict[str, Any]


def refused(error: SafetensorError) -> Answer:
    text = str(error).removeprefix("Error while deserializing: ").removeprefix("Error while deserializing header: ")
    [name] = [name for begin, name in ERROR_NAMES.items() if text.startswith(begin)]
    return {"refused": name, "message": str(error)}


def in_memory(path: str) -> Answer:
    try:
        tensors = deserialize(Path(path).read_bytes())  # type: ignore[no-untyped-call]
    except SafetensorError as error:
        return refused(error)
    return {
        "tensors": {
            name: {
                "dtype": tensor["dtype"],
                "shape": tensor["shape"],
                "data": base64.b64encode(tensor["data"]).decode(),
            }
            for name, tensor in tensors
        },
    }


def opened(path: str) -> Answer:
    try:
        with safe_open(path, framework="np") as file:
            slices = {name: file.get_slice(name) for name in file.keys()}  # noqa: SIM118 - it is no dict
            return {
                "metadata": file.metadata(),
                "tensors": {name: [part.get_dtype(), part.get_shape()] for name, part in slices.items()},
            }
    except SafetensorError as error:
        return refused(error)


def agree(found: Answer, again: Answer) -> bool:
    if "refused" in found or "refused" in again:
        return found.get("refused") == again.get("refused")
    tensors = {name: [tensor["dtype"], tensor["shape"]] for name, tensor in found["tensors"].items()}
    return bool(tensors == again["tensors"])


def verdict(path: str) -> Answer:
    found, again = in_memory(path), opened(path)
    told = {"metadata": again.get("metadata")} if "tensors" in found else {}
    return {**told, **found, **({} if agree(found, again) else {"safe_open": again})}


if __name__ == "__main__":
    for line in sys.stdin:
        print(json.dumps(verdict(json.loads(line))), flush=True)
