"""The short form of `make soak`."""

from pathlib import Path

from soaking import check, soak


def test_each_shard_is_there_once_and_each_revision_whole_though_syncers_are_killed(tmp_path: Path) -> None:
    check(soak(tmp_path, 80, 4), 80, 4)
