"""`safetensors-spark publish`: what it does to the repository, what it prints, and its exit codes."""

import json
import subprocess
import sys
import time
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import hub
from forks import Fork, module_work
from hub_client import client
from killing import forked, killed_at_each_step
from safetensors_spark._commands.cli import main
from safetensors_spark._files.manifest import MANIFEST
from safetensors_spark.dataset import DatasetWriter
from staging_samples import files, stage_bytes
from syncing import counted_requests, publish


@pytest.fixture(params=[True, False], ids=["xet", "lfs"])
def xet(request: pytest.FixtureRequest) -> bool:
    return bool(request.param)


@pytest.fixture
def server(tmp_path: Path) -> Iterator[hub.Server]:
    with hub.running(tmp_path / "hub") as server:
        yield server


@pytest.fixture
def points(tmp_path: Path) -> Path:
    with DatasetWriter(tmp_path / "points", batch_size=2) as writer:
        writer.write({"x": np.arange(4)})
    return tmp_path / "points"


def told(done: subprocess.CompletedProcess[str]) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(done.stdout)
    return found


def tree(server: hub.Server) -> set[str]:
    return set(server.history("me/points")[-1]["tree"]) - {".gitattributes"}


def test_a_dataset_needs_no_staging_by_hand(server: hub.Server, points: Path, tmp_path: Path, xet: bool) -> None:
    done = publish(server, "dataset", points, "me/points", xet=xet)
    assert (done.returncode, done.stderr) == (0, "")
    assert tree(server) == {one.name for one in points.iterdir()} | {"README.md"}
    assert {one.name for one in tmp_path.iterdir()} == {"points", "hub"}


def test_a_dataset_that_is_published_is_not_committed_again(server: hub.Server, points: Path) -> None:
    publish(server, "dataset", points, "me/points")
    before = server.history("me/points")
    done = publish(server, "dataset", points, "me/points", "--json")
    assert done.returncode == 0
    assert told(done)["n_commits"] == 0
    assert server.history("me/points") == before


def test_a_file_that_the_hub_refuses_is_exit_code_1(server: hub.Server, tmp_path: Path) -> None:
    server.make_repo("me/points")
    staging = tmp_path / "staging"
    for name in ("a.parquet", "bad.parquet", "c.parquet"):
        stage_bytes(staging, name, name.encode())
    server.fail(status=422, files="data/bad.parquet", count=None)
    done = publish(server, "sync", staging, "me/points", "--json")
    report = told(done)
    assert (done.returncode, report["n_committed"], report["n_failed"]) == (1, 2, 1)
    found = publish(server, "status", staging, "--json")
    assert found.returncode == 1
    assert list(told(found)["refused"]) == ["data/bad.parquet"]
    server.heal()
    assert publish(server, "retry", staging).returncode == 0
    assert publish(server, "sync", staging, "me/points").returncode == 0
    assert tree(server) == {"data/a.parquet", "data/bad.parquet", "data/c.parquet"}


def test_a_url_is_staged_instead(server: hub.Server) -> None:
    done = publish(server, "dataset", "s3://bucket/points", "me/points")
    assert (done.returncode, done.stdout) == (2, "")
    assert "s3://bucket/points is not a local folder. Of a URL, call `stage_dataset`" in done.stderr
    missing = publish(server, "dataset", "nowhere", "me/points")
    assert (missing.returncode, missing.stderr.strip()) == (
        2,
        "safetensors-spark: nowhere is not a local folder.",
    )


def test_a_dry_run_changes_nothing(server: hub.Server, tmp_path: Path) -> None:
    server.make_repo("me/points")
    stage_bytes(tmp_path / "staging", "a.parquet")
    before = server.history("me/points")
    done = publish(server, "sync", tmp_path / "staging", "me/points", "--dry-run", "--json")
    assert (done.returncode, told(done)["n_remaining"]) == (0, 1)
    assert server.history("me/points") == before


def test_missing_rights_are_exit_code_2_and_the_token_is_not_shown(server: hub.Server, tmp_path: Path) -> None:
    server.make_repo("me/points")
    stage_bytes(tmp_path / "staging", "a.parquet")
    done = publish(server, "sync", tmp_path / "staging", "me/points", token=hub.READ)
    assert done.returncode == 2
    assert "me/points" in done.stderr
    assert hub.READ not in done.stdout + done.stderr
    assert "Traceback" not in done.stderr


