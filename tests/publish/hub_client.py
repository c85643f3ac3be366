"""Runs the real client of the Hub in a process of its own, since it reads its environment when it is imported."""

import textwrap

import hub
from forks import run_code

_BEGIN = """
import os, hashlib, random
from pathlib import Path
from huggingface_hub import CommitOperationAdd, CommitOperationDelete, HfApi, HfFileSystem
from huggingface_hub import hf_hub_download, snapshot_download
from huggingface_hub.errors import HfHubHTTPError, RepositoryNotFoundError
api, folder = HfApi(), Path(os.environ["FOLDER"])
def add(path, content): return CommitOperationAdd(path, content)
def commit(*operations, **more):
    return api.create_commit("me/points", operations, commit_message="more", repo_type="dataset", **more)
def status(call):
    try: call()
    except HfHubHTTPError as error: return error.response.status_code
"""


def client(
    server: hub.Server, code: str, xet: bool = True, token: str | None = hub.WRITE, *, offline: bool = False
) -> str:
    """What a process that runs the code prints."""
    environment = {**server.environment(token, xet), "FOLDER": str(server.folder), "HF_HUB_OFFLINE": str(int(offline))}
    done = run_code(_BEGIN + textwrap.dedent(code), environment)
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()
