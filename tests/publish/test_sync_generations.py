"""Datasets that were staged again before the staging before was committed, and shards that are gone meanwhile."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import hub
from safetensors_spark._files.manifest import MANIFEST, parse_manifest
from safetensors_spark.dataset import write_dataset
from safetensors_spark.publish import stage_dataset
from staging_samples import files, stage_bytes
from syncing import REPO, run, sync, tree

COMMITS = {"method": "POST", "path": "/commit/"}


@pytest.fixture
def server(tmp_path: Path) -> Iterator[hub.Server]:
    with hub.running(tmp_path / "hub") as server:
        server.make_repo(REPO)
        yield server


@pytest.fixture
def staging(tmp_path: Path) -> Path:
    return tmp_path / "staging"


def write(path: Path, rows: int, mode: Any = "append") -> Path:
    write_dataset([{"x": np.arange(rows * 3.0).reshape(rows, 3)}], path, batch_size=4, mode=mode)
    return path


def shards(path: Path) -> list[str]:
    return sorted(shard.file for shard in parse_manifest((path / MANIFEST).read_bytes(), MANIFEST).shards)


def delete(server: hub.Server, staging: Path, file: str) -> None:
    code = f"from huggingface_hub import delete_file; delete_file({file!r}, 'me/points', repo_type='dataset')"
    run(server, staging, code)


def test_a_staging_that_failed_never_replaces_a_later_one(server: hub.Server, staging: Path, tmp_path: Path) -> None:
    path = write(tmp_path / "points", 4)
    stage_dataset(path, staging_dir=staging)
    server.fail(**COMMITS, files=shards(path)[0], count=None, status=422)
    assert sync(server, staging)["n_failed"] == 1
    stage_dataset(write(path, 3, "overwrite"), staging_dir=staging)
    report = sync(server, staging)
    assert (report["n_committed"], report["n_remaining"]) == (2, 0)
    assert "is removed and not committed any more: a later one, staged" in report["errors"][-1]
    assert (files(staging)["pending"], files(staging)["failed"]) == ([], [])
    server.heal()
    run(server, staging, "retry_failed(staging)")
    assert sync(server, staging)["n_commits"] == 0
    assert set(tree(server)) == {*shards(path), MANIFEST, "README.md"}


def test_what_was_staged_last_is_the_dataset_whatever_clocks_say(
    server: hub.Server, staging: Path, tmp_path: Path
) -> None:
    path = write(tmp_path / "points", 4)
    stage_dataset(path, staging_dir=staging)
    sidecar = next(staging.glob(f"pending/*{MANIFEST}.meta.json"))
    fields = json.loads(sidecar.read_text())
    sidecar.write_text(json.dumps({**fields, "created_at": "2999-01-01T00:00:00.000000+00:00"}))
    stage_dataset(write(path, 3, "overwrite"), staging_dir=staging)
    assert sync(server, staging)["errors"] == []
    assert set(tree(server)) == {*shards(path), MANIFEST, "README.md"}
    stage_dataset(write(path, 2, "overwrite"), staging_dir=staging)
    assert sync(server, staging)["errors"] == []
    assert set(tree(server)) == {*shards(path), MANIFEST, "README.md"}


def test_stagings_of_other_folders_and_repositories_supersede_nothing(
    server: hub.Server, staging: Path, tmp_path: Path
) -> None:
    path = write(tmp_path / "points", 4)
    stage_dataset(path, staging_dir=staging, path_in_repo="a")
    server.fail(**COMMITS, files=f"a/{shards(path)[0]}", count=None, status=422)
    sync(server, staging)
    stage_dataset(write(path, 3, "overwrite"), staging_dir=staging, path_in_repo="b")
    report = sync(server, staging)
    assert report["n_remaining"] == 1
    assert "a file of the dataset was refused" in report["errors"][0]


def test_stagings_share_shards(server: hub.Server, staging: Path, tmp_path: Path) -> None:
    path = write(tmp_path / "points", 4)
    stage_dataset(path, staging_dir=staging)
    stage_dataset(write(path, 3), staging_dir=staging)
    said = run(server, staging, "import warnings; warnings.simplefilter('error', UserWarning); show(sync())")
    assert '"n_committed": 5' in said
    assert [len(one["changes"]) for one in server.history("me/points")][-3:] == [2, 2, 2]
    assert set(tree(server)) == {*shards(path), MANIFEST, "README.md"}


@pytest.mark.parametrize("status", [409, 503])
def test_putting_shards_back_is_tried_again(server: hub.Server, staging: Path, tmp_path: Path, status: int) -> None:
    path = write(tmp_path / "points", 10)
    stage_dataset(path, staging_dir=staging)
    sync(server, staging, budget=1)
    delete(server, staging, shards(path)[0])
    server.fail(**COMMITS, status=status)
    report = sync(server, staging)
    assert (report["n_committed"], report["n_remaining"], report["errors"]) == (2, 0, [])
    assert set(tree(server)) == {*shards(path), MANIFEST, "README.md"}


def test_a_shard_that_is_refused_when_it_is_put_back_fails_alone(
    server: hub.Server, staging: Path, tmp_path: Path
) -> None:
    path = write(tmp_path / "points", 10)
    stage_dataset(path, staging_dir=staging)
    sync(server, staging, budget=1)
    lost = shards(path)[0]
    delete(server, staging, lost)
    server.fail(**COMMITS, files=lost, count=None, status=422, message="no")
    report = sync(server, staging)
    assert (report["n_committed"], report["n_failed"], report["n_remaining"]) == (0, 1, 1)
    assert report["errors"][0] == f"{lost} was refused: 422: no"
    assert len(files(staging)["failed"]) == 2
    assert files(staging)["failed"][0].endswith(lost)
    assert "retry_failed gives it to the next sync again" in report["errors"][1]


def test_what_is_put_back_and_not_committed_does_not_count(server: hub.Server, staging: Path, tmp_path: Path) -> None:
    path = write(tmp_path / "points", 10)
    stage_dataset(path, staging_dir=staging)
    sync(server, staging, budget=1)
    delete(server, staging, shards(path)[0])
    report = sync(server, staging, budget=1)
    assert (report["n_committed"], report["n_remaining"]) == (0, 2)


def test_a_manifest_that_was_changed_fails_and_nothing_else(server: hub.Server, staging: Path, tmp_path: Path) -> None:
    for name in ("a", "b"):
        stage_dataset(write(tmp_path / name, 4), staging_dir=staging, path_in_repo=name)
    manifest = sorted(staging.glob(f"pending/*{MANIFEST}"), key=lambda path: path.stat().st_mtime)[0]
    manifest.unlink()
    manifest.write_bytes(b"{}")
    report = sync(server, staging)
    assert report["errors"] == [f"a/{MANIFEST} was refused: it is not what was staged: its bytes have changed since"]
    assert (report["n_failed"], report["n_remaining"]) == (1, 0)
    assert f"b/{MANIFEST}" in tree(server)


def test_a_body_that_is_gone_is_said(server: hub.Server, staging: Path) -> None:
    stage_bytes(staging, "a.parquet")
    lost = stage_bytes(staging, "b.parquet")
    Path(lost.parquet_path).unlink()
    report = sync(server, staging)
    assert (report["n_committed"], report["n_remaining"]) == (1, 1)
    assert report["errors"][0].startswith(
        "data/b.parquet is lost: its sidecar is pending, and its body no longer exists."
    )


def test_a_dry_run_leaves_out_what_would_not_be_committed(server: hub.Server, staging: Path, tmp_path: Path) -> None:
    stage_dataset(write(tmp_path / "a", 4), staging_dir=staging, path_in_repo="a")
    for path in staging.glob(f"pending/*{MANIFEST}*"):
        path.unlink()
    stage_dataset(write(tmp_path / "b", 4), staging_dir=staging, path_in_repo="b")
    report = sync(server, staging, dry_run=True)
    assert (report["n_committed"], report["n_commits"], report["n_remaining"]) == (2, 2, 3)
    done = sync(server, staging)
    assert (done["n_committed"], done["n_commits"], done["n_remaining"]) == (2, 2, 1)


def test_a_dry_run_is_tried_again_and_says_why_it_failed(server: hub.Server, staging: Path) -> None:
    stage_bytes(staging, "a.parquet")
    server.fail(path="/revision/main", status=500)
    assert sync(server, staging, dry_run=True)["n_commits"] == 1
    server.fail(path="/revision/main", status=500, count=None)
    report = sync(server, staging, dry_run=True)
    assert (report["n_committed"], report["n_remaining"]) == (0, 1)
    assert "the Hub failed 4 times" in report["errors"][0]


def test_rate_limits_do_not_count_as_failures(server: hub.Server, staging: Path) -> None:
    stage_bytes(staging, "a.parquet")
    server.fail(**COMMITS, count=5, status=429, headers={"Retry-After": "0.1"})
    assert sync(server, staging, max_retries=0)["n_committed"] == 1
