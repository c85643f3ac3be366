"""The official library's verdict on files, in a process of its own.

Run as `python judge.py`: reads a JSON list of paths on standard input, answers a JSON object by path on
standard output. A file that the library loads: `{"metadata": {...} or null, "tensors": {name: {"dtype",
"shape", "data"}}}`, with `data` in base64. A file that it refuses: `{"refused": name, "message": text}`, with
the name of the library's error.
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


def error_name(message: str) -> str:
    text = message.removeprefix("Error while deserializing: ")
    [name] = [name for begin, name in ERROR_NAMES.items() if text.startswith(begin)]
    return name


def metadata(path: str) -> dict[str, str] | None:
    with safe_open(path, framework="np") as file:
        found: dict[str, str] | None = file.metadata()
    return found


def verdict(path: str) -> dict[str, Any]:
    try:
        tensors = deserialize(Path(path).read_bytes())  # type: ignore[no-untyped-call]
    except SafetensorError as error:
        return {"refused": error_name(str(error)), "message": str(error)}
    return {
        "metadata": metadata(path),
        "tensors": {
            name: {
                "dtype": tensor["dtype"],
                "shape": tensor["shape"],
                "data": base64.b64encode(tensor["data"]).decode(),
            }
            for name, tensor in tensors
        },
    }


if __name__ == "__main__":
    json.dump({path: verdict(path) for path in json.load(sys.stdin)}, sys.stdout)
