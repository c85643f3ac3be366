"""A short soak, of the same kills in every run as far as processes allow; `make soak` is the long one."""

from pathlib import Path

from soak import soak


def test_every_shard_is_in_the_repository_once_and_every_revision_is_whole(tmp_path: Path) -> None:
    done = soak(tmp_path, shards=200, kills=6, seed=18)
    print(done)
    # The kills themselves: some are during a commit, and commits were made between them.
    assert done.in_commits > 0
    assert done.revisions > done.kills
