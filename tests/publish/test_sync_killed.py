"""Syncs that are killed before any of their file operations and requests, or after any of their requests."""

import json
import time
from collections.abc import Iterator
from hashlib import sha256
from pathlib import Path

import pytest

import hub
from forks import Fork
from killing import killed_at_each_step
from safetensors_spark.publish import list_pending
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
