"""What the syncer remembers between its runs, `_sync.json` in the staging directory."""

from __future__ import annotations

import json
import os
import re
import time
from collections.abc import Mapping
from secrets import token_hex
from typing import Any

from safetensors_spark._files.json_text import parse_json
from safetensors_spark.publish._staging import Staging, open_staging

STATE = "_sync.json"

BUDGET, WINDOW_S = 90, 3600.0

_PULL_REQUEST = re.compile(r"refs/pr/[0-9]+")


def remaining_budget(staging_dir: str | os.PathLike[str], *, budget: int = BUDGET, window_s: float = WINDOW_S) -> int:
    """How many commits may be made now, if at most `budget` are made in `window_s` seconds.

    The Hub limits commits by the hour. What is counted are the commits that were made from this staging directory.
    """
    return SyncState(open_staging(staging_dir), budget, window_s).remaining


class SyncState:
    """The times of commits, and the pull request that is being opened or filled."""

    def __init__(self, staging: Staging, budget: int, window_s: float) -> None:
        self._staging, self._budget, self.window_s = staging, max(0, budget), window_s
        self._fields = _read(staging)

    @property
    def _commits(self) -> list[float]:
        return self._since(self.window_s)

    def _since(self, seconds: float) -> list[float]:
        # A clock that was ahead has left times of the future, which must not block for longer than a window.
        now = time.time()
        return [one for one in self._fields["commits"] if abs(now - one) < seconds]

    @property
    def _kept_s(self) -> float:
        """How long commits are remembered: another call may have a longer window."""
        return max(self.window_s, WINDOW_S)

    @property
    def remaining(self) -> int:
        return max(0, self._budget - len(self._commits))

    @property
    def seconds_left(self) -> float:
        """Until the next commit may be made."""
        commits = sorted(self._commits)
        if len(commits) < self._budget:
            return 0
        return max(0.0, commits[len(commits) - self._budget] + self.window_s - time.time()) if self._budget else 0

    def begin(self) -> float:
        """Count a commit, before it is made: its answer may be lost."""
        now = time.time()
        self._put(commits=[*self._since(self._kept_s), now])
        return now

    def withdraw(self, begun: float) -> None:
        """Do not count a commit that the Hub has refused."""
        self._put(commits=[one for one in self._since(self._kept_s) if one != begun])

    def pull_request(self, repo: str) -> str | None:
        """The revision of the pull request to this repository that is not complete."""
        found: str | None = self._fields["pull_requests"].get(repo)
        return found

    def set_pull_request(self, repo: str, revision: str | None) -> None:
        others = {name: one for name, one in self._fields["pull_requests"].items() if name != repo}
        opening = {name: one for name, one in self._fields["opening"].items() if name != repo}
        self._put(pull_requests=others | ({repo: revision} if revision else {}), opening=opening)

    def title(self, repo: str, text: str) -> str:
        """The title of the pull request that is being opened, by which it is found when the answer is lost."""
        if repo not in self._fields["opening"]:
            self._put(opening=self._fields["opening"] | {repo: f"{text} ({token_hex(4)})"})
        title: str = self._fields["opening"][repo]
        return title

    def _put(self, **fields: Any) -> None:
        self._fields = {**self._fields, **fields}
        self._staging.put(STATE, json.dumps(self._fields).encode())


def _read(staging: Staging) -> Mapping[str, Any]:
    """What is damaged, which nobody else writes, is started again."""
    try:
        found = parse_json(staging.read(STATE) or b"{}")
    except ValueError:
        found = {}
    fields = found if isinstance(found, dict) else {}
    commits, pulls, opening = (fields.get(name) for name in ("commits", "pull_requests", "opening"))
    return {
        **fields,
        "commits": [one for one in commits if type(one) in (int, float)] if isinstance(commits, list) else [],
        "pull_requests": {
            repo: one for repo, one in pulls.items() if isinstance(one, str) and _PULL_REQUEST.fullmatch(one)
        }
        if isinstance(pulls, dict)
        else {},
        "opening": {repo: one for repo, one in opening.items() if isinstance(one, str)}
        if isinstance(opening, dict)
        else {},
    }
