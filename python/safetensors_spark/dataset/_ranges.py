"""Many parts of remote files in few requests."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from safetensors_spark._files.remote import RemoteFolder

# Parts that lie no farther from each other are one request, which costs about as much as so many bytes.
_GAP = 64 << 10
# Who keeps one array keeps all of the request that brought it.
_MOST = 8 << 20

# A file's name, and its bytes from the first number to before the second.
Range = tuple[str, int, int]


@dataclass
class _Request:
    name: str
    start: int
    end: int

    def take(self, wanted: Range) -> bool:
        """Whether the range becomes a part of this request."""
        name, start, end = wanted
        end = max(end, self.end)
        if name != self.name or start - self.end > _GAP or (end > self.end and end - self.start > _MOST):
            return False
        self.end = end
        return True


def read_ranges(folder: RemoteFolder, wanted: Sequence[Range]) -> list[tuple[bytes, int]]:
    """For each range some bytes, and where in them it begins; there are fewer where the file is shorter.

    Requests run side by side where the file system can do so.
    """
    requests: list[_Request] = []
    of: dict[Range, int] = {}
    for one in sorted(set(wanted)):
        if one[1] < one[2]:
            if not requests or not requests[-1].take(one):
                requests.append(_Request(*one))
            of[one] = len(requests) - 1
    found = folder.read_many([(request.name, request.start, request.end) for request in requests])
    return [(found[of[one]], one[1] - requests[of[one]].start) if one in of else (b"", 0) for one in wanted]
