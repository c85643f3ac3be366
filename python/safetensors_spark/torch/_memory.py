"""Memory that a batch's tensors are made in: the consumer's own, or what worker processes share with it."""

from __future__ import annotations

import os
from collections.abc import Iterable

import torch
from torch import Tensor
from torch.multiprocessing import get_sharing_strategy
from torch.utils.data import get_worker_info

from safetensors_spark.dataset._gather import Rows
from safetensors_spark.dataset._memory import Memory, Own


class Shared:
    """Rows of bytes in shared memory, which a DataLoader sends without copying them.

    They are written to its file, where there is one: for what is written to mapped memory the kernel first clears each
    page and maps it in this process, which takes longer than to copy the bytes.
    """

    def __init__(self, count: int, width: int) -> None:
        self._storage = torch.UntypedStorage._new_shared(count * width)

    def tensor(self, dtype: torch.dtype, shape: tuple[int, ...]) -> Tensor:
        return torch.empty(0, dtype=dtype).set_(self._storage, 0, shape)

    def fill(self, pieces: Iterable[memoryview]) -> None:
        put = self._write if get_sharing_strategy() == "file_descriptor" else self._copy
        at = 0
        for piece in pieces:
            put(piece, at)
            at += len(piece)

    def gather(self, rows: Rows, begin: int, end: int) -> None:
        self.fill(piece.reshape(-1).data for piece in rows.pieces(begin, end))

    def _write(self, left: memoryview, at: int) -> None:
        # The storage's own, which DataLoader sends: it is not to be closed.
        file, _ = self._storage._share_fd_cpu_()
        while left:
            written = os.pwrite(file, left, at)
            left, at = left[written:], at + written

    def _copy(self, content: memoryview, at: int) -> None:
        self.tensor(torch.uint8, (self._storage.nbytes(),)).numpy().data[at : at + len(content)] = content


def new(dtype: torch.dtype, shape: tuple[int, ...], width: int) -> tuple[Tensor, Memory]:
    """A tensor of rows of so many bytes, and its memory: in a worker process of a DataLoader it is shared."""
    if shape[0] * width and get_worker_info() is not None:
        shared = Shared(shape[0], width)
        return shared.tensor(dtype, shape), shared
    own = Own(shape[0], width)
    if own.rows.size == 0:
        return torch.empty(shape, dtype=dtype), own
    return torch.frombuffer(own.rows, dtype=dtype).view(shape), own
