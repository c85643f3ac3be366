"""A server of the Hugging Face Hub's API in a process of its own, for the real client: see `running`."""

import json
import os
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import quote
from urllib.request import Request, urlopen

# Who may do what: the owner of `me/...`, the same user without the right to write, and the owner of `other/...`.
WRITE, READ, OTHER = "hf_write", "hf_read", "hf_other"


class Server:
    """The server, as tests see it."""

    def __init__(self, url: str, folder: Path) -> None:
        self.url, self.folder = url, folder

    def environment(self, token: str | None = WRITE, xet: bool = True) -> dict[str, str]:
        """What a process needs in its environment so that its client talks to this server, and to no other."""
        home = self.folder / "home"
        return {
            **{name: value for name, value in os.environ.items() if not name.startswith("HF_")},
            "HF_ENDPOINT": self.url,
            "HF_HOME": str(home),
            "HF_HUB_DISABLE_TELEMETRY": "1",
            "HF_HUB_DISABLE_PROGRESS_BARS": "1",
            "HF_HUB_DISABLE_XET": "0" if xet else "1",
            **({"HF_TOKEN": token} if token else {}),
        }

    def make_repo(self, repo: str) -> None:
        """Make a dataset repository."""
        user, _, name = repo.partition("/")
        body = json.dumps({"type": "dataset", "organization": user, "name": name}).encode()
        headers = {"Authorization": f"Bearer {WRITE}"}
        urlopen(Request(f"{self.url}/api/repos/create", body, headers)).close()

    def read(self, repo: str, path: str, revision: str = "main") -> bytes:
        """A file of a dataset repository."""
        with urlopen(f"{self.url}/datasets/{repo}/resolve/{quote(revision, safe='')}/{quote(path)}") as answer:
            return bytes(answer.read())

    def fail(self, **fault: Any) -> int:
        """Have requests fail: see `hub.faults.Fault`. Returns the fault's number."""
        return int(self._ask("POST", "fail", fault))

    def heal(self) -> None:
        """End all failures."""
        self._ask("DELETE", "fail")

    def hits(self, fault: int) -> int:
        """How many requests have failed by this fault."""
        return int(self._ask("GET", "fail")[str(fault)])

    def requests(self) -> list[dict[str, Any]]:
        """All requests since the server began, or since `forget`: method, path, range, status, and bytes sent."""
        return list(self._ask("GET", "log"))

    def forget(self) -> None:
        """Forget the requests."""
        self._ask("DELETE", "log")

    def counts(self) -> Counter[tuple[str, str]]:
        """How many requests there were of each method to each path."""
        return Counter((one["method"], one["path"]) for one in self.requests())

    def history(self, repo: str, *, kind: str = "datasets", trees: bool = True) -> list[dict[str, Any]]:
        """Every commit, in the order made.

        They have `id`, `parent`, `title`, `changes` and `tree`: the SHA-256, or Git's name, of each path.
        """
        query = f"kind={kind}&repo={quote(repo)}&trees={'true' if trees else 'false'}"
        return list(self._ask("GET", f"history?{query}"))

    def rewind(self, repo: str, commits: int) -> None:
        """Forget the commits of a dataset repository after the first so many."""
        self._ask("POST", "rewind", {"repo": repo, "commits": commits})

    def _ask(self, method: str, what: str, value: Mapping[str, Any] | None = None) -> Any:
        body = None if value is None else json.dumps(value).encode()
        with urlopen(Request(f"{self.url}/_test/{what}", data=body, method=method)) as answer:
            return json.load(answer)


@contextmanager
def running(folder: Path, *, xet: bool = True) -> Iterator[Server]:
    """A server whose files are below the folder. It ends with the process that has begun it."""
    command = [sys.executable, "-m", "hub", str(folder), *([] if xet else ["--no-xet"])]
    place = Path(__file__).parents[1]
    with subprocess.Popen(command, cwd=place, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        try:
            yield Server(process.stdout.readline().strip(), folder)
        finally:
            process.stdin.close()
            process.wait(30)
