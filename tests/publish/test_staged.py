"""Pairs of body and sidecar, and their way between the folders of a staging directory."""

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from killing import killed_at_each_step
from safetensors_spark import IncompatibleVersionError, InvalidShardError, InvalidSidecarError
from safetensors_spark.publish import (
    FAILED_DIRNAME,
    PENDING_DIRNAME,
    SYNCED_DIRNAME,
    _staged,
    ensure_staging_layout,
    list_pending,
    move_to,
    prune_orphans,
)
from safetensors_spark.publish._staged import move, read_sidecar, repair, staged
from safetensors_spark.publish._staging import FOLDERS, open_staging
from staging_samples import files, stage_bytes


@pytest.fixture(params=["local", "url", "memory"])
def anywhere(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[str]:
    """A staging directory of each kind."""
    if request.param != "memory":
        yield str(tmp_path) if request.param == "local" else tmp_path.as_uri()
        return
    import fsspec

    yield "memory://staging"
    fsspec.filesystem("memory").rm("/staging", recursive=True)


def test_ensure_staging_layout_makes_the_three_folders_and_is_idempotent(tmp_path: Path) -> None:
    for _ in range(2):
        ensure_staging_layout(tmp_path / "a" / "b")
    assert files(tmp_path / "a" / "b") == {"failed": [], "pending": [], "synced": []}


def test_list_pending_of_no_directory_is_empty(tmp_path: Path) -> None:
    assert list_pending(tmp_path / "none") == []


def test_list_pending_finds_complete_pairs_sorted_by_name(anywhere: str) -> None:
    shards = [stage_bytes(anywhere, name) for name in ("b.parquet", "a.parquet")]
    assert list_pending(anywhere) == shards[::-1]
    assert shards[1].path_in_repo == "data/a.parquet"
    assert (shards[1].run_id, shards[1].n_rows) == ("r", 3)


def test_paths_are_absolute_or_urls(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    shard = stage_bytes("here", "a.parquet")
    assert shard.parquet_path == tmp_path / "here/pending/a.parquet"
    assert shard.sidecar_path == tmp_path / "here/pending/a.parquet.meta.json"
    assert stage_bytes("memory://here", "a.parquet").parquet_path == "memory:///here/pending/a.parquet"


def test_list_pending_skips_a_body_without_a_sidecar(anywhere: str) -> None:
    staging = open_staging(anywhere)
    staging.make(PENDING_DIRNAME)
    staging.put("pending/orphan.parquet", b"body")
    assert list_pending(anywhere) == []


def test_a_sidecar_without_a_body_is_skipped_and_told(
    anywhere: str, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(_staged, "_SETTLED_S", 0)
    shard = stage_bytes(anywhere, "a.parquet")
    open_staging(anywhere).delete("pending/a.parquet")
    assert list_pending(anywhere) == []
    assert f"{shard.sidecar_path} has no body" in caplog.text


@pytest.mark.parametrize("target", [SYNCED_DIRNAME, FAILED_DIRNAME])
def test_move_to_moves_the_pair_and_back(anywhere: str, target: str) -> None:
    shard = stage_bytes(anywhere, "a.parquet")
    moved = move_to(shard, anywhere, target)
    assert str(moved.parquet_path) == str(shard.parquet_path).replace("pending", target)
    assert str(moved.sidecar_path) == str(shard.sidecar_path).replace("pending", target)
    assert list_pending(anywhere) == []
    assert move_to(shard, anywhere, target) == moved, "moved already"
    assert move_to(moved, anywhere, PENDING_DIRNAME) == shard
    assert list_pending(anywhere) == [shard]
    staging = open_staging(anywhere)
    assert staging.names(target) == []
    assert staging.read("pending/a.parquet") == b"body"


def test_a_move_keeps_fields_of_the_sidecar_that_nobody_knows(tmp_path: Path) -> None:
    shard = stage_bytes(tmp_path, "a.parquet", later={"x": [1]})
    staging = open_staging(tmp_path)
    failed = move(staging, shard, FAILED_DIRNAME, failed={"reason": "too large"})
    sidecar = read_sidecar(staging, FAILED_DIRNAME, "a.parquet")
    assert sidecar is not None
    assert (sidecar.fields["later"], sidecar.fields["failed"]) == ({"x": [1]}, {"reason": "too large"})
    move(staging, failed, PENDING_DIRNAME, failed=None)
    again = read_sidecar(staging, PENDING_DIRNAME, "a.parquet")
    assert again is not None
    assert "failed" not in again.fields
    assert again.fields["later"] == {"x": [1]}


def test_move_to_refuses_other_folders(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=r"`done` is not a folder.*pending, synced, failed"):
        move_to(stage_bytes(tmp_path, "a.parquet"), tmp_path, "done")


def test_move_to_says_that_a_shard_is_gone(tmp_path: Path) -> None:
    shard = stage_bytes(tmp_path, "a.parquet")
    shutil.rmtree(tmp_path / "pending")
    with pytest.raises(FileNotFoundError, match=r"has no shard a\.parquet in pending"):
        move_to(shard, tmp_path, SYNCED_DIRNAME)


def test_a_move_never_replaces_another_shard(tmp_path: Path) -> None:
    move_to(stage_bytes(tmp_path, "a.parquet", b"one"), tmp_path, SYNCED_DIRNAME)
    other = stage_bytes(tmp_path, "a.parquet", b"two")
    assert list_pending(tmp_path) == [other], "which is no interrupted move"
    with pytest.raises(InvalidShardError, match=r"synced/a\.parquet is another file"):
        move_to(other, tmp_path, SYNCED_DIRNAME)
    assert (tmp_path / "synced/a.parquet").read_bytes() == b"one"


@pytest.mark.parametrize("target", [SYNCED_DIRNAME, FAILED_DIRNAME])
@pytest.mark.parametrize("back", [False, True], ids=["there", "back"])
def test_a_move_killed_at_any_file_operation_is_finished_by_the_next_sync(
    tmp_path: Path, target: str, back: bool
) -> None:
    def prepared(step: int) -> Path:
        shard = stage_bytes(tmp_path / str(step), "a.parquet")
        if back:
            move_to(shard, tmp_path / str(step), target)
        return tmp_path / str(step)

    def action(folder: Path) -> None:
        staging = open_staging(folder)
        source, place = (target, PENDING_DIRNAME) if back else (PENDING_DIRNAME, target)
        sidecar = read_sidecar(staging, source, "a.parquet")
        assert sidecar
        move_to(staged(staging, source, "a.parquet", sidecar), folder, place)

    pair = ["a.parquet", "a.parquet.meta.json"]
    seen = set()
    for folder in killed_at_each_step(action, prepared):
        listed = list_pending(folder)
        repair(open_staging(folder))
        assert listed in ([], list_pending(folder)), "what is listed before the repair is whole"
        left = {name: [one for one in found if not one.endswith(".tmp")] for name, found in files(folder).items()}
        whole = [name for name, found in left.items() if found]
        assert len(whole) == 1, left
        assert left[whole[0]] == pair, left
        seen.add(whole[0])
        prune_orphans(folder, older_than_s=0)
        assert [one for found in files(folder).values() for one in found] == pair
    assert seen == {PENDING_DIRNAME, target}, "before the first operation that counts, and after it"


def test_list_pending_finishes_a_move_that_was_interrupted_long_ago(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    shard = stage_bytes(tmp_path, "a.parquet")
    text = json.loads(Path(shard.sidecar_path).read_text())
    open_staging(tmp_path).put("synced/a.parquet.meta.json", json.dumps({**text, "moves": 1}).encode())
    assert list_pending(tmp_path) == []
    assert files(tmp_path)["pending"] == ["a.parquet", "a.parquet.meta.json"], "its mover may continue"
    monkeypatch.setattr(_staged, "_SETTLED_S", 0)
    assert list_pending(tmp_path) == []
    assert files(tmp_path) == {"pending": [], "synced": ["a.parquet", "a.parquet.meta.json"]}


def test_readers_beside_a_mover_lose_nothing(tmp_path: Path) -> None:
    shards = [stage_bytes(tmp_path, f"{number:03}.parquet") for number in range(40)]

    def circle(shard: object) -> None:
        for target in (FAILED_DIRNAME, PENDING_DIRNAME, SYNCED_DIRNAME):
            shard = move_to(shard, tmp_path, target)  # type: ignore[arg-type]

    with ThreadPoolExecutor(4) as threads:
        moving = [threads.submit(circle, shard) for shard in shards]
        while not all(one.done() for one in moving):
            list_pending(tmp_path)
        for one in moving:
            one.result()
    list_pending(tmp_path)
    assert files(tmp_path)["pending"] == files(tmp_path)["failed"] == []
    assert len(files(tmp_path)["synced"]) == 80


def test_a_store_killed_between_copy_and_deletion_has_the_body_once() -> None:
    import fsspec

    shard = stage_bytes("memory://copied", "a.parquet")
    staging = open_staging("memory://copied")
    move_to(shard, "memory://copied", SYNCED_DIRNAME)
    # As a kill leaves it that comes after the copy of the body.
    staging.put("pending/a.parquet", b"body")
    first = json.loads(staging.read("synced/a.parquet.meta.json") or b"")
    staging.put("pending/a.parquet.meta.json", json.dumps({**first, "moves": 0}).encode())
    assert list_pending("memory://copied") == []
    repair(staging)
    assert [len(staging.names(folder)) for folder in FOLDERS] == [0, 2, 0]
    fsspec.filesystem("memory").rm("/copied", recursive=True)


@pytest.mark.parametrize(
    ("content", "what"),
    [
        (b"", "it is not JSON"),
        (b"[]", "it is not an object"),
        (b"{}", "`version` is null, expected 1"),
        (b'{"version": 1}', "`run_id` is null, expected a text"),
    ],
)
def test_a_damaged_sidecar_is_named(tmp_path: Path, content: bytes, what: str) -> None:
    shard = stage_bytes(tmp_path, "a.parquet")
    Path(shard.sidecar_path).write_bytes(content)
    with pytest.raises(InvalidSidecarError) as error:
        list_pending(tmp_path)
    assert f"{shard.sidecar_path} is not a valid sidecar: {what}" in str(error.value)


@pytest.mark.parametrize(
    ("field", "value", "what"),
    [
        ("n_rows", -1, "`n_rows` is -1, expected a number from 0 on"),
        ("n_rows", True, "`n_rows` is true, expected a number"),
        ("sha256", "abc", "`sha256` is `abc`, expected 64 hexadecimal digits"),
        ("dataset", [], "`dataset` is [], expected an object"),
        ("dataset", {}, "`dataset.id` is null, expected a text"),
        ("dataset", {"id": "i", "prefix": "", "role": 1}, "`dataset.role` is 1, expected a text"),
        ("synced", "yesterday", '`synced` is "yesterday", expected an object'),
    ],
)
def test_a_wrong_field_of_a_sidecar_is_named(tmp_path: Path, field: str, value: object, what: str) -> None:
    path = Path(stage_bytes(tmp_path, "a.parquet").sidecar_path)
    path.write_text(json.dumps({**json.loads(path.read_text()), field: value}))
    with pytest.raises(InvalidSidecarError) as error:
        list_pending(tmp_path)
    assert what in str(error.value)


def test_drafts_are_in_the_folder_of_their_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Only there the process surely may write, and on one file system with the file."""
    drafts: list[Path] = []
    rename = Path.rename

    def noted(self: Path, target: Path) -> Path:
        drafts.append(self)
        return rename(self, target)

    monkeypatch.setattr(Path, "rename", noted)
    for name in ("_sync.json", "pending/a"):
        open_staging(tmp_path).put(name, b"{}")
        assert (tmp_path / name).read_bytes() == b"{}"
    assert [draft.parent for draft in drafts] == [tmp_path, tmp_path / "pending"]


def test_a_sidecar_of_a_newer_version_is_refused(tmp_path: Path) -> None:
    path = Path(stage_bytes(tmp_path, "a.parquet").sidecar_path)
    path.write_text(json.dumps({**json.loads(path.read_text()), "version": 2}))
    with pytest.raises(IncompatibleVersionError, match=r"has version 2, but .* reads 1"):
        list_pending(tmp_path)


def test_prune_orphans_removes_what_is_old_and_nothing_else(anywhere: str) -> None:
    staging = open_staging(anywhere)
    stage_bytes(anywhere, "a.parquet")
    stage_bytes(anywhere, "lost.parquet")
    staging.delete("pending/lost.parquet")
    staging.put("pending/orphan.parquet", b"")
    staging.put("pending/b.parquet.0123abcd-1-ff.tmp", b"")
    assert prune_orphans(anywhere) == []
    removed = prune_orphans(anywhere, older_than_s=0)
    assert sorted(str(one).rpartition("/")[2] for one in removed) == [
        "b.parquet.0123abcd-1-ff.tmp", "lost.parquet.meta.json", "orphan.parquet",
    ]  # fmt: skip
    assert [sorted(staging.names(folder)) for folder in FOLDERS] == [["a.parquet", "a.parquet.meta.json"], [], []]


def test_prune_orphans_leaves_the_file_of_a_writer_that_lives(tmp_path: Path) -> None:
    staging = open_staging(tmp_path)
    mine = staging.draft("pending/a.parquet")
    mine.touch()
    os.utime(mine, (0, 0))
    script = (
        "import sys; from safetensors_spark.publish._staging import open_staging; "
        "open_staging(sys.argv[1]).draft('pending/a.parquet').touch()"
    )
    subprocess.run([sys.executable, "-c", script, str(tmp_path)], check=True)
    assert len(files(tmp_path)["pending"]) == 2
    removed = prune_orphans(tmp_path, older_than_s=0)
    assert len(removed) == 1
    assert files(tmp_path)["pending"] == [mine.name]
