"""`safetensors-spark publish`: what it does to the repository, what it prints, and its exit codes."""

import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import hub
from forks import run_module
from safetensors_spark.dataset import DatasetWriter
from staging_samples import stage_bytes


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


def publish(
    server: hub.Server, *args: object, xet: bool = True, token: str | None = hub.WRITE
) -> subprocess.CompletedProcess[str]:
    return run_module("safetensors_spark", ["publish", *map(str, args)], server.environment(token, xet))


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
    assert "s3://bucket/points is no folder of this machine. Of a URL, call `stage_dataset`" in done.stderr
    missing = publish(server, "dataset", "nowhere", "me/points")
    assert (missing.returncode, missing.stderr.strip()) == (
        2,
        "safetensors-spark: nowhere is no folder of this machine.",
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
    assert (done.returncode, done.stdout) == (0, "me/points: 1 file in 1 commit, would be committed.\n")
    done = publish(server, "sync", tmp_path / "staging", "me/points", "--json")
    assert (done.returncode, told(done)["n_committed"]) == (0, 1)
