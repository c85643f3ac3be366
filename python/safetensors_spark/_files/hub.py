"""Datasets on the Hugging Face Hub: the commit that is read, and what to do where one cannot be."""

from __future__ import annotations

import re
import sys
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from fsspec import AbstractFileSystem

_LOG_IN = "log in with `hf auth login`, or give storage_options={'token': ...}"
_FOLDERS = {"dataset": "datasets/", "space": "spaces/"}


def at_commit(filesystem: AbstractFileSystem, root: str) -> str:
    """The path with the name of the commit that its branch or tag stands for now. Buckets have no commits."""
    from huggingface_hub import HfApi

    try:
        found = filesystem.resolve_path(root)
    except FileNotFoundError:
        # The file system remembers what was not there, which somebody may publish next.
        filesystem.invalidate_cache()
        raise
    if not hasattr(found, "repo_id") or re.fullmatch("[0-9a-f]{40}", found.revision):
        return root
    api = HfApi(endpoint=filesystem.endpoint, token=filesystem.token)
    commit = api.repo_info(found.repo_id, revision=found.revision, repo_type=found.repo_type).sha
    inside = f"/{found.path_in_repo}" if found.path_in_repo else ""
    return f"{_FOLDERS.get(found.repo_type, '')}{found.repo_id}@{commit}{inside}"


def hub_error(name: str, error: Exception) -> OSError | None:
    """What to say where the Hub's client has refused, and another attempt would not help; None for all other errors."""
    errors = sys.modules.get("huggingface_hub.errors")
    if errors is None:
        return None
    if isinstance(error, FileNotFoundError) and isinstance(error.__cause__, Exception):
        error = error.__cause__
    response = getattr(error, "response", None) if isinstance(error, errors.HfHubHTTPError) else None
    status = response.status_code if response is not None else None
    if isinstance(error, errors.GatedRepoError):
        return PermissionError(
            f"{name} may not be read: the repository is gated. Request access on its page, and {_LOG_IN}."
        )
    if isinstance(error, errors.RevisionNotFoundError):
        return FileNotFoundError(
            f"{name} does not exist: the repository has no such branch, tag or commit. Its page lists them."
        )
    if isinstance(error, errors.RepositoryNotFoundError):
        return FileNotFoundError(
            f"{name} does not exist, or may not be read without the right token. Check the name (a dataset's begins "
            f"with hf://datasets/), or {_LOG_IN}."
        )
    if isinstance(error, errors.EntryNotFoundError):
        return FileNotFoundError(f"{name} does not exist")
    if isinstance(error, errors.OfflineModeIsEnabled):
        return OSError(f"{name} cannot be read: HF_HUB_OFFLINE is set. Unset it, or read a local copy.")
    if status == 401:
        return PermissionError(f"{name} may not be read: the token is unknown to the Hub. For another one, {_LOG_IN}.")
    if status == 403:
        return PermissionError(f"{name} may not be read: the token has no permission. For another one, {_LOG_IN}.")
    return None
