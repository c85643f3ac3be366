"""A repository of the Hugging Face Hub, and what its refusals mean."""

from __future__ import annotations

import re
import tempfile
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from json import JSONDecodeError
from pathlib import Path
from typing import Any

from huggingface_hub import CommitOperationAdd, CommitOperationDelete, HfApi, get_token, hf_hub_download
from huggingface_hub.constants import REPO_TYPES
from huggingface_hub.errors import (
    EntryNotFoundError,
    HfHubHTTPError,
    HFValidationError,
    LocalEntryNotFoundError,
    LocalTokenNotFoundError,
    OfflineModeIsEnabled,
)
from huggingface_hub.utils import parse_ratelimit_headers, validate_repo_id

from safetensors_spark._errors import HubAccessError, InvalidWriteError, printable
from safetensors_spark._files.secrets import without_secrets
from safetensors_spark.publish._card import CARD

# Paths that are requested in one request.
_ASKED = 500
_REFUSED, _CONFLICT, _DENIED, _LIMITED = (400, 413, 422), (409, 412), (401, 403, 404), 429
# Of pull requests that may get more commits.
_OPEN = ("open", "draft")
# Where the answer does not say how long to wait.
_PAUSE_S = 60.0


class RefusedError(Exception):
    """The Hub does not take a file, whenever it is sent."""


class ConflictError(Exception):
    """Somebody else has committed, or is doing so."""


class LimitedError(Exception):
    """There were too many requests. Wait for `seconds`."""

    def __init__(self, text: str, seconds: float) -> None:
        super().__init__(text)
        self.seconds = seconds


class FailedError(Exception):
    """It may work the next time."""


@dataclass(frozen=True)
class RemoteFile:
    """A file as a revision has it.

    Attributes:
        sha256: of a file that is stored apart from Git; None of others.
        blob_id: Git's name of its content.
    """

    size: int
    sha256: str | None
    blob_id: str


