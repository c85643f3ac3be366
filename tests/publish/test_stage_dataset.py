"""`stage_dataset`: one commit of a dataset is staged whole, or nothing of it is."""

import json
import os
import shutil
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from killing import killed_at_each_step
from safetensors_spark import DamagedShardError, DatasetChangedError, IncompatibleVersionError, InvalidShardError
from safetensors_spark.dataset import DatasetWriter, open_dataset, open_store, verify
from safetensors_spark.publish import (
    FAILED_DIRNAME,
    SYNCED_DIRNAME,
    StagedShard,
    _stage_dataset,
    list_pending,
    move_to,
    prune_orphans,
    stage_dataset,
)
from safetensors_spark.publish._staging import open_staging
from staging_samples import files

MANIFEST = "dataset_manifest.json"


def write(path: Path | str, first: int = 0, mode: Any = "append") -> None:
    """Two shards of two rows."""
    with DatasetWriter(path, batch_size=2, mode=mode) as writer:
        writer.write({"x": np.arange(first, first + 4)})


def write_by_key(path: Path) -> None:
    """Shards and index parts of two appends."""
    for number in range(2):
        with DatasetWriter(path, name_col="k", generate_index=True) as writer:
            writer.write({"k": [f"{number}-{one}" for one in range(3)], "x": np.arange(3) + number})


def published(shards: list[StagedShard], folder: Path, prefix: str = "") -> Path:
    """What a repository is when all of these files are committed."""
    for shard in shards:
        place = folder / shard.path_in_repo
        place.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(shard.parquet_path, place)
    return folder / prefix


def rows(path: Path) -> list[int]:
    assert not verify(path).faults
    return [int(row["x"]) for row in open_dataset(path)]


def sidecars(folder: Path) -> list[dict[str, Any]]:
    return [json.loads(Path(shard.sidecar_path).read_text()) for shard in list_pending(folder)]


@pytest.fixture
def points(tmp_path: Path) -> Path:
    write(tmp_path / "points")
    return tmp_path / "points"


@pytest.fixture
def staging(tmp_path: Path) -> Path:
    return tmp_path / "staging"


def test_what_is_staged_is_the_dataset(tmp_path: Path, points: Path, staging: Path) -> None:
    shards = stage_dataset(points, staging_dir=staging)
    assert sorted(shard.name for shard in shards) == [shard.name for shard in list_pending(staging)]
    assert {shard.path_in_repo for shard in shards} == {one.name for one in points.iterdir()}
    assert rows(published(shards, tmp_path / "repo")) == [0, 1, 2, 3]


def test_a_dataset_by_key_is_staged_with_the_parts_of_its_index(tmp_path: Path, staging: Path) -> None:
    write_by_key(tmp_path / "keys")
    shards = stage_dataset(tmp_path / "keys", staging_dir=staging, path_in_repo="data/v1")
    repo = published(shards, tmp_path / "repo", "data/v1")
    assert not verify(repo).faults
    assert sorted(open_store(repo)) == [f"{number}-{one}" for number in range(2) for one in range(3)]
    roles = {one["path_in_repo"].rpartition("/")[2]: one["dataset"]["role"] for one in sidecars(staging)}
    named = json.loads((tmp_path / "keys" / MANIFEST).read_text())
    assert roles == {
        **{one["file"]: "data" for one in named["shards"]},
        **{one["file"]: "final" for one in named["index_parts"]},
        MANIFEST: "final",
    }


def test_the_manifest_is_the_last_and_each_sidecar_says_what_it_is_a_part_of(points: Path, staging: Path) -> None:
    shards = stage_dataset(points, staging_dir=staging, path_in_repo="/data/", run_id="night-1")
    assert shards[-1].path_in_repo == f"data/{MANIFEST}"
    found = sidecars(staging)
    assert {one["run_id"] for one in found} == {"night-1"}
    assert len({one["dataset"]["id"] for one in found}) == 1
    assert {(one["dataset"]["prefix"], one["dataset"]["files"]) for one in found} == {("data", 3)}
    assert sum(one["n_rows"] for one in found) == 4


