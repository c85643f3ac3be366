"""What a sync tells of itself."""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass
class SyncReport:
    """What a sync has done.

    Attributes:
        n_committed: files that are in the repository now and were pending before; of a dry run, those that would be.
        n_failed: files that the Hub has refused, which are in `failed/` now, with the reason in their sidecars.
        n_remaining: files that are still pending.
        n_commits: commits that were made.
        commit_oids: these commits.
        errors: what went wrong, and why files are still pending.
    """

    n_committed: int = 0
    n_failed: int = 0
    n_remaining: int = 0
    n_commits: int = 0
    commit_oids: list[str] = field(default_factory=list)
    errors: list[str] = field(default_factory=list)
