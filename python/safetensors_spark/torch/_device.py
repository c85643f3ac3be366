"""Batches in pinned memory, and on a device."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping
from typing import Any, Protocol

import torch
from torch import Tensor


class Transfer(Protocol):
    """Moves batches. An iteration has one of its own."""

    def send(self, batch: Any) -> Any:
        """Begins to move a batch, in the thread that made it."""

    def receive(self, sent: Any) -> Any:
        """The batch, for the caller's thread."""


class ToDevice:
    """Copies batches to a device that is not CUDA's."""

    def __init__(self, device: torch.device) -> None:
        self._device = device

    def send(self, batch: Any) -> Any:
        return each_tensor(batch, lambda tensor: tensor.to(self._device))

    def receive(self, sent: Any) -> Any:
        return sent


class ToCuda:
    """Copies batches from pinned memory to a CUDA device in a stream of its own, beside what the caller computes."""

    def __init__(self, device: torch.device) -> None:
        # Threads have a current device of their own, which need not be the caller's.
        index = torch.cuda.current_device() if device.index is None else device.index
        self._device = torch.device("cuda", index)
        self._stream = torch.cuda.Stream(self._device)

    def send(self, batch: Any) -> Any:
        with torch.cuda.device(self._device), torch.cuda.stream(self._stream):
            moved = each_tensor(batch, lambda tensor: tensor.pin_memory().to(self._device, non_blocking=True))
            return moved, self._stream.record_event()

    def receive(self, sent: Any) -> Any:
        moved, copied = sent
        stream = torch.cuda.current_stream(self._device)
        stream.wait_event(copied)
        # The memory was allocated in another stream, and must not be used again before the caller's is done with it.
        each_tensor(moved, lambda tensor: tensor.record_stream(stream))
        return moved


class ToPinned:
    """Copies batches to pinned memory, from which the caller's copies to a CUDA device need not wait."""

    def __init__(self) -> None:
        self._device = torch.cuda.current_device()

    def send(self, batch: Any) -> Any:
        with torch.cuda.device(self._device):
            return each_tensor(batch, Tensor.pin_memory)

    def receive(self, sent: Any) -> Any:
        return sent


def transfer(device: torch.device | None, pin_memory: bool) -> Transfer | None:
    """What moves the batches of an iteration; None if they stay where they are."""
    if device is not None:
        return ToCuda(device) if device.type == "cuda" else ToDevice(device)
    if pin_memory and not torch.cuda.is_available():
        warnings.warn("pin_memory has no effect: PyTorch finds no CUDA device.", stacklevel=2)
        return None
    return ToPinned() if pin_memory else None


def each_tensor(value: Any, function: Callable[[Tensor], Any]) -> Any:
    """A batch, or what a transform made of it, with the function's results in place of its tensors."""
    if isinstance(value, Tensor):
        return _nested(value, function) if value.layout == torch.jagged else function(value)
    if isinstance(value, Mapping):
        return {key: each_tensor(inner, function) for key, inner in value.items()}
    if isinstance(value, tuple) and hasattr(value, "_fields"):
        return type(value)(*(each_tensor(inner, function) for inner in value))
    if isinstance(value, list | tuple):
        return type(value)(each_tensor(inner, function) for inner in value)
    return value


def _nested(value: Tensor, function: Callable[[Tensor], Any]) -> Any:
    """Not all functions take nested tensors."""
    values, offsets = function(value.values()), function(value.offsets())
    return None if values is None else torch.nested.nested_tensor_from_jagged(values, offsets)