class HubRepo:
    """A repository at one revision.

    All calls raise `HubAccessError`, `RefusedError`, `ConflictError`, `LimitedError` or `FailedError`.
    """

    def __init__(self, repo_id: str, repo_type: str, revision: str, token: str | bool | None) -> None:
        if repo_type not in REPO_TYPES:
            raise InvalidWriteError(f"repo_type is {repo_type!r}, expected dataset, model or space.")
        if not _is_repo_id(repo_id):
            raise InvalidWriteError(
                f"repo_id is {repo_id!r}, expected an owner and a name of letters, digits, `-`, `_` and `.`, such as "
                "me/points."
            )
        self.repo_id, self.repo_type, self.revision = repo_id, repo_type, revision
        self._token = token
        # What no error may show.
        self._secret = token if isinstance(token, str) else get_token() if token is not False else None
        if self._secret is not None and not re.fullmatch("[!-~]+", self._secret):
            raise HubAccessError(
                "the token is empty, or has spaces, line breaks or other characters that no token has. Copy it again "
                "from https://huggingface.co/settings/tokens. Everything stays pending."
            )
        self._api = HfApi(token=token)

    def make(self, *, private: bool) -> None:
        """Make the repository if there is none."""
        self._call(lambda: self._api.create_repo(**self._of, private=private, exist_ok=True))

    def check_branch(self) -> None:
        """Raise `HubAccessError` for a tag or a commit: all files would seem to be refused."""
        if self.revision == "main" or self.revision.startswith("refs/pr/"):
            return
        branches = self._call(lambda: self._api.list_repo_refs(**self._of)).branches
        if self.revision not in {name for one in branches for name in (one.name, one.ref)}:
            raise HubAccessError(
                f"{self.repo_type} {self.repo_id} has no branch `{self.revision}`, and only branches can be committed "
                "to. Check its name, or make it (`hf repos branch create`). Everything stays pending."
            )

    def head(self) -> str:
        """The revision's last commit."""
        commit = self._call(lambda: self._api.repo_info(**self._of, revision=self.revision).sha)
        if not commit:
            raise FailedError("its answer does not name the last commit")
        return str(commit)

    def files(self, paths: Iterable[str], commit: str) -> dict[str, RemoteFile]:
        """Those of these files that a commit has."""
        asked, found = sorted(set(paths)), {}
        for begin in range(0, len(asked), _ASKED):
            some = asked[begin : begin + _ASKED]
            for one in self._call(lambda some=some: self._api.get_paths_info(paths=some, **self._of, revision=commit)):
                if hasattr(one, "blob_id"):
                    found[one.path] = RemoteFile(one.size, one.lfs.sha256 if one.lfs else None, one.blob_id)
        return found

    def read(self, path: str, commit: str) -> bytes | None:
        """The bytes of a file; None if the commit has no such file."""
        with tempfile.TemporaryDirectory() as folder:
            try:
                got = self._call(
                    lambda: hf_hub_download(
                        **self._of, filename=path, revision=commit, local_dir=folder, token=self._token
                    )
                )
            except EntryNotFoundError:
                return None
            return Path(got).read_bytes()

    def pull_request(self, title: str) -> str:
        """The revision of the open pull request with this title, which no other has. It is opened if there is none."""
        found = self._call(lambda: list(self._api.get_repo_discussions(**self._of, discussion_type="pull_request")))
        for one in found:
            if one.title == title and one.status in _OPEN:
                return str(one.git_reference)
        made = self._call(lambda: self._api.create_pull_request(**self._of, title=title))
        return str(made.git_reference)

    def is_open(self, pull_request: str) -> bool:
        """Whether a pull request may get more commits: it is neither merged nor closed, and it is there."""
        number = int(pull_request.rpartition("/")[2])
        try:
            found = self._call(lambda: self._api.get_discussion_details(**self._of, discussion_num=number))
        except HubAccessError:
            return False
        return found.status in _OPEN

    def upload(self, additions: Sequence[CommitOperationAdd]) -> None:
        """Send the bytes of large files, which no revision has yet."""
        self._call(lambda: self._api.preupload_lfs_files(**self._of, additions=additions, revision=self.revision))
        for one in additions:
            # The client would leave it out of the commit, and say nothing.
            if one._should_ignore:
                raise RefusedError(f"the repository's .gitignore excludes {one.path_in_repo}")

    def commit(
        self,
        operations: Sequence[CommitOperationAdd | CommitOperationDelete],
        message: str,
        parent: str,
    ) -> str:
        """Commit, if the parent is still the last commit, and return the commit."""
        for one in operations:
            if isinstance(one, CommitOperationAdd) and one.path_in_repo == CARD:
                _check_text(one)
        try:
            made = self._call(
                lambda: self._api.create_commit(
                    **self._of,
                    operations=operations,
                    commit_message=message,
                    revision=self.revision,
                    parent_commit=parent,
                )
            )
        except EntryNotFoundError as error:
            # What was to be deleted is deleted.
            raise ConflictError(self._text(error)) from None
        return str(made.oid)

    @property
    def place(self) -> tuple[str, str, str]:
        """What tells where commits go."""
        return self.repo_id, self.repo_type, self.revision

    @property
    def _of(self) -> Mapping[str, Any]:
        return {"repo_id": self.repo_id, "repo_type": self.repo_type}

    def _call(self, call: Any) -> Any:
        try:
            return call()
        except LocalEntryNotFoundError as error:
            # The client's name for a file that it could not ask for, whether or not there is one.
            cause = error.__cause__
            raise (
                self._meaning(cause) if isinstance(cause, HfHubHTTPError) else FailedError(self._text(error))
            ) from None
        except EntryNotFoundError:
            raise
        except OfflineModeIsEnabled:
            raise HubAccessError(
                "HF_HUB_OFFLINE is set, so nothing is committed. Unset it. Everything stays pending."
            ) from None
        except (HFValidationError, LocalTokenNotFoundError) as error:
            raise self._denied(error) from None
        except HfHubHTTPError as error:
            raise self._meaning(error) from None
        except (JSONDecodeError, UnicodeDecodeError, KeyError, TypeError, AttributeError) as error:
            # A proxy's page, for example.
            raise FailedError(
                f"its answer is not one of the Hub ({type(error).__name__}: {self._text(error)})"
            ) from None
        except ValueError as error:
            # How the client says that LFS takes a file not at all, such as a file that is too large, or the Hub a card.
            is_refused = str(error).startswith(("LFS batch API returned errors", "Invalid metadata in README.md"))
            raise (RefusedError if is_refused else FailedError)(self._text(error)) from None
        # What networks, and the libraries below, raise.
        except Exception as error:
            raise FailedError(self._text(error)) from None

    def _meaning(self, error: HfHubHTTPError) -> Exception:
        status, text = error.response.status_code, self._text(error)
        if status in _DENIED:
            return self._denied(error)
        if status in _CONFLICT:
            return ConflictError(text)
        if status in _REFUSED:
            return RefusedError(text)
        if status == _LIMITED:
            return LimitedError(text, _seconds(error.response.headers))
        return FailedError(text)

    def _denied(self, error: Exception) -> HubAccessError:
        advice = (
            "Check its name, that it is there already, and that the token may write to it (`hf auth whoami`)."
            if self._secret
            else "There is no token: log in with `hf auth login`, or set HF_TOKEN."
        )
        return HubAccessError(
            f"{self.repo_type} {self.repo_id}, revision {self.revision}, cannot be written: {self._text(error)}. "
            f"{advice} Everything stays pending."
        )

    def _text(self, error: Exception) -> str:
        """One line without the token, and without a full stop."""
        server = getattr(error, "server_message", None)
        status = error.response.status_code if isinstance(error, HfHubHTTPError) else None
        text = " ".join(str(server or error).split()).rstrip(".") or type(error).__name__
        # Libraries that wrap errors of others often repeat them.
        if (
            status is None
            and isinstance(error.__cause__, Exception)
            and (cause := self._text(error.__cause__)) not in text
        ):
            text = f"{text} ({cause})"
        if self._secret:
            text = text.replace(self._secret, "***")
        text = printable(without_secrets(text))
        return f"{status}: {text:.500}" if status else f"{text:.500}"


def _check_text(card: CommitOperationAdd) -> None:
    # The client decodes it, and would say no more than for an answer that is not text.
    with card.as_file() as file:
        try:
            file.read().decode()
        except UnicodeDecodeError as error:
            raise RefusedError(f"{CARD} is not UTF-8: {error}") from None


def _is_repo_id(repo_id: str) -> bool:
    """Whether it names a repository and its owner."""
    try:
        validate_repo_id(repo_id)
    except HFValidationError:
        return False
    return "/" in repo_id


def _seconds(headers: Mapping[str, str]) -> float:
    """How long to wait, as the answer says."""
    try:
        return max(0.0, float(headers["Retry-After"]))
    except (KeyError, ValueError):
        limit = parse_ratelimit_headers(headers)
        return float(limit.reset_in_seconds) if limit else _PAUSE_S