def test_shards_are_links_where_the_file_system_has_them(points: Path, staging: Path) -> None:
    shards = stage_dataset(points, staging_dir=staging)
    for shard in shards[:-1]:
        assert Path(shard.parquet_path).samefile(points / shard.path_in_repo)
    assert not Path(shards[-1].parquet_path).samefile(points / MANIFEST), "it is replaced by the next commit"


def test_shards_are_copies_where_it_has_none(
    tmp_path: Path, points: Path, staging: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refused(source: Any, place: Any) -> None:
        raise OSError(18, "Invalid cross-device link" if "points" in str(source) else "Not supported")

    link = os.link
    monkeypatch.setattr(os, "link", lambda one, two: (refused if "points" in str(one) else link)(one, two))
    assert rows(published(stage_dataset(points, staging_dir=staging), tmp_path / "repo")) == [0, 1, 2, 3]


@pytest.fixture
def memory() -> Iterator[str]:
    import fsspec

    yield "memory://datasets"
    fsspec.filesystem("memory").rm("/datasets", recursive=True)


def test_source_and_staging_directory_may_be_urls(tmp_path: Path, memory: str) -> None:
    write(f"{memory}/points")
    shards = stage_dataset(f"{memory}/points", staging_dir=f"{memory}/staging")
    assert list_pending(f"{memory}/staging") == sorted(shards, key=lambda shard: shard.name)
    staging = open_staging(f"{memory}/staging")
    (tmp_path / "repo").mkdir()
    for shard in shards:
        (tmp_path / "repo" / shard.path_in_repo).write_bytes(staging.read(f"pending/{shard.name}") or b"")
    assert rows(tmp_path / "repo") == [0, 1, 2, 3]


def test_staging_again_changes_nothing_until_it_is_synced(points: Path, staging: Path) -> None:
    shards = stage_dataset(points, staging_dir=staging)
    assert stage_dataset(points, staging_dir=staging) == shards
    for shard in shards:
        move_to(shard, staging, SYNCED_DIRNAME)
    again = stage_dataset(points, staging_dir=staging)
    assert {shard.name for shard in again}.isdisjoint(shard.name for shard in shards)
    assert len(list_pending(staging)) == len(shards)


def test_one_commit_goes_to_two_places(points: Path, staging: Path) -> None:
    for prefix in ("a", "b"):
        stage_dataset(points, staging_dir=staging, path_in_repo=prefix)
    assert len(list_pending(staging)) == 6


def test_a_folder_without_a_manifest_is_refused_with_what_to_do(tmp_path: Path, staging: Path) -> None:
    (tmp_path / "plain").mkdir()
    with pytest.raises(FileNotFoundError, match=rf"has no {MANIFEST}.*safetensors-spark convert"):
        stage_dataset(tmp_path / "plain", staging_dir=staging)
    assert not staging.exists()


@pytest.mark.parametrize("version", ["3.0", "1.9"])
def test_a_manifest_of_a_newer_version_is_refused(points: Path, staging: Path, version: str) -> None:
    manifest = json.loads((points / MANIFEST).read_text())
    (points / MANIFEST).write_text(json.dumps({**manifest, "format_version": version}))
    with pytest.raises(IncompatibleVersionError, match="Upgrade safetensors-spark"):
        stage_dataset(points, staging_dir=staging)


@pytest.mark.parametrize("damage", ["missing", "changed"])
def test_a_damaged_dataset_is_refused_and_nothing_is_staged(points: Path, staging: Path, damage: str) -> None:
    shard = sorted(points.glob("*.safetensors"))[1]
    if damage == "missing":
        shard.unlink()
    else:
        shard.write_bytes(shard.read_bytes()[:-1] + b"!")
    with pytest.raises(DamagedShardError, match=rf"{shard.name} is .*safetensors-spark verify"):
        stage_dataset(points, staging_dir=staging)
    assert files(staging)["pending"] == []


def test_a_dataset_that_is_overwritten_meanwhile_is_staged_whole(
    tmp_path: Path, points: Path, staging: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    copy, calls = _stage_dataset._Staged._copy, iter([False, True])

    def overwritten(self: Any, file: Any, draft: Path) -> Any:
        if next(calls, False):
            write(points, 100, "overwrite")
        return copy(self, file, draft)

    monkeypatch.setattr(_stage_dataset._Staged, "_copy", overwritten)
    shards = stage_dataset(points, staging_dir=staging)
    assert rows(published(shards, tmp_path / "repo")) == [100, 101, 102, 103]
    assert len(list_pending(staging)) == 3, "nothing of the old commit is left"


def test_a_dataset_that_gets_a_new_commit_after_its_shards_is_staged_as_it_was(
    tmp_path: Path, points: Path, staging: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_manifest = _stage_dataset._write

    def overwritten(draft: Path, content: bytes) -> Any:
        write(points, 100, "overwrite")
        return write_manifest(draft, content)

    monkeypatch.setattr(_stage_dataset, "_write", overwritten)
    assert rows(published(stage_dataset(points, staging_dir=staging), tmp_path / "repo")) == [0, 1, 2, 3]
    assert rows(points) == [100, 101, 102, 103]


def test_a_dataset_that_never_stands_still_is_an_error(
    points: Path, staging: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    copy = _stage_dataset._Staged._copy

    def overwritten(self: Any, file: Any, draft: Path) -> Any:
        write(points, 100, "overwrite")
        return copy(self, file, draft)

    monkeypatch.setattr(_stage_dataset._Staged, "_copy", overwritten)
    with pytest.raises(DatasetChangedError, match="was written 5 times while it was staged"):
        stage_dataset(points, staging_dir=staging)
    assert files(staging)["pending"] == []


def test_a_staging_killed_at_any_file_operation_is_completed_by_the_next(tmp_path: Path) -> None:
    write_by_key(tmp_path / "keys")

    def stage(folder: Path) -> list[StagedShard]:
        return stage_dataset(tmp_path / "keys", staging_dir=folder)

    count = len(list((tmp_path / "keys").iterdir()))
    for folder in killed_at_each_step(stage, lambda step: tmp_path / f"staging{step}"):
        before = list_pending(folder)
        assert len(before) == count or MANIFEST not in [shard.path_in_repo for shard in before]
        assert len(stage(folder)) == len(list_pending(folder)) == count
        prune_orphans(folder, older_than_s=0)
        assert len(files(folder)["pending"]) == 2 * count


def test_prune_orphans_removes_a_dataset_whose_staging_died(points: Path, staging: Path) -> None:
    shards = stage_dataset(points, staging_dir=staging)
    manifest = shards[-1]
    moved = move_to(manifest, staging, FAILED_DIRNAME)
    assert prune_orphans(staging, older_than_s=0) == [], "a manifest that was refused may be retried"
    for path in (moved.parquet_path, moved.sidecar_path):
        Path(path).unlink()
    assert prune_orphans(staging) == []
    assert len(prune_orphans(staging, older_than_s=0)) == 4
    assert files(staging)["pending"] == []


def test_threads_that_stage_one_commit_stage_it_once(points: Path, staging: Path) -> None:
    with ThreadPoolExecutor(4) as threads:
        found = list(threads.map(lambda _: stage_dataset(points, staging_dir=staging), range(8)))
    assert all(one == found[0] for one in found)
    assert len(files(staging)["pending"]) == 6


@pytest.mark.parametrize("prefix", ["..", "a/../b", "a//b", "a\\b", "./a"])
def test_a_place_in_the_repository_that_leads_elsewhere_is_refused(points: Path, staging: Path, prefix: str) -> None:
    with pytest.raises(InvalidShardError, match="path_in_repo is "):
        stage_dataset(points, staging_dir=staging, path_in_repo=prefix)


def test_a_run_id_that_is_no_safe_name_is_refused(points: Path, staging: Path) -> None:
    with pytest.raises(InvalidShardError, match="run_id is 'a b'"):
        stage_dataset(points, staging_dir=staging, run_id="a b")
