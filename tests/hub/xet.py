"""What `hf_xet` writes to a local content store: shards name the pieces of each file, xorbs have the pieces' bytes."""

import hashlib
import struct
import threading
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

_HEADER, _RECORD = 48, 48
_WITH_VERIFICATION, _WITH_SHA256 = 1 << 31, 1 << 30
_END = b"\xff" * 32
_PLAIN, _LZ4, _GROUPED_LZ4 = 0, 1, 2


@dataclass(frozen=True)
class _Piece:
    xorbs: Path
    xorb: str
    first: int
    end: int


class XetStore:
    """Folders to which clients upload. Each session has its own: `hf_xet` locks the folder that it writes to."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._files: dict[str, list[_Piece]] = {}
        self._seen: set[Path] = set()
        self._sessions = 0
        self._lock = threading.Lock()

    def new_session(self) -> Path:
        with self._lock:
            self._sessions += 1
            return self._folder / str(self._sessions)

    def write(self, sha256: str, target: Path) -> bool:
        """Write the file's bytes; False if they were not uploaded whole."""
        with self._lock:
            if sha256 not in self._files:
                self._look()
            pieces = self._files.get(sha256)
        if pieces is None:
            return False
        found = hashlib.sha256()
        with target.open("wb") as file:
            for piece in pieces:
                for chunk in _chunks(piece):
                    file.write(chunk)
                    found.update(chunk)
        if found.hexdigest() != sha256:
            target.unlink()
            return False
        return True

    def _look(self) -> None:
        """Read the shards that came since the last time."""
        for path in self._folder.glob("*/xet/xorbs/shards/*.mdb"):
            if path not in self._seen:
                self._seen.add(path)
                self._files.update(_files(path.read_bytes(), path.parents[1] / "xorbs"))


def _files(shard: bytes, xorbs: Path) -> Iterator[tuple[str, list[_Piece]]]:
    at = _HEADER
    while shard[at : at + 32] != _END:
        flags, count = struct.unpack_from("<II", shard, at + 32)
        records = [shard[at + _RECORD * (1 + index) :][:_RECORD] for index in range(count)]
        at += _RECORD * (1 + count * (2 if flags & _WITH_VERIFICATION else 1))
        if flags & _WITH_SHA256:
            pieces = [_Piece(xorbs, _name(record), *struct.unpack_from("<II", record, 40)) for record in records]
            yield _name(shard[at:]), pieces
            at += _RECORD


def _name(hashed: bytes) -> str:
    """Hashes are stored as four numbers."""
    return "".join(f"{number:016x}" for number in struct.unpack_from("<4Q", hashed))


def _chunks(piece: _Piece) -> Iterator[bytes]:
    content, at = (piece.xorbs / f"default.{piece.xorb}").read_bytes(), 0
    for index in range(piece.end):
        packed = int.from_bytes(content[at + 1 : at + 4], "little")
        if index >= piece.first:
            length = int.from_bytes(content[at + 5 : at + 8], "little")
            yield _unpacked(content[at + 4], content[at + 8 : at + 8 + packed], length)
        at += 8 + packed


def _unpacked(scheme: int, packed: bytes, length: int) -> bytes:
    if scheme == _PLAIN:
        return packed
    import pyarrow as pa  # type: ignore[import-untyped]

    content: bytes = pa.Codec("lz4").decompress(packed, decompressed_size=length, asbytes=True)
    if scheme == _LZ4:
        return content
    assert scheme == _GROUPED_LZ4, scheme
    grouped, at = bytearray(length), 0
    for first in range(4):
        size = len(range(first, length, 4))
        grouped[first::4] = content[at : at + size]
        at += size
    return bytes(grouped)
