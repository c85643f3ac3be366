"""Repositories: commits, each a whole tree, and the branches, tags and pull requests that name them."""

import hashlib
import re
import threading
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime, timezone

from hub.objects import Blob

Tree = Mapping[str, Blob]

# So many commits apart, a tree is kept whole.
_WHOLE = 50


class RefusedError(Exception):
    """An answer that is an error."""

    def __init__(self, status: int, message: str, code: str | None = None, headers: Mapping[str, str] = {}) -> None:
        super().__init__(message)
        self.status, self.code, self.headers = status, code, headers


@dataclass(frozen=True)
class Commit:
    """A commit, as what it changes: None is a file that it deletes."""

    oid: str
    parent: "Commit | None"
    title: str
    message: str
    user: str
    changes: Mapping[str, Blob | None]
    number: int
    at: str
    whole: Tree | None

    @property
    def tree(self) -> Tree:
        if self.whole is not None or self.parent is None:
            return self.whole or {}
        changes: list[Mapping[str, Blob | None]] = []
        commit: Commit = self
        while commit.whole is None and commit.parent is not None:
            changes.append(commit.changes)
            commit = commit.parent
        return _changed(commit.whole or {}, *reversed(changes))


def _changed(tree: Tree, *changes: Mapping[str, Blob | None]) -> Tree:
    found: dict[str, Blob | None] = dict(tree)
    for one in changes:
        found.update(one)
    return {path: blob for path, blob in found.items() if blob is not None}


@dataclass
class Repo:
    """A repository; `lock` is held while a commit is made."""

    kind: str
    name: str
    private: bool
    gated: bool = False
    branches: dict[str, Commit] = field(default_factory=dict)
    tags: dict[str, Commit] = field(default_factory=dict)
    pulls: dict[int, tuple[str, str]] = field(default_factory=dict)
    merged: set[int] = field(default_factory=set)
    commits: list[Commit] = field(default_factory=list)
    lock: threading.RLock = field(default_factory=threading.RLock)

    def at(self, revision: str) -> Commit:
        """The commit of a branch, a tag, or by its name or the beginning of it."""
        name = revision.removeprefix("refs/heads/")
        found = self.branches.get(name) or self.tags.get(name.removeprefix("refs/tags/"))
        if found is None and re.fullmatch("[0-9a-f]{7,40}", name):
            found = next((one for one in self.commits if one.oid.startswith(name)), None)
        if found is None:
            raise RefusedError(404, f"Invalid rev id: {revision}", "RevisionNotFound")
        return found

    def commit(self, branch: str, title: str, message: str, user: str, changes: Mapping[str, Blob | None]) -> Commit:
        """Add a commit to a branch."""
        with self.lock:
            parent = self.branches.get(branch)
            number = len(self.commits)
            oid = hashlib.sha1(f"{self.kind} {self.name} {number} {title}".encode()).hexdigest()
            whole = _changed(parent.tree if parent else {}, changes) if number % _WHOLE == 0 else None
            now = datetime.now(timezone.utc).isoformat(timespec="milliseconds").replace("+00:00", "Z")
            made = Commit(oid, parent, title, message, user, changes, number, now, whole)
            self.commits.append(made)
            self.branches[branch] = made
            return made

    def pull(self, start: str, title: str) -> str:
        """Open a pull request, and return the name of its branch."""
        with self.lock:
            number = len(self.pulls) + 1
            branch = f"refs/pr/{number}"
            self.pulls[number] = (start, title)
            self.branches[branch] = self.at(start)
            return branch

    def merge(self, number: int, user: str) -> Commit:
        """Put what a pull request changed onto its target."""
        with self.lock:
            start, title = self.pulls[number]
            self.merged.add(number)
            target, tree, head = self.at(start), self.at(start).tree, self.branches[f"refs/pr/{number}"]
            changes: dict[str, Blob | None] = {path: blob for path, blob in head.tree.items() if tree.get(path) != blob}
            changes.update({path: None for path in tree if path not in head.tree})
            return self.commit(start, f"{title} (#{number})", "", user, changes) if changes else target

    def log(self, commit: Commit) -> list[Commit]:
        """The commit and those before it."""
        found: list[Commit] = []
        one: Commit | None = commit
        while one is not None:
            found.append(one)
            one = one.parent
        return found


def checked(path: str) -> str:
    """The path of a file in a repository. Raises `RefusedError` for one that Git does not take."""
    parts = path.split("/")
    if not path or any(part in ("", ".", "..", ".git") for part in parts) or re.search(r"[\0\\]", path):
        raise RefusedError(400, f"Invalid path: {path!r}")
    return path


def check_folders(tree: Tree, changes: Mapping[str, Blob | None]) -> None:
    """Raise `RefusedError` where a file would be below another file."""
    files = {path for path in tree if path not in changes} | {path for path, blob in changes.items() if blob}
    for path, blob in changes.items():
        parts = path.split("/")
        if blob and (
            above := next((one for end in range(1, len(parts)) if (one := "/".join(parts[:end])) in files), None)
        ):
            raise RefusedError(400, f"{path} cannot be below {above}, which is a file")
