"""`safetensors-spark publish sync --watch`: it commits what comes, and stops when it is told to."""

import json
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

import hub
from staging_samples import stage_bytes
from syncing import REPO, sync, tree


@pytest.fixture
def server(tmp_path: Path) -> Iterator[hub.Server]:
    with hub.running(tmp_path / "hub") as server:
        server.make_repo(REPO)
        yield server


@contextmanager
def watching(server: hub.Server, staging: Path) -> Iterator[subprocess.Popen[str]]:
    """A process of its own, which gets signals as from a shell."""
    command = [sys.executable, "-m", "safetensors_spark", "publish", "sync", str(staging), REPO, "--watch", "0.2"]
    with subprocess.Popen(
        [*command, "--json"],
        env=server.environment(),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
    ) as process:
        try:
            yield process
        finally:
            process.kill()


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_what_comes_is_committed_until_a_signal(server: hub.Server, tmp_path: Path, number: signal.Signals) -> None:
    staging = tmp_path / "staging"
    with watching(server, staging) as process:
        for name in ("a.parquet", "b.parquet"):
            stage_bytes(staging, name)
            assert process.stdout is not None
            assert any(json.loads(line)["n_committed"] == 1 for line in process.stdout)
        process.send_signal(number)
        _, complaints = process.communicate(timeout=60)
    assert (process.returncode, complaints) == (0, "")
    assert set(tree(server)) == {"data/a.parquet", "data/b.parquet"}


def test_a_watch_tells_what_is_new_and_is_silent_else(server: hub.Server, tmp_path: Path) -> None:
    staging = tmp_path / "staging"
    stage_bytes(staging, "a.parquet")
    with watching(server, staging) as process:
        assert process.stdout is not None
        assert json.loads(process.stdout.readline())["n_committed"] == 1
        assert json.loads(process.stdout.readline())["n_committed"] == 0
        asked = len(server.requests())
        while len(server.requests()) < asked + 20:
            assert process.poll() is None
            time.sleep(0.05)
        stage_bytes(staging, "b.parquet")
        assert json.loads(process.stdout.readline())["n_committed"] == 1


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_during_a_commit_leaves_files_pending(
    server: hub.Server, tmp_path: Path, number: signal.Signals
) -> None:
    staging = tmp_path / "staging"
    stage_bytes(staging, "a.parquet")
    slow = server.fail(method="POST", path="/commit/", delay=4)
    with watching(server, staging) as process:
        while not server.hits(slow):
            assert process.poll() is None, process.communicate()
            time.sleep(0.02)
        process.send_signal(number)
        _, complaints = process.communicate(timeout=60)
    assert (process.returncode, complaints) == (3, "")
    assert sync(server, staging)["n_remaining"] == 0
    assert set(tree(server)) == {"data/a.parquet"}
