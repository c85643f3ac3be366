"""Syncs that are killed before any of their file operations and requests, or after any of their requests."""

import json
import shutil
import time
from collections.abc import Iterator
from functools import partial
from hashlib import sha256
from pathlib import Path
from typing import Literal

import numpy as np
import pytest

import hub
from forks import Fork
from killing import forked, killed_at_each_step
from safetensors_spark._files.manifest import MANIFEST
from safetensors_spark.dataset import DatasetWriter
from safetensors_spark.publish import list_pending, stage_dataset
from staging_samples import stage_bytes
from syncing import REPO, counted_sync, sync, tree


@pytest.fixture
def server(tmp_path: Path) -> Iterator[hub.Server]:
    with hub.running(tmp_path / "hub") as server:
        server.make_repo(REPO)
        yield server


def test_a_commit_that_arrives_after_its_syncer_was_killed_is_not_made_twice(
    server: hub.Server, tmp_path: Path
) -> None:
    shard = stage_bytes(tmp_path / "staging", "a.parquet")
    slow = server.fail(method="POST", path="/commit/", delay=3)
    with Fork(lambda: counted_sync(tmp_path / "staging"), server.environment()) as killed:
        while not server.hits(slow):
            assert killed.is_alive, killed.done().stderr
            time.sleep(0.01)
    assert sync(server, tmp_path / "staging")["n_remaining"] == 0
    while any(one["status"] is None for one in server.requests()):
        time.sleep(0.01)
    assert sum(shard.path_in_repo in one["changes"] for one in server.history(REPO)) == 1


def test_a_sync_killed_at_any_step_loses_and_doubles_nothing(server: hub.Server, tmp_path: Path) -> None:
    """Each process goes on where the one before was killed, and dies one step later."""
    staging, expected, steps = tmp_path / "staging", {}, 0

    def stage(step: int) -> Path:
        nonlocal steps
        steps = step
        if step == 1 or not list_pending(staging):
            for name in (f"a{step}.parquet", f"b{step}.parquet"):
                body = f"body {name} ".encode() * 400
                expected[stage_bytes(staging, name, body).path_in_repo] = sha256(body).hexdigest()
        return staging

    def syncs() -> None:
        for _ in killed_at_each_step(counted_sync, stage):
            bodies = [path.name for path in staging.glob("*/*.parquet")]
            assert sorted(bodies) == sorted(path.rpartition("/")[2] for path in expected)
        print(json.dumps([steps, expected]))

    with Fork(syncs, server.environment()) as fork:
        done = fork.done()
    assert done.returncode == 0, done.stderr
    steps, expected = json.loads(done.stdout)
    assert steps > 15
    assert tree(server) == expected
    made = [path for commit in server.history(REPO) for path in commit["changes"] if path.startswith("data/")]
    assert sorted(made) == sorted(expected)


def test_the_last_commit_of_a_dataset_killed_at_any_step_is_made_once_and_whole(
    server: hub.Server, tmp_path: Path
) -> None:
    """Each process begins where the new shards are committed, and dies one step later than the one before."""
    staging, begin, path = tmp_path / "staging", tmp_path / "begin", tmp_path / "vectors"
    modes: list[tuple[Literal["append", "overwrite"], int]] = [("append", 6), ("overwrite", 4)]
    for mode, rows in modes:
        with DatasetWriter(path, name_col="k", generate_index=True, mode=mode) as writer:
            writer.write({"k": [f"{mode}{one}" for one in range(rows)], "x": np.arange(rows)})
        stage_dataset(path, staging_dir=staging)
        # All of the first; of the second all but the last commit.
        sync(server, staging, budget=3)
    old, commits = tree(server), len(server.history(REPO))
    finals = [shard.path_in_repo for shard in list_pending(staging)]
    assert len(finals) > 1
    assert MANIFEST in finals
    staging.rename(begin)
    expected = {one.name for one in path.iterdir()} | {"README.md"}
    replaced = set(old) - expected
    assert replaced

    def folder(step: int) -> Path:
        server.rewind(REPO, commits)
        return Path(shutil.copytree(begin, tmp_path / str(step)))

    def syncs() -> None:
        seen = []
        for staging in killed_at_each_step(counted_sync, folder):
            is_new = tree(server) != old
            assert set(tree(server)) == expected if is_new else not server.history(REPO)[commits:]
            assert forked(partial(counted_sync, staging)) == 0
            assert set(tree(server)) == expected
            assert [sorted(one["changes"]) for one in server.history(REPO)[commits:]] == [
                sorted({*finals, "README.md"} | replaced)
            ]
            assert list_pending(staging) == []
            seen.append(is_new)
        print(json.dumps(seen))

    with Fork(syncs, server.environment()) as fork:
        done = fork.done(300)
    assert done.returncode == 0, done.stderr
    seen = json.loads(done.stdout)
    # Some were killed before the commit, and some after it.
    assert min(seen.count(False), seen.count(True)) > 5
    assert seen == sorted(seen)
