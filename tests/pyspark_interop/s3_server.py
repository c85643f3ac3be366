"""A server of S3 that keeps a log of what it is asked.

Run as `python s3_server.py LOG`; it prints its port. Each line of the log is a JSON object: `method`, `path`, and the
headers `range`, `if_match` and `if_none_match`, null where a request has none. A request is in the log before it is
answered.
"""

import json
import sys
import threading
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any, TextIO

from moto.moto_server.werkzeug_app import DomainDispatcherApplication, MotoRequestHandler, create_backend_app
from werkzeug.serving import make_server


class Logged:
    """A WSGI application around another."""

    def __init__(self, application: Callable[..., Iterable[bytes]], log: TextIO) -> None:
        self._application = application
        self._log = log
        self._lock = threading.Lock()

    def __call__(self, environ: dict[str, Any], start_response: Callable[..., Any]) -> Iterable[bytes]:
        request = {
            "method": environ["REQUEST_METHOD"],
            "path": environ["PATH_INFO"],
            "range": environ.get("HTTP_RANGE"),
            "if_match": environ.get("HTTP_IF_MATCH"),
            "if_none_match": environ.get("HTTP_IF_NONE_MATCH"),
        }
        with self._lock:
            print(json.dumps(request), file=self._log, flush=True)
        return self._application(environ, start_response)


if __name__ == "__main__":
    with Path(sys.argv[1]).open("w") as log:
        backend = DomainDispatcherApplication(create_backend_app)
        server = make_server("127.0.0.1", 0, Logged(backend, log), threaded=True, request_handler=MotoRequestHandler)
        print(f"port {server.port}", flush=True)
        server.serve_forever()
