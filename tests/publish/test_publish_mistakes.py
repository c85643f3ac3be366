"""What people get wrong when they publish: they are told what it is, and what to do, and nothing is changed."""

import os
import signal
import subprocess
import sys
import textwrap
import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

import hub
from forks import run_code
from hub_client import client
from safetensors_spark.dataset import DatasetWriter
from safetensors_spark.publish import stage_dataset
from staging_samples import stage_bytes
from syncing import REPO, publish

COMMAND = [sys.executable, "-m", "safetensors_spark", "publish"]
NO_TOKEN = "There is no token: log in with `hf auth login`, or set HF_TOKEN."


@pytest.fixture
def server(tmp_path: Path) -> Iterator[hub.Server]:
    with hub.running(tmp_path / "hub") as server:
        server.make_repo(REPO)
        yield server


@pytest.fixture
def staging(tmp_path: Path) -> Path:
    stage_bytes(tmp_path / "staging", "a.parquet")
    return tmp_path / "staging"


@pytest.fixture
def points(tmp_path: Path) -> Path:
    with DatasetWriter(tmp_path / "points", batch_size=2) as writer:
        writer.write({"x": np.arange(4)})
    return tmp_path / "points"


def refused(done: subprocess.CompletedProcess[str]) -> str:
    """The one line that a command says which could not begin."""
    assert (done.returncode, done.stdout) == (2, ""), done
    (line,) = done.stderr.splitlines()
    return line


# -- The Hub ---------------------------------------------------------------------------------------------------------


def test_who_has_no_token_is_told_to_log_in(server: hub.Server, staging: Path, points: Path) -> None:
    for args in (("sync", staging), ("dataset", points)):
        line = refused(publish(server, *args, "me/points", token=None))
        assert NO_TOKEN in line
        assert ".." not in line
    wrong = refused(publish(server, "sync", staging, "me/points", token="hf_wrong"))
    assert NO_TOKEN not in wrong
    assert "`hf auth whoami`" in wrong


def test_a_repository_is_named_by_owner_and_name(server: hub.Server, staging: Path, points: Path) -> None:
    before = {one.name for one in points.parent.iterdir()}
    for repo in ("points", "me/a/b", "https://huggingface.co/datasets/me/points", "me/points@v1", ""):
        said = (
            f"safetensors-spark: repo_id is {repo!r}, expected an owner and a name of letters, digits, `-`, `_` and "
            "`.`, such as me/points."
        )
        assert refused(publish(server, "sync", staging, repo)) == said
        assert refused(publish(server, "dataset", points, repo)) == said
    assert {one.name for one in points.parent.iterdir()} == before


def test_offline_is_told_at_once(server: hub.Server, staging: Path) -> None:
    line = refused(publish(server, "sync", staging, "me/points", HF_HUB_OFFLINE="1"))
    assert "HF_HUB_OFFLINE is set" in line


def test_a_dry_run_that_could_not_ask_is_not_exit_code_0(server: hub.Server, staging: Path) -> None:
    done = publish(server, "sync", staging, "me/points", "--dry-run", HF_ENDPOINT="http://127.0.0.1:1")
    assert done.returncode == 3
    # What went wrong stands once in each line.
    assert all(line.count("Connection refused") == 1 for line in done.stderr.splitlines())


# -- The staging directory -------------------------------------------------------------------------------------------

ACTIONS = [("sync", "me/points"), ("sync", "me/points", "--dry-run"), ("status",), ("retry",), ("prune",)]


def test_a_directory_that_is_not_there_is_not_an_empty_one(server: hub.Server, tmp_path: Path) -> None:
    for action, *more in ACTIONS:
        line = refused(publish(server, action, tmp_path / "stagin", *more))
        assert line.startswith(f"safetensors-spark: {tmp_path}/stagin does not exist. ")
        assert not (tmp_path / "stagin").exists()


def test_what_is_no_staging_directory_is_left_alone(server: hub.Server, points: Path, tmp_path: Path) -> None:
    before = sorted(points.iterdir())
    for action, *more in ACTIONS:
        line = refused(publish(server, action, points, *more))
        assert f"{points} is not a staging directory" in line
        assert "`safetensors-spark publish dataset`" in line
    assert sorted(points.iterdir()) == before
    (tmp_path / "notes.txt").write_text("mine")
    assert "notes.txt is not a staging directory" in refused(publish(server, "status", tmp_path / "notes.txt"))
    assert "is not a staging directory" in refused(publish(server, "sync", points, "me/points", "--watch", "1"))


def test_an_empty_directory_is_one_that_nobody_has_written_to(server: hub.Server, tmp_path: Path) -> None:
    (tmp_path / "volume").mkdir()
    done = publish(server, "sync", tmp_path / "volume", "me/points")
    assert (done.returncode, done.stderr) == (0, "")