def test_a_hub_that_cannot_be_reached_is_one_line(server: hub.Server, points: Path) -> None:
    environment = {**server.environment(), "HF_ENDPOINT": "http://127.0.0.1:1"}
    command = [sys.executable, "-m", "safetensors_spark", "publish", "dataset", str(points), "me/points"]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=120)
    assert done.returncode == 2
    assert "the Hub cannot be reached" in done.stderr
    assert len(done.stderr.strip().splitlines()) == 1


@pytest.mark.parametrize("status", [400, 429])
def test_a_repository_that_the_hub_does_not_make_is_one_line(server: hub.Server, points: Path, status: int) -> None:
    server.fail(path="/api/repos/create", status=status, message="not now", count=None)
    done = publish(server, "dataset", points, "me/points")
    said = f"safetensors-spark: the Hub does not make me/points: {status}: not now. Nothing was changed.\n"
    assert (done.returncode, done.stderr) == (2, said)


def test_a_dry_run_says_what_would_be_committed(server: hub.Server, tmp_path: Path) -> None:
    server.make_repo("me/points")
    stage_bytes(tmp_path / "staging", "a.parquet")
    done = publish(server, "sync", tmp_path / "staging", "me/points", "--dry-run")
    assert (done.returncode, done.stdout) == (0, "me/points: 1 file would be committed, in 1 commit.\n")
    done = publish(server, "sync", tmp_path / "staging", "me/points", "--json")
    assert (done.returncode, told(done)["n_committed"]) == (0, 1)


@pytest.fixture
def staging(server: hub.Server, tmp_path: Path) -> Path:
    """One file is pending."""
    server.make_repo("me/points")
    stage_bytes(tmp_path / "staging", "a.parquet")
    return tmp_path / "staging"


def test_files_that_remain_are_exit_code_3(server: hub.Server, staging: Path) -> None:
    server.fail(method="POST", path="/commit/", status=503, count=None)
    done = publish(server, "sync", staging, "me/points", "--json")
    assert (done.returncode, told(done)["n_remaining"]) == (3, 1)
    assert "the Hub failed 4 times" in told(done)["errors"][0]
    plain = publish(server, "sync", staging, "me/points")
    assert (plain.returncode, plain.stdout) == (3, "me/points: 0 files in 0 commits, 0 failed, 1 remaining.\n")
    assert plain.stderr.startswith("safetensors-spark: the Hub failed 4 times")
    assert publish(server, "status", staging).returncode == 3


def test_a_dataset_that_remains_is_exit_code_3_and_goes_on(server: hub.Server, points: Path) -> None:
    server.fail(method="POST", path="/commit/", skip=1, status=503, count=None)
    done = publish(server, "dataset", points, "me/points", "--json")
    assert (done.returncode, told(done)["n_committed"], told(done)["n_remaining"]) == (3, 2, 1)
    server.heal()
    assert publish(server, "dataset", points, "me/points").returncode == 0
    assert tree(server) == {one.name for one in points.iterdir()} | {"README.md"}


def test_another_syncer_is_exit_code_2(server: hub.Server, staging: Path) -> None:
    slow = server.fail(method="POST", path="/commit/", delay=4)
    command = module_work("safetensors_spark", ["publish", "sync", str(staging), "me/points"])
    with Fork(command, server.environment()) as other:
        while not server.hits(slow):
            assert other.is_alive, other.done().stderr
            time.sleep(0.01)
        done = publish(server, "sync", staging, "me/points", "--json")
        assert (done.returncode, done.stdout) == (2, "")
        assert f"is being synced by process {other.pid}" in done.stderr
        assert other.done().returncode == 0


def test_a_dataset_is_published_by_one_command_at_a_time(server: hub.Server, points: Path, tmp_path: Path) -> None:
    def staged_slowly() -> None:
        from safetensors_spark.publish._stage_dataset import _Staged

        stage = _Staged.stage

        def slow(self: _Staged, content: bytes) -> Any:
            (tmp_path / "stages").touch()
            while not (tmp_path / "go").exists():
                time.sleep(0.01)
            return stage(self, content)

        _Staged.stage = slow  # type: ignore[method-assign]
        module_work("safetensors_spark", ["publish", "dataset", str(points), "me/points"])()

    with Fork(staged_slowly, server.environment()) as other:
        while not (tmp_path / "stages").exists():
            assert other.is_alive, other.done().stderr
            time.sleep(0.01)
        done = publish(server, "dataset", points, "me/points")
        assert (done.returncode, done.stdout) == (2, "")
        assert f"{points} is being published to me/points by another process." in done.stderr
        assert publish(server, "dataset", points, "me/others").returncode == 0
        (tmp_path / "go").touch()
        assert other.done().returncode == 0
    assert not [one for one in tmp_path.iterdir() if "-publish-" in one.name]


