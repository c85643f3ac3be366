"""What is staged, committed to the Hub: each sentence of docs/publish.md's table of failures, by LFS and by Xet."""

import json
import time
from collections.abc import Iterator
from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest

import hub
from forks import Fork
from safetensors_spark.publish import list_pending, move_to, remaining_budget, sync_pending
from staging_samples import files, stage_bytes
from syncing import REPO, run, sync, tree

COMMITS = {"method": "POST", "path": "/commit/"}


@pytest.fixture(params=[True, False], ids=["xet", "lfs"])
def xet(request: pytest.FixtureRequest) -> bool:
    return bool(request.param)


@pytest.fixture
def server(tmp_path: Path) -> Iterator[hub.Server]:
    with hub.running(tmp_path / "hub") as server:
        server.make_repo(REPO)
        yield server


@pytest.fixture
def staging(tmp_path: Path) -> Path:
    return tmp_path / "staging"


def shards(staging: Path, count: int, first: int = 0) -> dict[str, str]:
    """Stage files, and return what the repository should have of them."""
    expected = {}
    for number in range(first, first + count):
        body = f"body {number} ".encode() * 400
        shard = stage_bytes(staging, f"s{number:04d}.parquet", body)
        expected[shard.path_in_repo] = sha256(body).hexdigest()
    return expected


def sidecar(staging: Path, folder: str, name: str) -> dict[str, Any]:
    return dict(json.loads((staging / folder / f"{name}.meta.json").read_text()))


def test_pending_shards_are_committed_and_move_to_synced(server: hub.Server, staging: Path, xet: bool) -> None:
    expected = shards(staging, 5)
    report = sync(server, staging, xet=xet, commit_prefix="Try")
    assert (report["n_committed"], report["n_failed"], report["n_remaining"], report["n_commits"]) == (5, 0, 0, 1)
    assert tree(server) == expected
    last = server.history(REPO)[-1]
    assert (report["commit_oids"], last["title"]) == ([last["id"]], "Try 5 files")
    assert files(staging)["pending"] == []
    synced = sidecar(staging, "synced", "s0003.parquet")["synced"]
    assert (synced["repo_id"], synced["repo_type"], synced["revision"]) == (REPO, "dataset", "main")
    assert synced["commit"] == last["id"]
    assert synced["at"] > "2026"
    again = sync(server, staging, xet=xet)
    assert (again["n_committed"], again["n_commits"], again["errors"]) == (0, 0, [])


def test_a_commit_has_at_most_100_files(server: hub.Server, staging: Path) -> None:
    expected = shards(staging, 230)
    assert sync(server, staging)["n_commits"] == 3
    assert tree(server) == expected
    assert [len(one["changes"]) for one in server.history(REPO)][-3:] == [100, 100, 30]


def test_an_answer_that_is_lost_never_commits_twice(server: hub.Server, staging: Path, xet: bool) -> None:
    expected = shards(staging, 3)
    fault = server.fail(**COMMITS, drop="after")
    report = sync(server, staging, xet=xet)
    assert server.hits(fault) == 1
    assert (report["n_committed"], report["n_remaining"]) == (3, 0)
    assert tree(server) == expected
    assert sum(bool(set(one["changes"]) & set(expected)) for one in server.history(REPO)) == 1
    assert remaining_budget(staging) == 89


@pytest.mark.parametrize("status", [401, 403, 404])
def test_without_the_right_everything_stays_pending_and_it_raises(
    server: hub.Server, staging: Path, status: int
) -> None:
    shards(staging, 2)
    if status == 404:
        code, token = "sync_pending(staging, repo_id='me/nothing')", hub.WRITE
    else:
        code, token = "sync()", hub.READ if status == 403 else "hf_unknown"
    said = run(server, staging, f"try: {code}\nexcept HubAccessError as error: print(error)", token=token)
    assert "cannot be written" in said
    assert "stays pending" in said
    assert str(status) in said
    assert token not in said
    assert len(list_pending(staging)) == 2
    assert files(staging).get("failed", []) == []