def test_nothing_is_staged_on_the_hub(points: Path) -> None:
    for folder in ("hf://datasets/me/points", "hf://buckets/me/points"):
        with pytest.raises(ValueError, match=f"{folder} is on the Hub, where nothing is staged"):
            stage_dataset(points, staging_dir=folder)


def test_no_repository_is_made_for_what_is_no_dataset(server: hub.Server, tmp_path: Path) -> None:
    (tmp_path / "notes").mkdir()
    assert f"{tmp_path}/notes has no dataset_manifest.json" in refused(
        publish(server, "dataset", tmp_path / "notes", "me/notes")
    )
    assert "/api/repos/create" not in {one["path"] for one in server.requests()[1:]}
    assert sorted(one.name for one in tmp_path.iterdir()) == ["hub", "notes"]


def test_nothing_is_left_of_what_could_not_be_staged(server: hub.Server, points: Path) -> None:
    before = sorted(points.parent.iterdir())
    assert "path_in_repo is `../a`" in refused(publish(server, "dataset", points, REPO, "--path-in-repo", "../a"))
    assert "404: Invalid rev id: dev" in refused(publish(server, "dataset", points, REPO, "--revision", "dev"))
    (shard,) = points.glob("*0001.safetensors")
    shard.unlink()
    assert f"{shard} is missing" in refused(publish(server, "dataset", points, REPO))
    assert sorted(points.parent.iterdir()) == before


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write everywhere")
def test_a_dataset_beside_which_nothing_can_be_written_is_staged_elsewhere(server: hub.Server, points: Path) -> None:
    points.parent.chmod(0o555)
    try:
        line = refused(publish(server, "dataset", points, "me/points"))
    finally:
        points.parent.chmod(0o755)
    assert f"{points.parent} cannot be written" in line
    assert "`stage_dataset`" in line
    assert server.requests() == []


# -- Arguments, and the terminal -------------------------------------------------------------------------------------


def test_a_number_that_makes_no_sense_is_refused(server: hub.Server, staging: Path) -> None:
    for name, number in (("--watch", "0"), ("--watch", "-1"), ("--watch", "inf"), ("--keep", "-1"), ("--keep", "a")):
        done = publish(server, "sync", staging, "me/points", name, number)
        assert (done.returncode, done.stdout) == (2, "")
        assert f"argument {name}: {number} is " in done.stderr
    said = client(
        server,
        """
        from safetensors_spark.publish import sync_pending
        for days in (-1, float("nan")):
            try: sync_pending("nowhere", repo_id="me/points", keep=days)
            except ValueError as error: print(error)
        """,
    )
    assert said.splitlines() == [f"keep is {one}, expected a number of days, 0 or more." for one in ("-1", "nan")]


def test_logs_have_no_bars(server: hub.Server, points: Path) -> None:
    done = publish(server, "dataset", points, "me/points", HF_HUB_DISABLE_PROGRESS_BARS=None)
    assert (done.returncode, done.stderr) == (0, "")


def test_who_interrupts_a_command_sees_one_line(server: hub.Server, staging: Path) -> None:
    slow = server.fail(method="POST", path="/commit/", delay=4)
    with subprocess.Popen(
        [*COMMAND, "sync", str(staging), "me/points"],
        env=server.environment(),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
    ) as process:
        while not server.hits(slow):
            assert process.poll() is None
            time.sleep(0.02)
        process.send_signal(signal.SIGINT)
        said = process.communicate(timeout=60)
    assert (process.returncode, *said) == (130, "", "safetensors-spark: interrupted\n")


# -- What is not installed -------------------------------------------------------------------------------------------


def without(absent: list[str], *args: object) -> str:
    code = f"""
    import sys
    for name in {absent!r}: sys.modules[name] = None
    from safetensors_spark._commands.cli import main
    sys.exit(main({[str(one) for one in args]!r}))
    """
    return run_code(textwrap.dedent(code), os.environ).stderr


def test_what_is_not_installed_is_named_with_the_extra(points: Path, staging: Path) -> None:
    said = (
        "safetensors-spark: not installed: {}. Install the extra `publish`:\n"
        '    pip install "safetensors-spark[publish]"\n'
    )
    for args in (("publish", "dataset", points, "me/points"), ("publish", "sync", staging, "me/points")):
        assert without(["huggingface_hub"], *args) == said.format("huggingface_hub")
    for name in ("fsspec", "huggingface_hub"):
        assert without([name], "inspect", "hf://datasets/me/points") == said.format(name)


def test_the_address_of_a_page_is_not_a_url_of_data() -> None:
    for page in ("https://huggingface.co/datasets/me/points", "https://huggingface.co/datasets/me/points/tree/main/a"):
        said = without([], "inspect", page)
        assert f"{page} is a page of the Hub. Its data are at hf://datasets/me/points; " in said
