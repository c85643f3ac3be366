"""What the Hub answers to each request: a table of methods and paths, and a function for each."""

import base64
import json
import re
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from fnmatch import fnmatch
from pathlib import Path, PurePosixPath
from typing import Any
from urllib.parse import parse_qs, unquote

from hub.faults import Faults
from hub.objects import Blob, Objects
from hub.repos import Commit, RefusedError, Repo, check_folders, checked

# What each token may do; who sends another one is refused.
TOKENS = {"hf_write": ("me", True), "hf_other": ("other", True), "hf_read": ("me", False)}
# More files than the Hub takes in one commit.
MOST_FILES = 1000

_LARGE = 10_000_000
_LARGE_NAMES = re.compile(r"\.(safetensors|parquet|bin|npy|npz|zip|gz|arrow|pt)$")
_PAGE = 1000
_DISCUSSIONS = 10


@dataclass
class Request:
    """A request without its body, which `read` brings. `user` is None for who sends no token."""

    method: str
    path: str
    query: Mapping[str, list[str]]
    headers: Mapping[str, str]
    base: str
    user: str | None
    may_write: bool
    read: Callable[[], bytes]
    save: Callable[[Path], str]

    def json(self) -> Any:
        return json.loads(self.read() or b"{}")

    def asks(self, name: str) -> bool:
        return self.query.get(name, ["false"])[0].lower() in ("1", "true")


@dataclass
class Answer:
    """An answer: a JSON value, a text, or a file of which ranges may be asked for."""

    value: Any = None
    status: int = 200
    headers: Mapping[str, str] = field(default_factory=dict)
    file: Path | None = None
    text: str | None = None


