"""Operators that are loaded, once in each process."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path
from threading import Lock

from safetensors_spark._errors import PipelineError
from safetensors_spark.factory._operator import Operator
from safetensors_spark.pipeline._failures import with_note
from safetensors_spark.pipeline._fingerprint import fingerprint

_loaded: dict[str, Operator] = {}
_lock = Lock()


def loaded(operators: Iterable[Operator]) -> tuple[Operator, ...]:
    """The operators, loaded in this process. Those of the stage before are let go, with their models.

    Raises what an operator raises, and `PipelineError` for one that asks for a GPU where there is none.
    """
    with _lock:
        wanted = {_key(one): one for one in operators}
        for key in [key for key in _loaded if key not in wanted]:
            del _loaded[key]
        for key, one in wanted.items():
            if key not in _loaded:
                _loaded[key] = _load(one)
        return tuple(_loaded[key] for key in wanted)


def _load(operator: Operator) -> Operator:
    # The caller's own, which is sent to other processes, stays without what is loaded.
    found = operator.model_copy()
    try:
        if found.gpus:
            require_gpu(found)
        found.load()
    except Exception as error:
        with_note(error, f"In `load` of operator `{operator.id}`")
        raise
    return found


def _key(operator: Operator) -> str:
    """Tells operators apart by what they do, and by the files that they read, whose sizes and times stand for them."""
    return fingerprint([operator, [list(_files(path)) for path in operator.files]])


def _files(path: str) -> Iterator[tuple[str, int, int]]:
    place = Path(path).expanduser()
    for file in sorted(place.rglob("*")) if place.is_dir() else [place]:
        if file.is_file():
            status = file.stat()
            yield str(file), status.st_size, status.st_mtime_ns


def require_gpu(operator: Operator) -> None:
    """Raise `PipelineError` if PyTorch finds no GPU in this process."""
    try:
        from torch import accelerator
    except ImportError:
        reason = "PyTorch, which would find one, is not installed"
    else:
        if accelerator.is_available():
            return
        reason = "PyTorch finds none"
    raise PipelineError(
        f"`{operator.id}` asks for {operator.gpus:g} GPU, but {reason} in this process. Set `gpus` to 0, or take the "
        "backend `ray` on a cluster that has GPUs."
    )
