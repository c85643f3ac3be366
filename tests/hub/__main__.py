"""The server's process: `python -m hub FOLDER [--no-xet]` prints its address, and serves until its input ends."""

import hashlib
import http.server
import json
import re
import sys
import threading
import time
from contextlib import suppress
from io import BufferedIOBase
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

from hub.api import TOKENS, Answer, Hub, Request
from hub.faults import Fault
from hub.repos import RefusedError

_BLOCK = 1 << 16
# What somebody else's commit needs to know of a request for a commit.
_COMMIT = re.compile(r"/api/(?P<kind>\w+)/(?P<name>[^/]+/[^/]+)/commit/(?P<revision>[^/]+)")


class _CutError(Exception):
    """The connection is to be closed without an answer."""


class _Server(http.server.ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 256

    def __init__(self, hub: Hub) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.hub, self.log, self.lock = hub, list[dict[str, Any]](), threading.Lock()

    def handle_error(self, *_: Any) -> None:
        """Clients go away: they are killed, or have read enough."""
        if not isinstance(sys.exc_info()[1], OSError):
            super().handle_error(*_)


class _Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    wbufsize = 1 << 16
    server: _Server

    def log_message(self, *_: Any) -> None:
        pass

    def _handle(self) -> None:
        parts = urlsplit(self.path)
        if parts.path == "/_test/log":
            self._read()
            with self.server.lock:
                value = list(self.server.log)
                if self.command == "DELETE":
                    self.server.log.clear()
            return self._send(Answer(value), [])
        self._unread = True
        faults = [] if parts.path.startswith("/_test/") else self.server.hub.faults.strike(self.command, parts.path)
        self._faults = faults
        entry = {
            "method": self.command,
            "path": parts.path,
            "range": self.headers.get("Range"),
            "status": None,
            "sent": 0,
        }
        self._entry = entry
        if not parts.path.startswith("/_test/"):
            with self.server.lock:
                self.server.log.append(entry)
        try:
            answer = self._answer(parts.path, parse_qs(parts.query), faults)
        except _CutError:
            self.close_connection = True
            return None
        except RefusedError as error:
            said = {"X-Error-Message": str(error), **({"X-Error-Code": error.code} if error.code else {})}
            answer = Answer({"error": str(error)}, error.status, {**said, **error.headers})
        if self._unread:
            self._read_rest()
        self._send(answer, faults)
        return None

    do_GET = do_HEAD = do_POST = do_PUT = do_DELETE = _handle  # noqa: N815

    def _answer(self, path: str, query: dict[str, list[str]], faults: list[Fault]) -> Answer:
        for fault in faults:
            time.sleep(fault.delay)
            if fault.move and (found := _COMMIT.fullmatch(path)):
                self.server.hub.move(**found.groupdict())
            if fault.drop == "before":
                raise _CutError
            if fault.text is not None:
                return Answer(text=fault.text)
            if fault.status:
                raise RefusedError(fault.status, fault.message, fault.code, fault.headers)
        user, may_write = self._user(path)
        base = f"http://{self.headers.get('Host')}"
        request = Request(
            self.command, path, query, dict(self.headers), base, user, may_write, self._read, self._save
        )  # fmt: skip
        answer = self.server.hub.answer(request)
        for fault in faults:
            if fault.entries is not None:
                answer.value = [{**one, **fault.entries} for one in answer.value]
        if any(fault.drop == "after" for fault in faults):
            raise _CutError
        return answer

    def _user(self, path: str) -> tuple[str | None, bool]:
        """Who asks. What has an address of its own needs no token, as on the real Hub."""
        kind, _, token = self.headers.get("Authorization", "").partition(" ")
        if not token or path.startswith("/_"):
            return None, False
        if kind != "Bearer" or token not in TOKENS:
            raise RefusedError(401, "Invalid credentials in Authorization header")
        return TOKENS[token]

    # -- What is sent to the server ----------------------------------------------------------------------------------

    def _blocks(self) -> Any:
        self._unread = False
        faults = getattr(self, "_faults", [])
        cut = min((one.cut for one in faults if one.cut is not None), default=None)
        rate = min((one.rate for one in faults if one.rate is not None), default=None)
        taken = 0
        for block in _body(self.rfile, self.headers):
            taken += len(block)
            # An answer may be cut, too: of a request without a body.
            if cut is not None and taken > cut:
                raise _CutError
            if rate is not None:
                time.sleep(len(block) / rate)
            yield block

    def _read(self) -> bytes:
        return b"".join(self._blocks())

    def _save(self, part: Path) -> str:
        found = hashlib.sha256()
        try:
            with part.open("wb") as file:
                for block in self._blocks():
                    file.write(block)
                    found.update(block)
        except BaseException:
            part.unlink()
            raise
        return found.hexdigest()

    def _read_rest(self) -> None:
        """The next request on the connection begins after the body. One that is cut in between ends it."""
        with suppress(_CutError):
            for _ in self._blocks():
                pass

    # -- What the server sends ---------------------------------------------------------------------------------------

    def _send(self, answer: Answer, faults: list[Fault]) -> None:
        start, end, status, headers = 0, 0, answer.status, dict(answer.headers)
        if answer.file:
            size = end = answer.file.stat().st_size
            headers["Accept-Ranges"] = "bytes"
            if found := re.fullmatch(r"bytes=(\d*)-(\d*)", self.headers.get("Range", "")):
                first, last = found.groups()
                start = int(first) if first else max(0, size - int(last))
                end = min(size, int(last) + 1) if first and last else size
                status, headers["Content-Range"] = 206, f"bytes {start}-{end - 1}/{size}"
                if start >= size:
                    answer, start, end = Answer({"error": "range"}, 416), 0, 0
                    status, headers = 416, {"Content-Range": f"bytes */{size}"}
        content = b"" if answer.file else _text(answer).encode(errors="surrogateescape")
        length = end - start if answer.file else len(content)
        if getattr(self, "_entry", None) is not None:
            self._entry.update(status=status, sent=0 if self.command == "HEAD" else length)
        self.send_response(status)
        if not answer.file:
            headers["Content-Type"] = "application/json; charset=utf-8"
        for name, value in {**headers, "Content-Length": str(length)}.items():
            self.send_header(name, value)
        self.end_headers()
        if self.command != "HEAD":
            self._send_body(answer.file, content, start, length, faults)
        self.wfile.flush()

    def _send_body(self, file: Path | None, content: bytes, start: int, length: int, faults: list[Fault]) -> None:
        cut = min((one.cut for one in faults if one.cut is not None), default=length)
        rate = min((one.rate for one in faults if one.rate is not None), default=None)
        if file is None:
            self.wfile.write(content[:cut])
        else:
            with file.open("rb") as source:
                source.seek(start)
                left = min(length, cut)
                while left and (block := source.read(min(left, _BLOCK))):
                    self.wfile.write(block)
                    left -= len(block)
                    if rate is not None:
                        time.sleep(len(block) / rate)
        if cut < length:
            self.close_connection = True


def _text(answer: Answer) -> str:
    return json.dumps(answer.value) if answer.text is None else answer.text


def _body(source: BufferedIOBase, headers: Any) -> Any:
    """The blocks of a request's body."""
    if "chunked" in headers.get("Transfer-Encoding", ""):
        while size := int(source.readline().split(b";")[0], 16):
            yield source.read(size)
            source.readline()
        source.readline()
        return
    left = int(headers.get("Content-Length") or 0)
    while left:
        block = source.read(min(left, _BLOCK))
        if not block:
            raise _CutError
        left -= len(block)
        yield block


def _main() -> None:
    hub = Hub(Path(sys.argv[1]), "--no-xet" not in sys.argv)
    with _Server(hub) as server:
        threading.Thread(target=server.serve_forever, args=(0.05,), daemon=True).start()
        print(f"http://127.0.0.1:{server.server_port}", flush=True)
        sys.stdin.read()
        server.shutdown()


if __name__ == "__main__":
    _main()
