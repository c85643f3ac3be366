"""Staging directories in a store of fsspec, whose files are there for one process only: so each test is one fork."""

import json
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from hashlib import sha256
from pathlib import Path
from typing import Any
from unittest.mock import patch

import fsspec
import numpy as np
import pytest

import hub
from forks import Fork
from safetensors_spark import StagingBusyError
from safetensors_spark._files.commit.lock_record import new_record
from safetensors_spark._files.manifest import MANIFEST
from safetensors_spark.dataset import write_dataset
from safetensors_spark.publish import (
    SyncReport,
    list_pending,
    remaining_budget,
    retry_failed,
    stage_dataset,
    sync_pending,
)
from safetensors_spark.publish._remote_staging import RemoteStaging
from safetensors_spark.publish._staging import FOLDERS, open_staging
from staging_samples import stage_bytes
from syncing import REPO, tree

STAGING = "memory://staging"


class Killed(BaseException):
    """As if the process was killed, but for its memory, in which the store is."""


@pytest.fixture
def server(tmp_path: Path) -> Iterator[hub.Server]:
    with hub.running(tmp_path / "hub") as server:
        server.make_repo(REPO)
        yield server


def in_fork(server: hub.Server, work: Callable[[], Any], timeout: float = 120) -> Any:
    """What the work returns."""
    with Fork(lambda: print(json.dumps(work())), server.environment()) as fork:
        done = fork.done(timeout)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def sync(place: str = STAGING, **options: Any) -> SyncReport:
    return sync_pending(place, repo_id=REPO, **options)


def counts(place: str = STAGING) -> list[int]:
    """How many files are pending, synced and failed, with their sidecars."""
    return [len(open_staging(place).names(folder)) for folder in FOLDERS]


def write(path: Path, rows: int) -> Path:
    write_dataset([{"x": np.arange(rows * 300.0).reshape(rows, 300)}], path, batch_size=4, mode="overwrite")
    return path


def test_shards_and_datasets_are_committed_from_a_store(server: hub.Server, tmp_path: Path) -> None:
    path, shard = tmp_path / "points", b"shard " * 1000

    def work() -> Any:
        stage_bytes(STAGING, "a.parquet", shard)
        reports = []
        for rows in (10, 3):
            stage_dataset(write(path, rows), staging_dir=STAGING)
            reports.append(sync())
        assert list_pending(STAGING) == []
        return [[one.n_committed, one.n_commits, one.n_remaining] for one in reports], remaining_budget(STAGING)

    assert in_fork(server, work) == [[[5, 2, 0], [2, 2, 0]], 86]
    assert set(tree(server)) == {one.name for one in path.iterdir()} | {"README.md", "data/a.parquet"}
    assert tree(server)["data/a.parquet"] == sha256(shard).hexdigest()


def test_a_refused_file_of_a_store_is_retried(server: hub.Server) -> None:
    server.fail(method="POST", path="/commit/", files="b.parquet", count=None, status=422, message="no")

    def work() -> Any:
        for name in "abc":
            stage_bytes(STAGING, f"{name}.parquet", name.encode())
        first, after = sync(), counts()
        sidecar = json.loads(open_staging(STAGING).read("failed/b.parquet.meta.json") or b"")
        server.heal()
        retried = [shard.path_in_repo for shard in retry_failed(STAGING)]
        last = sync(keep=0)
        return (
            first.n_committed,
            first.n_failed,
            after,
            sidecar["failed"]["reason"],
            retried,
            last.n_committed,
            counts(),
        )

    found = in_fork(server, work)
    assert found == [2, 1, [0, 4, 2], "422: no", ["data/b.parquet"], 1, [0, 0, 0]]
    assert set(tree(server)) == {f"data/{name}.parquet" for name in "abc"}


def test_a_body_of_a_store_that_was_changed_is_not_committed(server: hub.Server) -> None:
    def work() -> Any:
        stage_bytes(STAGING, "a.parquet", b"staged")
        open_staging(STAGING).put("pending/a.parquet", b"change")
        return sync().errors

    found = in_fork(server, work)
    assert found == ["data/a.parquet was refused: it is not what was staged: its bytes have changed since"]
    assert tree(server) == {}


def test_a_dry_run_changes_nothing_in_a_store(server: hub.Server) -> None:
    def work() -> Any:
        stage_bytes(STAGING, "a.parquet")
        report = sync(dry_run=True)
        return report.n_committed, report.n_commits, report.n_remaining, counts(), remaining_budget(STAGING)

    assert in_fork(server, work) == [1, 1, 1, [2, 0, 0], 90]
    assert tree(server) == {}


def test_a_sync_from_a_store_is_interrupted_before_any_change_and_goes_on(server: hub.Server, tmp_path: Path) -> None:
    path = write(tmp_path / "points", 6)
    expected = {one.name for one in path.iterdir()} | {"README.md", "data/a.parquet"}

    def work() -> Any:
        from safetensors_spark.publish._hub import HubRepo

        step, is_done = 0, False
        while not is_done:
            step += 1
            place = f"memory://staging{step}"
            server.rewind(REPO, 1)
            stage_bytes(place, "a.parquet", b"a" * 1000)
            stage_dataset(path, staging_dir=place)
            left = step

            def counted(change: Callable[..., Any]) -> Callable[..., Any]:
                def call(*arguments: Any) -> Any:
                    nonlocal left
                    left -= 1
                    if left == 0:
                        raise Killed
                    return change(*arguments)

                return call

            with ExitStack() as patches:
                for name in ("put", "create", "move", "delete"):
                    patches.enter_context(patch.object(RemoteStaging, name, counted(getattr(RemoteStaging, name))))
                patches.enter_context(patch.object(HubRepo, "_call", counted(HubRepo._call)))
                try:
                    sync(place)
                    is_done = True
                except Killed:
                    pass
            assert sync(place).n_remaining == 0
            assert set(tree(server)) == expected, step
            assert sorted(path for one in server.history(REPO)[1:] for path in one["changes"]) == sorted(expected)
            assert counts(place) == [0, 2 * (len(expected) - 1), 0], step
        return step

    assert in_fork(server, work, 300) > 25
    assert MANIFEST in tree(server)


@pytest.mark.parametrize("step", ["upload", "commit"])
def test_a_syncer_that_stood_still_while_another_took_over_leaves_the_rest_to_it(server: hub.Server, step: str) -> None:
    def work() -> tuple[str, dict[str, Any], list[Any]]:
        from safetensors_spark.publish._hub import HubRepo

        stage_bytes(STAGING, "a.parquet")
        done = getattr(HubRepo, step)

        def taken_over(self: HubRepo, *arguments: Any) -> Any:
            found = done(self, *arguments)
            # As the other one does, five minutes later.
            store.pipe_file("/staging/_commit.lock", new_record().text())
            return found

        store = fsspec.filesystem("memory")
        with patch.object(HubRepo, step, taken_over), pytest.raises(StagingBusyError, match="has taken over") as error:
            sync()
        store.rm_file("/staging/_commit.lock")
        return str(error.value), vars(sync()), server.history(REPO, trees=False)

    _, report, commits = in_fork(server, work)
    assert (report["n_committed"], report["n_remaining"], report["errors"]) == (1, 0, [])
    assert len(commits) == 2
