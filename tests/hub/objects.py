"""Contents of files: regular ones by their Git name, large ones by their SHA-256, as LFS or Xet brought them."""

import hashlib
import os
import threading
from dataclasses import dataclass
from pathlib import Path

from hub.xet import XetStore


@dataclass(frozen=True)
class Blob:
    """A file of a tree. `oid` is Git's name of the blob: of the bytes, or for a large file of the pointer to them."""

    oid: str
    size: int
    sha256: str | None = None

    @property
    def pointer_size(self) -> int:
        return len(_pointer(self.sha256 or "", self.size))


class Objects:
    """The bytes of all repositories, in files below a folder."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder / "objects"
        self._folder.mkdir(parents=True, exist_ok=True)
        self.xet = XetStore(folder / "xet")
        self._count, self._lock = 0, threading.Lock()

    def add(self, content: bytes) -> Blob:
        """Store a regular file."""
        blob = Blob(_git_name(content), len(content))
        if not self._path(blob.oid).exists():
            part = self.part()
            part.write_bytes(content)
            part.replace(self._path(blob.oid))
        return blob

    def part(self) -> Path:
        """A new path for bytes that are not complete."""
        with self._lock:
            self._count += 1
            return self._folder / f"part-{os.getpid()}-{self._count}"

    def keep(self, part: Path, sha256: str) -> None:
        """Make a part, whose SHA-256 was checked, a large file."""
        part.replace(self._path(sha256))

    def large(self, sha256: str, size: int) -> Blob | None:
        """The large file; None if its bytes were not uploaded, or have another length."""
        path = self._path(sha256)
        if not path.exists() and not self._assemble(sha256):
            return None
        return Blob(_git_name(_pointer(sha256, size)), size, sha256) if path.stat().st_size == size else None

    def path(self, blob: Blob) -> Path:
        return self._path(blob.sha256 or blob.oid)

    def _assemble(self, sha256: str) -> bool:
        """Put together what Xet has brought of a large file."""
        part = self.part()
        if not self.xet.write(sha256, part):
            return False
        self.keep(part, sha256)
        return True

    def _path(self, name: str) -> Path:
        return self._folder / name


def _pointer(sha256: str, size: int) -> bytes:
    return f"version https://git-lfs.github.com/spec/v1\noid sha256:{sha256}\nsize {size}\n".encode()


def _git_name(content: bytes) -> str:
    return hashlib.sha1(b"blob %d\0" % len(content) + content).hexdigest()