class Hub:
    """All repositories, and what they answer."""

    def __init__(self, folder: Path, has_xet: bool) -> None:
        self.objects, self.faults, self._has_xet = Objects(folder), Faults(), has_xet
        self.repos: dict[tuple[str, str], Repo] = {}
        self._lock = threading.Lock()

    def answer(self, request: Request) -> Answer:
        """Raises `RefusedError`."""
        for method, pattern, function in _ROUTES:
            if method in (request.method, "ANY") and (found := pattern.fullmatch(request.path)):
                return function(self, request, **{name: unquote(text) for name, text in found.groupdict("").items()})
        raise RefusedError(404, f"no such request: {request.method} {request.path}")

    def repo(self, request: Request, kind: str, name: str, write: bool = False) -> Repo:
        """The repository, if the request may read it, or write to it."""
        found = self.repos.get((kind or "models", name))
        is_owner = request.user == name.partition("/")[0]
        if found is None or (found.private and not is_owner):
            status = 404 if request.user else 401
            raise RefusedError(
                status, "Repository not found" if request.user else "Invalid username or password.", "RepoNotFound"
            )
        if write and request.user is None:
            raise RefusedError(401, "Invalid username or password.")
        if write and not (is_owner and request.may_write):
            raise RefusedError(403, "You don't have the required permissions to perform this action")
        return found

    # -- Repositories ------------------------------------------------------------------------------------------------

    def create(self, request: Request) -> Answer:
        asked = request.json()
        if request.user is None:
            raise RefusedError(401, "Invalid username or password.")
        owner = asked.get("organization") or request.user
        if not request.may_write or owner != request.user:
            raise RefusedError(403, f"You don't have the rights to create a repository under the namespace {owner!r}")
        kind, name = f"{asked.get('type') or 'model'}s", f"{owner}/{asked['name']}"
        url = f"{request.base}/{'' if kind == 'models' else f'{kind}/'}{name}"
        with self._lock:
            if (kind, name) in self.repos:
                return Answer({"error": "You already created this repo", "url": url}, 409)
            repo = Repo(kind, name, bool(asked.get("private")) or asked.get("visibility") == "private")
            repo.commit("main", "initial commit", "", owner, {".gitattributes": self.objects.add(b"")})
            self.repos[kind, name] = repo
        return Answer({"url": url, "name": name, "id": name})

    def delete(self, request: Request) -> Answer:
        asked = request.json()
        kind, name = f"{asked.get('type') or 'model'}s", f"{asked.get('organization') or request.user}/{asked['name']}"
        self.repo(request, kind, name, write=True)
        del self.repos[kind, name]
        return Answer({})

    def settings(self, request: Request, kind: str, name: str) -> Answer:
        repo, asked = self.repo(request, kind, name, write=True), request.json()
        repo.private = asked.get("private", asked.get("visibility", "private" if repo.private else "") == "private")
        repo.gated = bool(asked.get("gated", repo.gated))
        return Answer({})

    def info(self, request: Request, kind: str, name: str, revision: str = "main") -> Answer:
        repo = self.repo(request, kind, name)
        commit = repo.at(revision or "main")
        first = repo.commits[0]
        siblings: list[dict[str, Any]] = [
            {"rfilename": path, **({"size": blob.size, "blobId": blob.oid} if request.asks("blobs") else {})}
            for path, blob in sorted(commit.tree.items())
        ]
        return Answer({
            "_id": "0", "id": name, "author": name.split("/")[0], "sha": commit.oid, "lastModified": commit.at,
            "createdAt": first.at, "private": repo.private, "gated": "auto" if repo.gated else False, "disabled": False,
            "downloads": 0, "likes": 0, "tags": [], "siblings": siblings,
        })  # fmt: skip

    def refs(self, request: Request, kind: str, name: str) -> Answer:
        repo = self.repo(request, kind, name)

        def of(prefix: str, found: Mapping[str, Commit]) -> list[dict[str, str]]:
            return [{"name": one, "ref": f"{prefix}{one}", "targetCommit": commit.oid} for one, commit in found.items()]

        pulls = {one: commit for one, commit in repo.branches.items() if one.startswith("refs/pr/")}
        branches = {one: commit for one, commit in repo.branches.items() if one not in pulls}
        return Answer({
            "branches": of("refs/heads/", branches), "converts": [], "tags": of("refs/tags/", repo.tags),
            "pullRequests": of("", pulls),
        })  # fmt: skip

    def branch(self, request: Request, kind: str, name: str, branch: str) -> Answer:
        repo = self.repo(request, kind, name, write=True)
        if request.method == "DELETE":
            repo.at(branch)
            del repo.branches[branch]
        elif branch in repo.branches:
            return Answer({"error": "Reference already exists"}, 409)
        else:
            repo.branches[branch] = repo.at(request.json().get("startingPoint", "main"))
        return Answer({})

    def tag(self, request: Request, kind: str, name: str, revision: str) -> Answer:
        repo = self.repo(request, kind, name, write=True)
        if request.method == "DELETE":
            repo.at(revision)
            del repo.tags[revision]
        elif (tag := request.json()["tag"]) in repo.tags:
            return Answer({"error": "Tag reference exists already"}, 409)
        else:
            repo.tags[tag] = repo.at(revision)
        return Answer({})

    # -- Trees and files ---------------------------------------------------------------------------------------------

    def tree(self, request: Request, kind: str, name: str, revision: str, path: str = "") -> Answer:
        commit = self.repo(request, kind, name).at(revision)
        path, deep = path.strip("/"), request.asks("recursive")
        prefix = f"{path}/" if path else ""
        found: dict[str, Any] = {}
        for file, blob in commit.tree.items():
            if not file.startswith(prefix):
                continue
            parts = file[len(prefix) :].split("/")
            for end in range(1, len(parts) if deep else min(2, len(parts))):
                folder = prefix + "/".join(parts[:end])
                found[folder] = _folder(folder, commit)
            if deep or len(parts) == 1:
                found[file] = _entry(file, blob, commit)
        if not found and path:
            raise RefusedError(404, f"{path} does not exist on {revision}", "EntryNotFound")
        return _page(request, [found[one] for one in sorted(found)])

    def paths_info(self, request: Request, kind: str, name: str, revision: str) -> Answer:
        commit, body = self.repo(request, kind, name).at(revision), request.read()
        if "json" in request.headers.get("Content-Type", ""):
            paths = json.loads(body)["paths"]
        else:
            paths = parse_qs(body.decode()).get("paths", [])
        tree, found = commit.tree, []
        folders = {str(folder) for file in tree for folder in PurePosixPath(file).parents}
        for path in paths:
            if blob := tree.get(path):
                found.append(_entry(path, blob, commit))
            elif path in folders:
                found.append(_folder(path, commit))
        return Answer(found)

    def commits(self, request: Request, kind: str, name: str, revision: str) -> Answer:
        repo = self.repo(request, kind, name)
        return _page(request, [_about(one) for one in repo.log(repo.at(revision))], 50)

    def resolve(self, request: Request, kind: str, name: str, revision: str, path: str) -> Answer:
        repo = self.repo(request, kind, name)
        if repo.gated and request.user != name.partition("/")[0]:
            raise RefusedError(403 if request.user else 401, f"Access to dataset {name} is restricted.", "GatedRepo")
        commit = repo.at(revision)
        about = {"X-Repo-Commit": commit.oid}
        blob = commit.tree.get(path)
        if blob is None:
            raise RefusedError(404, "Entry not found", "EntryNotFound", about)
        linked = {"X-Linked-Size": str(blob.size), "X-Linked-Etag": f'"{blob.sha256}"'} if blob.sha256 else {}
        about = {**about, "ETag": f'"{blob.sha256 or blob.oid}"', **linked}
        return Answer(headers=about, file=self.objects.path(blob))

    # -- Uploads and commits -----------------------------------------------------------------------------------------

    def preupload(self, request: Request, kind: str, name: str, revision: str) -> Answer:
        repo = self.repo(request, kind, name, write=True)
        tree = repo.at(revision).tree
        ignored = self.objects.path(tree[".gitignore"]).read_text().split() if ".gitignore" in tree else []
        found = []
        for one in request.json()["files"]:
            blob, binary = tree.get(one["path"]), b"\0" in base64.b64decode(one.get("sample", ""))
            large = one["size"] >= _LARGE or binary or bool(_LARGE_NAMES.search(one["path"]))
            mode = "lfs" if large else "regular"
            oid = {"oid": blob.sha256 or blob.oid} if blob else {}
            should_ignore = any(fnmatch(one["path"], pattern) for pattern in ignored)
            found.append({"path": one["path"], "uploadMode": mode, "shouldIgnore": should_ignore, **oid})
        return Answer({"files": found, "commitOid": repo.at(revision).oid})

    def lfs_batch(self, request: Request, kind: str, name: str) -> Answer:
        self.repo(request, kind, name, write=True)
        asked, found = request.json(), []
        for one in asked["objects"]:
            oid, size = one["oid"], one["size"]
            if faults := self.faults.strike("POST", request.path, (oid,)):
                error = {"code": faults[0].status, "message": faults[0].message}
                found.append({"oid": oid, "size": size, "error": error})
                continue
            actions = {
                "upload": {"href": f"{request.base}/_lfs/{oid}/{size}"},
                "verify": {"href": f"{request.base}/_lfs/{oid}/{size}/verify"},
            }
            found.append({"oid": oid, "size": size, **({} if self.objects.large(oid, size) else {"actions": actions})})
        transfer = "xet" if self._has_xet and "xet" in asked.get("transfers", ()) else "basic"
        return Answer({"transfer": transfer, "objects": found})

    def lfs_upload(self, request: Request, sha256: str, size: str) -> Answer:
        part = self.objects.part()
        found = request.save(part)
        if found != sha256 or part.stat().st_size != int(size):
            part.unlink()
            raise RefusedError(400, f"these bytes are not those of {sha256}")
        self.objects.keep(part, sha256)
        return Answer({})

    def lfs_verify(self, request: Request, sha256: str, size: str) -> Answer:
        request.read()
        if self.objects.large(sha256, int(size)) is None:
            raise RefusedError(404, f"{sha256} was not uploaded")
        return Answer({})

    def xet_token(self, request: Request, kind: str, name: str, action: str, revision: str) -> Answer:
        self.repo(request, kind, name, write=action == "write")
        if not self._has_xet:
            raise RefusedError(404, "no Xet here")
        url, token, end = f"local://{self.objects.xet.new_session()}", "xet", int(time.time()) + 3600
        headers = {"X-Xet-Cas-Url": url, "X-Xet-Access-Token": token, "X-Xet-Token-Expiration": str(end)}
        return Answer({"casUrl": url, "accessToken": token, "exp": end}, headers=headers)

    def commit(self, request: Request, kind: str, name: str, revision: str) -> Answer:
        repo = self.repo(request, kind, name, write=True)
        lines = [json.loads(line) for line in request.read().splitlines() if line.strip()]
        header = next((one["value"] for one in lines if one["key"] == "header"), None)
        if header is None or not header.get("summary"):
            raise RefusedError(400, "a commit needs a summary")
        operations = [(one["key"], one["value"]) for one in lines if one["key"] != "header"]
        if len(operations) > MOST_FILES:
            raise RefusedError(413, f"{len(operations)} files in one commit, at most {MOST_FILES}")
        files = tuple(value["path"] for key, value in operations if key in ("file", "lfsFile"))
        for fault in self.faults.strike("POST", request.path, files):
            raise RefusedError(fault.status or 400, fault.message, fault.code, fault.headers)
        blobs = {value["path"]: self._blob(key, value) for key, value in operations if key in ("file", "lfsFile")}
        with repo.lock:
            head = repo.at(revision)
            if header.get("parentCommit") not in (None, head.oid):
                raise RefusedError(412, "A commit has happened since. Please refresh and try again.")
            if revision not in repo.branches:
                raise RefusedError(400, f"{revision} is not a branch")
            branch = repo.pull(revision, header["summary"]) if request.asks("create_pr") else revision
            tree = head.tree
            changes: dict[str, Blob | None] = {}
            for key, value in operations:
                if key == "deletedFile" and value["path"] not in tree:
                    raise RefusedError(400, f"{value['path']} cannot be deleted: it does not exist", "EntryNotFound")
                if key == "deletedFile":
                    changes[value["path"]] = None
                elif key == "deletedFolder":
                    changes.update({path: None for path in tree if path.startswith(value["path"].rstrip("/") + "/")})
                else:
                    changes[checked(value["path"])] = blobs[value["path"]]
            check_folders(tree, changes)
            made = repo.commit(branch, header["summary"], header.get("description", ""), request.user or "", changes)
        page = f"{request.base}/{'' if kind in ('', 'models') else f'{kind}/'}{name}"
        pull = (
            {"pullRequestUrl": f"{page}/discussions/{branch.rpartition('/')[2]}"} if request.asks("create_pr") else {}
        )
        return Answer({"success": True, "commitOid": made.oid, "commitUrl": f"{page}/commit/{made.oid}", **pull})

    def _blob(self, key: str, value: Mapping[str, Any]) -> Blob:
        checked(value["path"])
        if key == "file":
            content = value["content"]
            return self.objects.add(
                base64.b64decode(content) if value.get("encoding") == "base64" else content.encode()
            )
        blob = self.objects.large(value["oid"], value["size"])
        if blob is None:
            raise RefusedError(400, f"LFS pointer of {value['path']} points to {value['oid']}, which was not uploaded")
        return blob

    def discussions(self, request: Request, kind: str, name: str) -> Answer:
        repo, asked = self.repo(request, kind, name, write=True), request.json()
        branch = repo.pull("main", asked["title"])
        return Answer({"num": int(branch.rpartition("/")[2]), "pullRequest": True})

    def list_discussions(self, request: Request, kind: str, name: str) -> Answer:
        """The newest first, a page of them."""
        repo, start = self.repo(request, kind, name), int(request.query.get("p", ["0"])[0]) * _DISCUSSIONS
        found = [_discussion(repo, number) for number in sorted(repo.pulls, reverse=True)]
        return Answer({"discussions": found[start : start + _DISCUSSIONS], "count": len(found), "start": start})

    def discussion(self, request: Request, kind: str, name: str, number: str) -> Answer:
        repo = self.repo(request, kind, name)
        if int(number) not in repo.pulls:
            raise RefusedError(404, "Discussion not found")
        changes = {"base": f"refs/heads/{repo.pulls[int(number)][0]}"}
        about = {"events": [], "changes": changes, "filesWithConflicts": [], "diff": ""}
        return Answer({**_discussion(repo, int(number)), **about})

    def merge(self, request: Request, kind: str, name: str, number: str) -> Answer:
        repo = self.repo(request, kind, name, write=True)
        return Answer({"commitOid": repo.merge(int(number), request.user or "").oid})

    # -- The user, and what tests ask --------------------------------------------------------------------------------

    def whoami(self, request: Request) -> Answer:
        if request.user is None:
            raise RefusedError(401, "Invalid username or password.")
        role = "write" if request.may_write else "read"
        token = {"type": "access_token", "accessToken": {"displayName": "test", "role": role}}
        return Answer({"type": "user", "name": request.user, "fullname": request.user, "orgs": [], "auth": token})

    def validate_yaml(self, request: Request) -> Answer:
        request.read()
        return Answer({"errors": [], "warnings": []})

    def move(self, kind: str, name: str, revision: str) -> None:
        """Somebody else's commit."""
        if repo := self.repos.get((kind or "models", name)):
            number = len(repo.commits)
            blob = self.objects.add(str(number).encode())
            repo.commit(revision, "somebody else's", "", "other", {f"others/{number}.txt": blob})

    def history(self, request: Request) -> Answer:
        """All commits of a repository in the order made, of all its branches, with the tree of each if asked for."""
        repo = self.repos[request.query["kind"][0], request.query["repo"][0]]
        return Answer(list(_history(repo, request.asks("trees"))))

    def rewind(self, request: Request) -> Answer:
        """Forget the commits after the first ones of a dataset repository, whose last one is that of `main`."""
        asked = request.json()
        repo = self.repos["datasets", asked["repo"]]
        with repo.lock:
            del repo.commits[asked["commits"] :]
            repo.branches["main"] = repo.commits[-1]
        return Answer({})

    def fail(self, request: Request) -> Answer:
        if request.method == "DELETE":
            self.faults.clear()
            return Answer({})
        if request.method == "GET":
            return Answer(self.faults.hits)
        return Answer(self.faults.add(**request.json()))


