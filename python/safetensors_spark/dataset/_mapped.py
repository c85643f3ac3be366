"""The bytes of a file, mapped without a file descriptor, of which a process may have few."""

from __future__ import annotations

import ctypes
import mmap
import os
import sys
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import BinaryIO

import numpy as np

from safetensors_spark._errors import SafetensorsSparkError
from safetensors_spark._files.numpy_dtypes import Array
from safetensors_spark._files.storage import FileVersion

# Smaller files are read, which takes less time than to map them.
_SMALL = 64 << 10
# Linux refuses a private map of more bytes than it has memory, unless told to reserve none. Python 3.13 has the number.
_NO_RESERVE = getattr(mmap, "MAP_NORESERVE", 0x4000 if sys.platform == "linux" else 0)


@dataclass(frozen=True)
class Mapped:
    """A file's bytes as a read-only array. The map lasts as long as arrays that look at it.

    PyTorch writes to read-only arrays too. Such writes change private memory of this process, and never the file.
    """

    data: Array
    version: FileVersion | str
    # Where the file was mapped, and which one it is; None where nobody can take its bytes away.
    _path: bytes | None = None
    _file: tuple[int, int] | None = None

    def cut_to(self) -> int | None:
        """The length of the file, if somebody has cut it off since. To touch the bytes that it had ends the process."""
        if self._path is None:
            return None
        try:
            # Of a `Path` it would take twice as long.
            now = os.stat(self._path)  # noqa: PTH116
        except OSError:
            # A file that was deleted has its bytes for as long as it is mapped.
            return None
        # So has one in whose place another file is.
        is_cut = now.st_size < len(self.data) and (now.st_dev, now.st_ino) == self._file
        return now.st_size if is_cut else None


def mapped(file: BinaryIO) -> Mapped:
    """The bytes of a file that was opened by its path."""
    found = os.fstat(file.fileno())
    version = FileVersion.of(found)
    if found.st_size < _SMALL:
        return Mapped(np.frombuffer(file.read(), np.uint8), version)
    if sys.platform == "win32":
        # Windows cuts no file off that is mapped.
        return Mapped(
            _read_only(np.frombuffer(mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_COPY), np.uint8)), version
        )
    try:
        data = np.asarray(_Map(file.fileno(), found.st_size))
    except OSError as error:
        raise SafetensorsSparkError(
            f"{file.name} has {found.st_size:,} bytes, which this process cannot map: {error.strerror}. Give it more "
            "memory or addresses."
        ) from None
    return Mapped(data, version, os.fsencode(Path(file.name).absolute()), (found.st_dev, found.st_ino))


# From Python 3.13 on, `mmap.mmap(..., trackfd=False)` does the same.
class _Map:
    """A private map, for `numpy.asarray`."""

    _address: int | None = None

    def __init__(self, descriptor: int, length: int) -> None:
        protection, flags = mmap.PROT_READ | mmap.PROT_WRITE, mmap.MAP_PRIVATE | _NO_RESERVE
        address = _libc().mmap(None, length, protection, flags, descriptor, 0)
        if address == ctypes.c_void_p(-1).value:
            number = ctypes.get_errno()
            raise OSError(number, os.strerror(number))
        self._address, self._length, self._unmap = address, length, _libc().munmap
        self.__array_interface__ = {"data": (address, True), "shape": (length,), "typestr": "|u1", "version": 3}

    def __del__(self) -> None:
        if self._address is not None:
            self._unmap(self._address, self._length)


@cache
def _libc() -> ctypes.CDLL:
    libc = ctypes.CDLL(None, use_errno=True)
    pointer, size, number = ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int
    libc.mmap.argtypes, libc.mmap.restype = (pointer, size, number, number, number, ctypes.c_long), pointer
    libc.munmap.argtypes = (pointer, size)
    return libc


def _read_only(array: Array) -> Array:
    array.flags.writeable = False
    return array
