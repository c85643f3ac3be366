"""What the official library says, and how tests name what it says."""

import base64
import json
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np

JUDGE = Path(__file__).with_name("judge.py")

FORMAT = Path(__file__).parents[2] / "format"

# Bits of an element, in the library's ascending order of dtypes, which `test_schemas.py` holds it to.
BITS = {
    "BOOL": 8, "F4": 4, "F6_E2M3": 6, "F6_E3M2": 6, "U8": 8, "I8": 8,
    "F8_E5M2": 8, "F8_E4M3": 8, "F8_E8M0": 8, "F8_E4M3FNUZ": 8, "F8_E5M2FNUZ": 8,
    "I16": 16, "U16": 16, "F16": 16, "BF16": 16,
    "I32": 32, "U32": 32, "F32": 32, "C64": 64, "F64": 64, "I64": 64, "U64": 64,
}  # fmt: skip

DTYPES = list(BITS)

# The dtypes that NumPy, with ml_dtypes, has a type for.
NUMPY_TYPES: dict[str, np.dtype[Any]] = {
    name: np.dtype(scalar)
    for name, scalar in {
        "BOOL": np.bool_,
        "U8": np.uint8,
        "I8": np.int8,
        "F8_E5M2": ml_dtypes.float8_e5m2,
        "F8_E4M3": ml_dtypes.float8_e4m3fn,
        "F8_E8M0": ml_dtypes.float8_e8m0fnu,
        "F8_E4M3FNUZ": ml_dtypes.float8_e4m3fnuz,
        "F8_E5M2FNUZ": ml_dtypes.float8_e5m2fnuz,
        "I16": np.int16,
        "U16": np.uint16,
        "F16": np.float16,
        "BF16": ml_dtypes.bfloat16,
        "I32": np.int32,
        "U32": np.uint32,
        "F32": np.float32,
        "C64": np.complex64,
        "F64": np.float64,
        "I64": np.int64,
        "U64": np.uint64,
    }.items()
}


@dataclass(frozen=True)
class Tensor:
    """A tensor as the official library hands it out; `data` are its bytes."""

    dtype: str
    shape: tuple[int, ...]
    data: bytes

    @property
    def array(self) -> np.ndarray[Any, Any]:
        return np.frombuffer(self.data, NUMPY_TYPES[self.dtype]).reshape(self.shape)


@dataclass(frozen=True)
class Verdict:
    """`refused` is the name of the library's error, none where it loads the file."""

    refused: str | None
    message: str
    metadata: dict[str, str] | None
    tensors: dict[str, Tensor]


def verdicts(paths: list[Path]) -> list[Verdict]:
    """Asks the official library about all the files at once."""
    lines = "".join(json.dumps(str(path)) + "\n" for path in paths)
    answer = subprocess.run([sys.executable, str(JUDGE)], input=lines, capture_output=True, text=True, check=True)
    return [_verdict(json.loads(line)) for line in answer.stdout.splitlines()]


def load(path: Path) -> dict[str, Tensor]:
    """The tensors of a file that the official library must load."""
    [verdict] = verdicts([path])
    assert verdict.refused is None, f"{path.name}: {verdict.message}"
    return verdict.tensors


def _verdict(answer: dict[str, Any]) -> Verdict:
    tensors = {
        name: Tensor(tensor["dtype"], tuple(tensor["shape"]), base64.b64decode(tensor["data"]))
        for name, tensor in answer.get("tensors", {}).items()
    }
    return Verdict(answer.get("refused"), answer.get("message", ""), answer.get("metadata"), tensors)