def _discussion(repo: Repo, number: int) -> dict[str, Any]:
    return {
        "num": number, "title": repo.pulls[number][1], "author": {"name": "me"}, "createdAt": repo.commits[0].at,
        "status": "merged" if number in repo.merged else "open",
        "repo": {"name": repo.name, "type": repo.kind.rstrip("s")}, "isPullRequest": True,
    }  # fmt: skip


def _history(repo: Repo, trees: bool) -> Iterator[dict[str, Any]]:
    for commit in list(repo.commits):
        files = {path: blob.sha256 or blob.oid for path, blob in commit.tree.items()} if trees else None
        changed = {path: blob and (blob.sha256 or blob.oid) for path, blob in commit.changes.items()}
        yield {
            **_about(commit),
            "parent": commit.parent.oid if commit.parent else None,
            "changes": changed,
            "tree": files,
        }


def _about(commit: Commit) -> dict[str, Any]:
    authors = [{"user": commit.user}]
    return {"id": commit.oid, "title": commit.title, "message": commit.message, "authors": authors, "date": commit.at}


def _entry(path: str, blob: Blob, commit: Commit) -> dict[str, Any]:
    lfs = {"lfs": {"oid": blob.sha256, "size": blob.size, "pointerSize": blob.pointer_size}} if blob.sha256 else {}
    last = {"id": commit.oid, "title": commit.title, "date": commit.at}
    return {"type": "file", "path": path, "size": blob.size, "oid": blob.oid, "lastCommit": last, **lfs}


