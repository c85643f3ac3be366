"""What is in a staging directory, a token or an answer though nobody should have written it."""

import json
import time
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import pytest

import hub
from safetensors_spark._files.manifest import MANIFEST
from safetensors_spark.dataset import write_dataset
from safetensors_spark.publish import list_pending, move_to, prune_orphans, remaining_budget, stage_dataset
from staging_samples import files, stage_bytes
from syncing import REPO, run, sync, tree


@pytest.fixture
def server(tmp_path: Path) -> Iterator[hub.Server]:
    with hub.running(tmp_path / "hub") as server:
        server.make_repo(REPO)
        yield server


@pytest.fixture
def staging(tmp_path: Path) -> Path:
    return tmp_path / "staging"


def with_path(staging: Path, name: str, path_in_repo: str) -> None:
    """Stage a file whose sidecar names this path."""
    sidecar = Path(stage_bytes(staging, name, name.encode()).sidecar_path)
    sidecar.write_text(json.dumps({**json.loads(sidecar.read_text()), "path_in_repo": path_in_repo}))


# -- Staging directories ---------------------------------------------------------------------------------------------


def test_paths_that_no_repository_has_fail_alone(server: hub.Server, staging: Path) -> None:
    paths = ["../x.parquet", "a/../x.parquet", ".git/config", "/x.parquet", "./x.parquet", "a\\x.parquet", "", "."]
    for number, path in enumerate(paths):
        with_path(staging, f"{number}.parquet", path)
    with_path(staging, "good.parquet", "données/é\u0301.parquet")
    report = sync(server, staging)
    assert (report["n_committed"], report["n_failed"], report["n_remaining"]) == (1, len(paths), 0)
    assert set(tree(server)) == {"données/é\u0301.parquet"}


def test_a_folder_in_place_of_a_body_is_said_and_the_rest_is_committed(server: hub.Server, staging: Path) -> None:
    stage_bytes(staging, "good.parquet", b"good")
    body = Path(stage_bytes(staging, "a.parquet").parquet_path)
    body.unlink()
    body.mkdir()
    report = sync(server, staging)
    assert (report["n_committed"], report["n_failed"], report["n_remaining"]) == (1, 0, 1)
    assert "data/a.parquet is lost" in report["errors"][0]


def test_prune_orphans_leaves_folders(tmp_path: Path) -> None:
    folder = tmp_path / "pending" / ".snapshot.parquet"
    folder.mkdir(parents=True)
    (folder / "file").touch()
    (tmp_path / "pending" / "orphan.parquet").touch()
    assert prune_orphans(tmp_path, older_than_s=0) == [tmp_path / "pending" / "orphan.parquet"]
    assert [path.name for path in (tmp_path / "pending").iterdir()] == [folder.name]


def test_a_folder_of_staging_may_be_on_another_file_system(tmp_path: Path) -> None:
    memory = Path("/dev/shm")
    if not memory.is_dir() or memory.stat().st_dev == tmp_path.stat().st_dev:
        pytest.skip("there is no other file system")
    with TemporaryDirectory(dir=memory) as other:
        (tmp_path / "synced").symlink_to(other)
        shard = move_to(stage_bytes(tmp_path, "a.parquet", b"rows"), tmp_path, "synced")
        assert Path(shard.parquet_path).read_bytes() == b"rows"
        pair = ["a.parquet", "a.parquet.meta.json"]
        assert files(tmp_path) == {"pending": [], "synced": pair}
        move_to(shard, tmp_path, "pending")
        assert files(tmp_path) == {"pending": pair, "synced": []}


@pytest.mark.parametrize(
    "state",
    [
        {"commits": "x", "pull_requests": []},
        {"commits": ["a", None, float("nan")], "pull_requests": {"datasets/me/points": 5}},
        {"commits": 5, "pull_requests": {"datasets/me/points": "refs/pr/x"}},
    ],
)
def test_a_state_that_is_damaged_is_begun_anew(server: hub.Server, staging: Path, state: object) -> None:
    stage_bytes(staging, "a.parquet")
    (staging / "_sync.json").write_text(json.dumps(state))
    assert sync(server, staging, create_pr=True, budget=1)["n_committed"] == 1
    assert remaining_budget(staging, budget=1) == 0


def test_a_clock_that_was_ahead_does_not_block_commits(tmp_path: Path) -> None:
    ahead = time.time() + 1e6
    (tmp_path / "_sync.json").write_text(json.dumps({"commits": [ahead, ahead, time.time()]}))
    assert remaining_budget(tmp_path, budget=3) == 2


def test_a_budget_below_0_is_none(server: hub.Server, staging: Path) -> None:
    stage_bytes(staging, "a.parquet")
    report = sync(server, staging, budget=-1)
    assert (report["n_commits"], report["n_remaining"]) == (0, 1)


def test_what_does_not_say_when_it_was_committed_is_kept(server: hub.Server, staging: Path) -> None:
    for number, at in enumerate(["yesterday", 5, "2020-01-01T00:00:00"]):
        move_to(stage_bytes(staging, f"{number}.parquet", synced={"at": at}), staging, "synced")
    run(server, staging, "sync(keep=1e9); sync(keep=0)")
    assert len(files(staging)["synced"]) == 6


