"""An HTTP server over a folder, which may be a poor one, and may want a password or a signature."""

import base64
import http.server
import re
import threading
import zlib
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, quote, unquote, urlsplit

USER, PASSWORD, SIGNATURE = "alice", "s3cret-word", "s1gnature"


class HttpStore:
    """What the server is like, and what it was asked for.

    Attributes:
        ranges: whether it knows ranges; otherwise it sends whole files.
        listing: whether it has a page of links for a folder.
        private: whether requests need the password or the signature.
        busy: how many of the next answers for each file are that the server is busy.
        broken: how many of the next answers for each file break off in the middle.
        holds: the file whose first answer waits for `held`; `holding` tells that it was asked for.
        requests: of each file, by HTTP's method.
    """

    def __init__(self, folder: Path, port: int) -> None:
        self.folder, self.port = folder, port
        self.ranges = self.listing = True
        self.private = False
        self.busy: Counter[str] = Counter()
        self.broken: Counter[str] = Counter()
        self.holds = ""
        self.held, self.holding = threading.Event(), threading.Event()
        self.requests: Counter[tuple[str, str]] = Counter()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}/data"

    @property
    def with_password(self) -> str:
        return f"http://{USER}:{PASSWORD}@127.0.0.1:{self.port}/data"

    @property
    def signed(self) -> str:
        return f"{self.url}?sig={SIGNATURE}"


class _Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    store: HttpStore

    def log_message(self, *_: Any) -> None:
        pass

    def do_HEAD(self) -> None:
        self._answer(body=False)

    def do_GET(self) -> None:
        self._answer(body=True)

    def _answer(self, body: bool) -> None:
        store, parts = self.store, urlsplit(self.path)
        name = unquote(parts.path).removeprefix("/data").strip("/")
        store.requests[self.command, name] += 1
        if store.busy[name]:
            store.busy[name] -= 1
            self._send(503, b"busy", body)
        elif store.private and not self._is_allowed(parse_qs(parts.query)):
            self._send(403, b"denied", body)
        elif not name and store.listing:
            links = "".join(f'<a href="{quote(one.name)}">{one.name}</a>' for one in store.folder.iterdir())
            self._send(200, links.encode(), body, {"Content-Type": "text/html"})
        elif name and (store.folder / name).is_file():
            self._send_file(name, (store.folder / name).read_bytes(), body)
        else:
            self._send(404, b"", body)

    def _is_allowed(self, query: dict[str, list[str]]) -> bool:
        basic = "Basic " + base64.b64encode(f"{USER}:{PASSWORD}".encode()).decode()
        return self.headers.get("Authorization") == basic or query.get("sig") == [SIGNATURE]

    def _send_file(self, name: str, content: bytes, body: bool) -> None:
        asked = re.fullmatch(r"bytes=(\d+)-(\d*)", self.headers.get("Range", ""))
        status, tag = 200, zlib.crc32(content)
        if asked and self.store.ranges:
            status, content = 206, content[int(asked[1]) : int(asked[2]) + 1 if asked[2] else None]
        if body and name == self.store.holds and not self.store.holding.is_set():
            self.store.holding.set()
            self.store.held.wait(60)
        if body and self.store.broken[name]:
            self.store.broken[name] -= 1
            self._send(status, content, body, cut=len(content) // 2)
        else:
            self._send(status, content, body, {"ETag": f'"{tag}"'})

    def _send(
        self, status: int, content: bytes, body: bool, headers: dict[str, str] | None = None, cut: int | None = None
    ) -> None:
        self.send_response(status)
        for key, value in {**(headers or {}), "Content-Length": str(len(content))}.items():
            self.send_header(key, value)
        self.end_headers()
        if body:
            self.wfile.write(content[:cut])
        if cut is not None:
            self.close_connection = True


@contextmanager
def serving(folder: Path) -> Iterator[HttpStore]:
    """A server of the folder's files, at `/data`."""

    class Handler(_Handler):
        pass

    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        store = Handler.store = HttpStore(folder, server.server_port)
        thread = threading.Thread(target=server.serve_forever, args=(0.05,), daemon=True)
        thread.start()
        try:
            yield store
        finally:
            server.shutdown()
            thread.join()