def test_rate_limits_are_waited_for_as_the_answer_says(server: hub.Server, staging: Path) -> None:
    expected = shards(staging, 2)
    server.fail(**COMMITS, status=429, headers={"Retry-After": "2"})
    server.fail(**COMMITS, skip=1, status=429, headers={"RateLimit": '"api";r=0;t=1'})
    begin = time.monotonic()
    assert sync(server, staging)["n_committed"] == 2
    assert time.monotonic() - begin > 3
    assert tree(server) == expected
    assert remaining_budget(staging) == 89


def test_a_rate_limit_that_is_longer_than_the_window_leaves_all_pending(server: hub.Server, staging: Path) -> None:
    shards(staging, 2)
    server.fail(**COMMITS, count=None, status=429, headers={"Retry-After": "5000"})
    report = sync(server, staging)
    assert (report["n_committed"], report["n_remaining"]) == (0, 2)
    assert "asks to wait for 5,000 s" in report["errors"][0]


@pytest.mark.parametrize("status", [409, 412, 500, 502, 503])
def test_conflicts_and_failures_are_tried_again_bounded(server: hub.Server, staging: Path, status: int) -> None:
    expected = shards(staging, 2)
    server.fail(**COMMITS, count=2, status=status)
    assert sync(server, staging)["n_committed"] == 2
    assert tree(server) == expected
    shards(staging, 1, first=2)
    server.fail(**COMMITS, count=None, status=status)
    report = sync(server, staging, max_retries=1)
    assert (report["n_committed"], report["n_remaining"]) == (0, 1)
    assert f"the Hub failed 2 times, the last time with: {status}" in report["errors"][0]
    server.heal()
    assert sync(server, staging)["n_committed"] == 1


@pytest.mark.parametrize("status", [400, 413, 422])
def test_a_rejected_file_alone_fails_with_the_reason_in_its_sidecar(
    server: hub.Server, staging: Path, status: int
) -> None:
    expected = shards(staging, 9)
    server.fail(**COMMITS, files=r"s0006\.parquet", count=None, status=status, message="too wide a table")
    report = sync(server, staging)
    assert (report["n_committed"], report["n_failed"], report["n_remaining"]) == (8, 1, 0)
    assert files(staging)["failed"] == ["s0006.parquet", "s0006.parquet.meta.json"]
    assert "too wide a table" in sidecar(staging, "failed", "s0006.parquet")["failed"]["reason"]
    assert "data/s0006.parquet was refused" in report["errors"][0]
    refused = expected.pop("data/s0006.parquet")
    assert tree(server) == expected
    server.heal()
    assert run(server, staging, "print(len(retry_failed(staging)))") == "1"
    assert "failed" not in sidecar(staging, "pending", "s0006.parquet")
    assert sync(server, staging)["n_committed"] == 1
    assert tree(server) == expected | {"data/s0006.parquet": refused}


def test_uploads_that_are_cut_are_sent_again(server: hub.Server, staging: Path) -> None:
    expected = shards(staging, 2)
    server.fail(method="PUT", path="/", count=3, cut=1000)
    report = sync(server, staging, xet=False)
    assert report["n_committed"] == 2
    assert tree(server) == expected


def test_the_budget_bounds_commits_in_the_window(server: hub.Server, staging: Path) -> None:
    shards(staging, 6)
    report = sync(server, staging, max_batch=2, budget=2)
    assert (report["n_committed"], report["n_commits"], report["n_remaining"]) == (4, 2, 2)
    assert "budget of commits is spent" in report["errors"][0]
    assert remaining_budget(staging, budget=2) == 0
    assert remaining_budget(staging, budget=90) == 88
    assert sync(server, staging, max_batch=2, budget=2, window_s=0.001)["n_committed"] == 2


def test_the_budget_counts_what_calls_with_a_shorter_window_made(server: hub.Server, staging: Path) -> None:
    shards(staging, 3)
    sync(server, staging, max_batch=1)
    shards(staging, 1, first=3)
    sync(server, staging, window_s=0.001)
    assert remaining_budget(staging) == 86