def _folder(path: str, commit: Commit) -> dict[str, Any]:
    last = {"id": commit.oid, "title": commit.title, "date": commit.at}
    return {"type": "directory", "path": path, "size": 0, "oid": commit.oid, "lastCommit": last}


def _page(request: Request, found: list[Any], size: int = _PAGE) -> Answer:
    start = int(request.query.get("cursor", ["0"])[0])
    end = start + size
    rest = "&".join(f"{name}={value}" for name, values in request.query.items() if name != "cursor" for value in values)
    url = f"{request.base}{request.path}?{rest}&cursor={end}"
    return Answer(found[start:end], headers={"Link": f'<{url}>; rel="next"'} if end < len(found) else {})


# A path of the API, of a repository in the API, and of its files. The Hub leaves out the kind for models in the last.
_API = r"/api/(?P<kind>models|datasets|spaces)/(?P<name>[^/]+/[^/]+)"
_FILES = r"/(?:(?P<kind>datasets|spaces)/)?(?P<name>[^/]+/[^/]+)"

_TABLE: tuple[tuple[str, str, Callable[..., Answer]], ...] = (
    ("POST", "/api/repos/create", Hub.create),
    ("DELETE", "/api/repos/delete", Hub.delete),
    ("GET", "/api/whoami-v2", Hub.whoami),
    ("POST", "/api/validate-yaml", Hub.validate_yaml),
    ("PUT", f"{_API}/settings", Hub.settings),
    ("GET", f"{_API}/refs", Hub.refs),
    ("ANY", f"{_API}/branch/(?P<branch>.+)", Hub.branch),
    ("ANY", f"{_API}/tag/(?P<revision>.+)", Hub.tag),
    ("GET", f"{_API}/tree/(?P<revision>[^/]+)(?P<path>/.*)?", Hub.tree),
    ("POST", f"{_API}/paths-info/(?P<revision>[^/]+)", Hub.paths_info),
    ("GET", f"{_API}/commits/(?P<revision>[^/]+)", Hub.commits),
    ("POST", f"{_API}/preupload/(?P<revision>[^/]+)", Hub.preupload),
    ("POST", f"{_API}/commit/(?P<revision>[^/]+)", Hub.commit),
    ("GET", f"{_API}/xet-(?P<action>read|write)-token/(?P<revision>[^/]+)", Hub.xet_token),
    ("POST", f"{_API}/discussions", Hub.discussions),
    ("GET", f"{_API}/discussions", Hub.list_discussions),
    ("GET", rf"{_API}/discussions/(?P<number>\d+)", Hub.discussion),
    ("POST", rf"{_API}/discussions/(?P<number>\d+)/merge", Hub.merge),
    # Older clients also ask for a repository without an owner, which has none.
    ("GET", r"/api/(?P<kind>models|datasets|spaces)/(?P<name>[^/]+)(?:/revision/(?P<revision>[^/]+))?", Hub.info),
    ("GET", rf"{_API}(?:/revision/(?P<revision>[^/]+))?", Hub.info),
    ("POST", rf"{_FILES}\.git/info/lfs/objects/batch", Hub.lfs_batch),
    ("PUT", r"/_lfs/(?P<sha256>\w+)/(?P<size>\d+)", Hub.lfs_upload),
    ("POST", r"/_lfs/(?P<sha256>\w+)/(?P<size>\d+)/verify", Hub.lfs_verify),
    ("GET", f"{_FILES}/resolve/(?P<revision>[^/]+)/(?P<path>.+)", Hub.resolve),
    ("HEAD", f"{_FILES}/resolve/(?P<revision>[^/]+)/(?P<path>.+)", Hub.resolve),
    ("GET", "/_test/history", Hub.history),
    ("POST", "/_test/rewind", Hub.rewind),
    ("ANY", "/_test/fail", Hub.fail),
)
_ROUTES = [(method, re.compile(pattern), function) for method, pattern, function in _TABLE]
