"""A file that a repository has is not replaced by a shard of other rows: see docs/publish.md."""

from collections.abc import Iterator
from pathlib import Path

import pytest

import hub
from hub_client import client
from staging_samples import files, stage_bytes
from syncing import REPO, publish, run, sync, tree


@pytest.fixture
def server(tmp_path: Path) -> Iterator[hub.Server]:
    with hub.running(tmp_path / "hub") as server:
        server.make_repo(REPO)
        yield server


@pytest.mark.parametrize("xet", [True, False], ids=["xet", "lfs"])
def test_a_path_that_has_other_content_is_not_replaced(server: hub.Server, tmp_path: Path, xet: bool) -> None:
    one, other = tmp_path / "one", tmp_path / "other"
    stage_bytes(one, "a.parquet", b"a" * 2000)
    sync(server, one, xet=xet)
    stage_bytes(other, "a.parquet", b"b" * 2000)
    stage_bytes(other, "b.parquet", b"b" * 2000)
    before = tree(server)
    said = (
        "data/a.parquet was refused: me/points has another file at this path. Stage the rows with another run_id; "
        "or delete the file there, and call retry_failed"
    )
    dry = sync(server, other, xet=xet, dry_run=True)
    assert (dry["n_committed"], dry["n_failed"], dry["n_commits"], dry["errors"]) == (1, 1, 1, [said])
    assert publish(server, "sync", other, REPO, "--dry-run", xet=xet).returncode == 1
    report = sync(server, other, xet=xet)
    assert (report["n_committed"], report["n_failed"], report["n_remaining"], report["errors"]) == (1, 1, 0, [said])
    assert {path: name for path, name in tree(server).items() if path != "data/b.parquet"} == before
    assert files(other)["failed"] == ["a.parquet", "a.parquet.meta.json"]

    client(server, 'commit(CommitOperationDelete("data/a.parquet"))')
    run(server, other, "retry_failed(staging)", xet=xet)
    assert sync(server, other, xet=xet)["n_committed"] == 1
    assert tree(server).keys() == {"data/a.parquet", "data/b.parquet"}
    assert tree(server)["data/a.parquet"] != before["data/a.parquet"]


def test_a_conflict_after_a_path_was_taken_counts_it_once(server: hub.Server, tmp_path: Path) -> None:
    one, other = tmp_path / "one", tmp_path / "other"
    stage_bytes(one, "a.parquet", b"one")
    sync(server, one)
    stage_bytes(other, "a.parquet", b"other")
    stage_bytes(other, "b.parquet")
    server.fail(method="POST", path="/commit/", status=412, message="moved", count=1)
    report = sync(server, other)
    assert (report["n_committed"], report["n_failed"], len(report["errors"])) == (1, 1, 1)