def test_a_dry_run_spends_nothing_and_changes_nothing(server: hub.Server, staging: Path) -> None:
    shards(staging, 3)
    before, commits = files(staging), len(server.history(REPO))
    report = sync(server, staging, dry_run=True, max_batch=2)
    assert (report["n_committed"], report["n_commits"], report["n_remaining"]) == (3, 2, 3)
    assert (files(staging), len(server.history(REPO)), remaining_budget(staging)) == (before, commits, 90)


def test_a_pull_request_has_all_commits_of_a_sync(server: hub.Server, staging: Path) -> None:
    expected = shards(staging, 3)
    report = sync(server, staging, create_pr=True, max_batch=2)
    assert report["n_commits"] == 2
    assert sidecar(staging, "synced", "s0000.parquet")["synced"]["revision"] == "refs/pr/1"
    pulled = {path: one for path, one in server.history(REPO)[-1]["tree"].items() if path in expected}
    assert pulled == expected
    shards(staging, 1, first=3)
    sync(server, staging, create_pr=True)
    assert sidecar(staging, "synced", "s0003.parquet")["synced"]["revision"] == "refs/pr/2"


def test_a_pull_request_that_is_not_complete_is_continued(server: hub.Server, staging: Path) -> None:
    shards(staging, 4)
    sync(server, staging, create_pr=True, max_batch=2, budget=1)
    sync(server, staging, create_pr=True, max_batch=2)
    found = {sidecar(staging, "synced", f"s{number:04d}.parquet")["synced"]["revision"] for number in range(4)}
    assert found == {"refs/pr/1"}


_OPENED = {"method": "POST", "path": "/discussions$"}
_ASKED = {"method": "GET", "path": r"/discussions/\d+$", "status": 500}


@pytest.mark.parametrize("fault", [{**_OPENED, "drop": "after"}, {**_OPENED, "drop": "before"}, _ASKED])
@pytest.mark.parametrize("retries", [0, 3])
def test_a_pull_request_is_opened_once_though_its_answer_is_lost(
    server: hub.Server, staging: Path, fault: dict[str, Any], retries: int
) -> None:
    expected = shards(staging, 3)
    number = server.fail(**fault)
    first = sync(server, staging, create_pr=True, max_retries=retries)
    assert server.hits(number) == 1
    # Without another attempt the next sync continues.
    assert first["n_remaining"] == (0 if retries else 3)
    if not retries:
        assert sync(server, staging, create_pr=True)["n_remaining"] == 0
    commits = server.history(REPO)[1:]
    pulled = {path: one for path, one in commits[-1]["tree"].items() if path in expected}
    assert (len(commits), pulled) == (1, expected)
    code = "from huggingface_hub import HfApi\nprint(*HfApi().get_repo_discussions('me/points', repo_type='dataset'))"
    assert run(server, staging, code).count("Discussion(") == 1
    # The next ones are another pull request.
    shards(staging, 1, first=3)
    sync(server, staging, create_pr=True)
    assert sidecar(staging, "synced", "s0003.parquet")["synced"]["revision"] == "refs/pr/2"


def test_a_pull_request_that_was_merged_is_not_continued(server: hub.Server, staging: Path) -> None:
    shards(staging, 4)
    sync(server, staging, create_pr=True, max_batch=2, budget=1)
    run(
        server,
        staging,
        "from huggingface_hub import HfApi\nHfApi().merge_pull_request('me/points', 1, repo_type='dataset')",
    )
    sync(server, staging, create_pr=True, max_batch=2)
    assert sidecar(staging, "synced", "s0003.parquet")["synced"]["revision"] == "refs/pr/2"


def test_a_pull_request_is_for_main(server: hub.Server, staging: Path) -> None:
    shards(staging, 1)
    code = "try: sync(create_pr=True, revision='dev')\nexcept InvalidWriteError as error: print(error)"
    assert "a pull request is for `main`, and revision is `dev`" in run(server, staging, code)


