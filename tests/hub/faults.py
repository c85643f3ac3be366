"""Failures on demand: what a test asks the server to do wrong, and how often."""

import re
import threading
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any


@dataclass
class Fault:
    """What goes wrong with the requests that match.

    Attributes:
        method: of the request; all where it is empty.
        path: a regular expression that is looked for in the request's path.
        files: for commits, a regular expression that is looked for in the path of each file that is added; for LFS,
            in its SHA-256.
        skip: how many requests that match are answered as usual first.
        count: how many requests go wrong; None is all of them.
        status: the answer's, with `message`, `code` (`X-Error-Code`) and `headers`; the request is not carried out.
        text: what is answered as it is, instead of JSON; the request is not carried out. Surrogates are bytes, as of
            `surrogateescape`.
        drop: the connection is closed without an answer, `before` or `after` the request is carried out.
        delay: seconds before the request is carried out.
        rate: bytes in a second, of what is sent to the server and from it.
        cut: the connection is closed after so many bytes of an upload or of an answer.
        move: somebody else commits to the branch before the request is carried out.
        entries: what is said of each file instead of the truth, where files are asked for.
    """

    method: str = ""
    path: str = ""
    files: str = ""
    skip: int = 0
    count: int | None = 1
    status: int | None = None
    message: str = "failure on demand"
    code: str | None = None
    headers: Mapping[str, str] = field(default_factory=dict)
    text: str | None = None
    drop: str = ""
    delay: float = 0.0
    rate: float | None = None
    cut: int | None = None
    move: bool = False
    entries: Mapping[str, Any] | None = None

    def matches(self, method: str, path: str) -> bool:
        return self.method in ("", method) and bool(re.search(self.path, path))


class Faults:
    """All faults, each with a number; `hits` counts how often each struck."""

    def __init__(self) -> None:
        self._faults: dict[int, Fault] = {}
        self.hits: dict[int, int] = {}
        self._seen: dict[int, int] = {}
        self._lock = threading.Lock()

    def add(self, **fault: Any) -> int:
        with self._lock:
            number = len(self.hits) + 1
            self._faults[number] = Fault(**fault)
            self.hits[number] = self._seen[number] = 0
            return number

    def clear(self) -> None:
        with self._lock:
            self._faults.clear()

    def strike(self, method: str, path: str, files: tuple[str, ...] | None = None) -> list[Fault]:
        """The faults of a request; with `files`, which a commit adds, those that look at them."""
        found = []
        with self._lock:
            for number, fault in self._faults.items():
                if bool(fault.files) != (files is not None) or not fault.matches(method, path):
                    continue
                if files is not None and not any(re.search(fault.files, one) for one in files):
                    continue
                self._seen[number] += 1
                last = None if fault.count is None else fault.skip + fault.count
                if self._seen[number] > fault.skip and (last is None or self._seen[number] <= last):
                    self.hits[number] += 1
                    found.append(fault)
        return found