def test_wrong_arguments_are_exit_code_2(server: hub.Server, staging: Path) -> None:
    for arguments in (["sync", staging], ["sync", staging, "me/points", "--keep", "long"], ["commit"]):
        done = publish(server, *arguments)
        assert (done.returncode, done.stdout) == (2, "")
        assert done.stderr.startswith("usage: ")


def test_status_counts_what_there_is(server: hub.Server, staging: Path) -> None:
    def counts() -> tuple[int, list[int], int]:
        done = publish(server, "status", staging, "--json")
        found = told(done)
        return (
            done.returncode,
            [found[name]["files"] for name in ("pending", "synced", "failed")],
            found["remaining_budget"],
        )

    assert counts() == (3, [1, 0, 0], 90)
    assert publish(server, "sync", staging, "me/points").returncode == 0
    assert counts() == (0, [0, 1, 0], 89)


def test_old_files_are_removed_as_keep_says(server: hub.Server, staging: Path) -> None:
    assert publish(server, "sync", staging, "me/points", "--keep", "1").returncode == 0
    assert files(staging)["synced"] == ["a.parquet", "a.parquet.meta.json"]
    assert publish(server, "sync", staging, "me/points", "--keep", "0").returncode == 0
    assert files(staging)["synced"] == []
    assert tree(server) == {"data/a.parquet"}


def test_a_pull_request_is_made_and_main_stays(server: hub.Server, staging: Path, points: Path) -> None:
    before = tree(server)
    done = publish(server, "sync", staging, "me/points", "--create-pr", "--json")
    assert (done.returncode, told(done)["n_committed"]) == (0, 1)
    done = publish(server, "dataset", points, "me/points", "--create-pr", "--json")
    assert (done.returncode, told(done)["n_remaining"]) == (0, 0)
    assert before == set()
    found = client(server, """
        def files(revision): return set(api.list_repo_files("me/points", repo_type="dataset", revision=revision))
        print([sorted(files(one) - files("main")) for one in ("refs/pr/1", "refs/pr/2")])
    """)  # fmt: skip
    assert found == str([["data/a.parquet"], sorted({one.name for one in points.iterdir()} | {"README.md"})])


def test_what_was_pruned_and_retried_is_told(server: hub.Server, staging: Path) -> None:
    (staging / "pending" / "orphan.parquet").touch()
    done = publish(server, "prune", staging, "--json")
    assert (done.returncode, told(done)) == (0, {"removed": []})
    done = publish(server, "prune", staging, "--older-than", "0", "--json")
    assert (done.returncode, told(done)) == (0, {"removed": [str(staging / "pending" / "orphan.parquet")]})
    server.fail(status=422, files="data/a.parquet", count=None)
    assert publish(server, "sync", staging, "me/points").returncode == 1
    done = publish(server, "retry", staging, "--json")
    assert (done.returncode, told(done)) == (0, {"retried": ["data/a.parquet"]})


def test_a_dataset_killed_at_any_step_is_published_whole_by_the_next_run(server: hub.Server, tmp_path: Path) -> None:
    """Each process begins without a repository, and dies one file operation or request later than the one before."""

    def made(step: int) -> Path:
        with DatasetWriter(tmp_path / str(step) / "points", batch_size=2) as writer:
            writer.write({"x": np.arange(4)})
        return tmp_path / str(step)

    def run(folder: Path) -> None:
        with counted_requests(folder):
            assert main(["publish", "dataset", str(folder / "points"), f"me/p{folder.name}", "--json"]) == 0

    def runs() -> None:
        for steps, folder in enumerate(killed_at_each_step(run, made), start=1):
            expected = {one.name for one in (folder / "points").iterdir()}
            shards = {name for name in expected if name.endswith(".safetensors")}
            # It may have been killed before the repository was made.
            assert forked(partial(run, folder)) == 0
            history = server.history(f"me/p{steps}")
            assert set(history[-1]["tree"]) == expected | {"README.md", ".gitattributes"}
            assert all(shards <= set(one["tree"]) for one in history if MANIFEST in one["tree"])
            changed = [path for one in history[1:] for path in one["changes"]]
            assert sorted(changed) == sorted(expected | {"README.md"})
            assert [one.name for one in folder.iterdir()] == ["points"]
        print(steps)

    with Fork(runs, server.environment(xet=False)) as fork:
        done = fork.done(300)
    assert done.returncode == 0, done.stderr
    assert int(done.stdout.splitlines()[-1]) > 40