# -- Tokens ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("how", ["argument", "environment"])
def test_a_token_with_other_characters_is_refused_and_not_shown(server: hub.Server, staging: Path, how: str) -> None:
    stage_bytes(staging, "a.parquet")
    said = run(server, staging, f"""
        import logging; logging.basicConfig(level=logging.DEBUG, stream=sys.stdout)
        for token in ("hf_topsecret\\n", "hf_topsecret\\r\\nX: y", "hf_topsecr\\xe9t", "hf_topsecret\\x01"):
            options = dict(token=token) if {how!r} == "argument" else {{}}
            if not options: os.environ["HF_TOKEN"] = "\\x01" + token.strip()
            try: sync(max_retries=0, **options)
            except HubAccessError as error: print("refused", repr(error))
    """)  # fmt: skip
    assert "topsec" not in said
    assert said.count("refused") == 4
    assert len(list_pending(staging)) == 1


@pytest.mark.parametrize("status", [403, 500])
def test_a_token_that_the_server_repeats_is_not_shown(server: hub.Server, staging: Path, status: int) -> None:
    stage_bytes(staging, "a.parquet")
    server.fail(method="POST", path="/commit/", status=status, message=f"no {hub.WRITE}\x1b[31m", count=None)
    said = run(server, staging, """
        try: print(sync(max_retries=0))
        except HubAccessError as error: print(error)
    """)  # fmt: skip
    assert "no ***" in said
    assert hub.WRITE not in said
    assert "\x1b" not in said
    paths = [path for path in staging.rglob("*") if path.is_file()]
    assert not [path for path in paths if hub.WRITE.encode() in path.read_bytes()]


# -- Answers ---------------------------------------------------------------------------------------------------------

_REQUESTS = ["datasets/me/points/revision", "paths-info", "preupload", "/commit/"]


@pytest.mark.parametrize("text", ["<html>Log in</html>", "null", "{}", "{\udcff}"])
def test_an_answer_that_is_not_the_hubs_is_tried_again(server: hub.Server, staging: Path, text: str) -> None:
    stage_bytes(staging, "a.parquet")
    faults = [server.fail(path=path, text=text) for path in _REQUESTS]
    report = sync(server, staging, max_retries=len(faults))
    assert (report["n_committed"], report["n_remaining"], report["errors"]) == (1, 0, [])
    assert [server.hits(fault) for fault in faults] == [1] * len(faults)


def test_answers_that_are_never_the_hubs_leave_all_pending(server: hub.Server, staging: Path) -> None:
    stage_bytes(staging, "a.parquet")
    server.fail(path="paths-info", text="<html>Log in</html>", count=None)
    report = sync(server, staging, max_retries=1)
    assert (report["n_committed"], report["n_remaining"]) == (0, 1)
    assert "its answer is not one of the Hub" in report["errors"][0]


# -- Many files ------------------------------------------------------------------------------------------------------


def test_sidecars_are_read_a_few_times_however_many_datasets_wait(server: hub.Server, staging: Path) -> None:
    said = run(server, staging, """
        import numpy as np
        from safetensors_spark.dataset import write_dataset
        from safetensors_spark.publish import _staged
        read, reads = _staged.parse_sidecar, []
        _staged.parse_sidecar = lambda *args: reads.append(1) or read(*args)
        for number in range(24):
            path = staging.parent / f"points{number}"
            write_dataset([{"x": np.full((2, 3), float(number))}], path, batch_size=2)
            stage_dataset(path, staging_dir=staging, path_in_repo=f"p{number}")
        reads.clear()
        report = sync()
        print(report.n_committed, len(reads) / report.n_committed < 20, len(reads))
    """)  # fmt: skip
    assert said.startswith("48 True"), said


_WRONG = {"lfs": {"oid": "0" * 64, "size": 1, "pointerSize": 1}}
_SHORT = {**_WRONG, "oid": "0" * 40, "size": 1}


@pytest.mark.parametrize(("entries", "left"), [(_WRONG, 0), ({"lfs": None}, 0), (_SHORT, 1)])
def test_a_hub_that_tells_wrong_digests_gets_each_file_once_and_the_sync_ends(
    server: hub.Server, staging: Path, tmp_path: Path, entries: dict[str, Any], left: int
) -> None:
    rows = [{"x": np.arange(3000, dtype=np.float32).reshape(10, 300)}]
    write_dataset(rows, tmp_path / "points", batch_size=4)
    stage_dataset(tmp_path / "points", staging_dir=staging)
    stage_bytes(staging, "a.parquet")
    server.fail(path="paths-info", entries=entries, count=None)
    report = sync(server, staging)
    # A shard of another length than the manifest says is as good as none: the manifest waits.
    assert (report["n_remaining"], report["n_failed"], len(report["errors"])) == (left, 0, left)
    assert (MANIFEST in tree(server)) == (left == 0)
    # Shards that seem to be others are sent again, and the client makes no commit of what is there.
    commits = [commit["id"] for commit in server.history(REPO)[1:]]
    assert (report["commit_oids"], report["n_commits"]) == (commits, len(commits))
    assert remaining_budget(staging) == 90 - len(commits)
    server.heal()
    assert sync(server, staging)["n_remaining"] == 0
    synced = [name for name in files(staging)["synced"] if not name.endswith(".meta.json")]
    assert (len(synced), len(server.history(REPO))) == (5, 3)
    assert {MANIFEST, "data/a.parquet"} < set(tree(server))


def test_a_shard_of_rows_with_a_wrong_digest_is_not_taken_for_committed(server: hub.Server, staging: Path) -> None:
    stage_bytes(staging, "a.parquet")
    server.fail(path="paths-info", entries=_WRONG, count=None)
    server.fail(method="POST", path="/commit/", drop="after")
    report = sync(server, staging)
    assert (report["n_committed"], report["n_failed"], report["n_remaining"]) == (0, 1, 0)
    assert "has another file at this path" in report["errors"][0]
    server.heal()
    run(server, staging, "retry_failed(staging)")
    assert sync(server, staging)["n_committed"] == 1
    assert len(server.history(REPO)) == 2