def test_one_syncer_at_a_time(server: hub.Server, staging: Path) -> None:
    shards(staging, 1)
    fault = server.fail(**COMMITS, delay=4)
    with Fork(lambda: sync_pending(staging, repo_id=REPO), server.environment()) as other:
        while not server.hits(fault):
            time.sleep(0.02)
        said = run(server, staging, "try: sync()\nexcept StagingBusyError as error: print(error)")
        assert other.done().returncode == 0
    assert f"is being synced by process {other.pid} on " in said
    assert sync(server, staging)["n_remaining"] == 0
    assert files(staging)["synced"] == ["s0000.parquet", "s0000.parquet.meta.json"]


def test_a_syncer_that_was_killed_leaves_no_lock(server: hub.Server, staging: Path) -> None:
    expected = shards(staging, 2)
    run(server, staging, "from safetensors_spark.publish import _hub\n"
        "_hub.HubRepo.commit = lambda *_: os._exit(9)\nsync()", expect=9)  # fmt: skip
    assert sync(server, staging)["n_committed"] == 2
    assert tree(server) == expected


def test_old_files_are_removed_from_synced(server: hub.Server, staging: Path) -> None:
    shards(staging, 2)
    sync(server, staging, keep=1)
    assert len(files(staging)["synced"]) == 4
    sync(server, staging, keep=0)
    assert files(staging)["synced"] == []


def test_what_somebody_has_moved_to_synced_is_not_removed(server: hub.Server, staging: Path) -> None:
    move_to(stage_bytes(staging, "a.parquet"), staging, "synced")
    shards(staging, 1)
    assert sync(server, staging, keep=0)["n_committed"] == 1
    assert files(staging)["synced"] == ["a.parquet", "a.parquet.meta.json"]


def test_a_staging_directory_in_a_store_is_synced(server: hub.Server, staging: Path) -> None:
    """Another syncer commits while this one waits for its lock."""
    said = run(server, staging, """
        import pyarrow as pa
        from contextlib import contextmanager
        from safetensors_spark.publish import _sync_pending
        from safetensors_spark.publish._staging import open_staging
        from safetensors_spark.publish._sync_state import SyncState
        place = "memory://staging"
        for name in "abc":
            write_shard(pa.table({"x": [name] * 5000}), staging_dir=place, run_id=name, schema=ShardSchema())
        lock = _sync_pending.sync_lock
        @contextmanager
        def waited(place):
            SyncState(open_staging(place), 90, 3600).begin()
            with lock(place) as check:
                yield check
        _sync_pending.sync_lock = waited
        show(sync_pending(place, repo_id="me/points"))
        print(remaining_budget(place), [shard.path_in_repo for shard in list_pending(place)])
    """)  # fmt: skip
    report, rest = said.splitlines()
    assert json.loads(report)["n_committed"] == 3
    assert rest == "88 []"
    assert len(tree(server)) == 3


def test_a_body_that_was_changed_after_it_was_staged_is_not_committed(server: hub.Server, staging: Path) -> None:
    shards(staging, 2)
    (staging / "pending" / "s0001.parquet").write_bytes(b"something else")
    report = sync(server, staging)
    assert (report["n_committed"], report["n_failed"]) == (1, 1)
    assert "is not what was staged" in report["errors"][0]
    assert set(tree(server)) == {"data/s0000.parquet"}


def test_the_token_is_nowhere(server: hub.Server, staging: Path, tmp_path: Path) -> None:
    shards(staging, 2)
    secret = "hf_secret_that_is_wrong"
    said = run(server, staging, f"""
        import logging; logging.basicConfig(level=logging.DEBUG, stream=sys.stdout)
        try: sync(token={secret!r})
        except HubAccessError as error: print(error, repr(error))
    """)  # fmt: skip
    assert secret not in said
    assert "cannot be written" in said
    assert not [path for path in staging.rglob("*") if path.is_file() and secret.encode() in path.read_bytes()]
