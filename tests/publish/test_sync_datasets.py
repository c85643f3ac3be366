"""Datasets on the Hub: every revision is a whole dataset."""

import json
from base64 import b64encode
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.request import Request, urlopen

import numpy as np
import pytest
from huggingface_hub import DatasetCard

import hub
from safetensors_spark._files.manifest import MANIFEST, parse_manifest
from safetensors_spark.dataset import write_dataset
from safetensors_spark.publish import list_pending, stage_dataset
from safetensors_spark.publish._card import with_card
from syncing import REPO, run, sync, tree


@pytest.fixture
def server(tmp_path: Path) -> Iterator[hub.Server]:
    with hub.running(tmp_path / "hub") as server:
        server.make_repo(REPO)
        yield server


@pytest.fixture
def staging(tmp_path: Path) -> Path:
    return tmp_path / "staging"


def write(path: Path, rows: int, mode: Any = "append") -> Path:
    write_dataset([{"x": np.arange(rows * 300, dtype=np.float32).reshape(rows, 300)}], path, batch_size=4, mode=mode)
    return path


def shards(path: Path) -> set[str]:
    return {shard.file for shard in parse_manifest((path / MANIFEST).read_bytes(), MANIFEST).shards}


def manifests(server: hub.Server, prefix: str = "") -> Iterator[tuple[set[str], set[str]]]:
    """For each commit that has a manifest: the shards that it names, and the files that are there."""
    for commit in server.history(REPO):
        if prefix + MANIFEST in commit["tree"]:
            manifest = parse_manifest(server.read(REPO, prefix + MANIFEST, commit["id"]), MANIFEST)
            yield {prefix + shard.file for shard in manifest.shards}, set(commit["tree"])


def test_every_revision_is_the_old_dataset_or_the_new_one(server: hub.Server, staging: Path, tmp_path: Path) -> None:
    path = write(tmp_path / "points", 10)
    stage_dataset(path, staging_dir=staging)
    report = sync(server, staging)
    assert (report["n_committed"], report["n_commits"], report["errors"]) == (4, 2, [])
    first = shards(path)
    stage_dataset(write(path, 5), staging_dir=staging)
    assert sync(server, staging)["n_commits"] == 2
    second = shards(path)
    assert first < second
    assert set(tree(server)) == {*second, MANIFEST, "README.md"}
    stage_dataset(write(path, 3, "overwrite"), staging_dir=staging)
    sync(server, staging)
    assert set(tree(server)) == {*shards(path), MANIFEST, "README.md"}
    # The shards that were replaced are deleted in the commit that brings the manifest.
    assert {name for name, one in server.history(REPO)[-1]["changes"].items() if one is None} == second
    for named, there in manifests(server):
        assert named <= there


def test_two_stagings_of_a_dataset_are_committed_in_their_order(
    server: hub.Server, staging: Path, tmp_path: Path
) -> None:
    path = write(tmp_path / "points", 10)
    stage_dataset(path, staging_dir=staging)
    stage_dataset(write(path, 3, "overwrite"), staging_dir=staging)
    assert sync(server, staging)["n_remaining"] == 0
    assert set(tree(server)) == {*shards(path), MANIFEST, "README.md"}
    assert all(named <= there for named, there in manifests(server))


def test_datasets_of_several_folders_do_without_each_other(server: hub.Server, staging: Path, tmp_path: Path) -> None:
    for name in ("a", "b"):
        stage_dataset(write(tmp_path / name, 4), staging_dir=staging, path_in_repo=f"data/{name}")
    sync(server, staging)
    stage_dataset(write(tmp_path / "a", 2, "overwrite"), staging_dir=staging, path_in_repo="data/a")
    sync(server, staging)
    expected = {f"data/{name}/{file}" for name in ("a", "b") for file in {*shards(tmp_path / name), MANIFEST}}
    assert set(tree(server)) == {*expected, "README.md"}


def test_a_dataset_whose_shard_was_refused_is_not_completed(server: hub.Server, staging: Path, tmp_path: Path) -> None:
    path = write(tmp_path / "points", 10)
    stage_dataset(path, staging_dir=staging)
    refused = sorted(shards(path))[0]
    server.fail(method="POST", path="/commit/", files=refused, count=None, status=422, message="no")
    report = sync(server, staging)
    assert (report["n_failed"], report["n_remaining"]) == (1, 1)
    assert f"{MANIFEST} stays pending: a file of the dataset was refused" in report["errors"][-1]
    assert MANIFEST not in tree(server)
    server.heal()
    run(server, staging, "retry_failed(staging)")
    assert sync(server, staging)["n_remaining"] == 0
    assert MANIFEST in tree(server)


def test_a_manifest_whose_shards_are_nowhere_stays_pending(server: hub.Server, staging: Path, tmp_path: Path) -> None:
    path = write(tmp_path / "points", 10)
    stage_dataset(path, staging_dir=staging)
    lost = sorted(staging.glob("pending/*.safetensors"))[0]
    lost.unlink()
    report = sync(server, staging)
    assert "is neither staged nor in me/points. Stage the dataset again." in report["errors"][-1]
    assert MANIFEST not in tree(server)
    assert [shard.path_in_repo for shard in list_pending(staging)] == [MANIFEST]


def test_a_branch_that_moves_is_read_again(server: hub.Server, staging: Path, tmp_path: Path) -> None:
    stage_dataset(write(tmp_path / "points", 4), staging_dir=staging)
    fault = server.fail(method="POST", path="/commit/", skip=1, move=True)
    report = sync(server, staging)
    assert server.hits(fault) == 1
    assert (report["n_remaining"], report["errors"]) == (0, [])
    assert any(path.startswith("others/") for path in tree(server))
    assert MANIFEST in tree(server)


def test_shards_that_were_deleted_since_are_committed_again(server: hub.Server, staging: Path, tmp_path: Path) -> None:
    path = write(tmp_path / "points", 10)
    stage_dataset(path, staging_dir=staging)
    sync(server, staging, budget=1)
    assert MANIFEST not in tree(server)
    run(server, staging, f"""
        from huggingface_hub import delete_file
        delete_file({sorted(shards(path))[0]!r}, "me/points", repo_type="dataset")
    """)  # fmt: skip
    assert sync(server, staging)["n_remaining"] == 0
    assert set(tree(server)) == {*shards(path), MANIFEST, "README.md"}


def test_the_answer_to_the_last_commit_is_lost(server: hub.Server, staging: Path, tmp_path: Path) -> None:
    stage_dataset(write(tmp_path / "points", 4), staging_dir=staging)
    server.fail(method="POST", path="/commit/", skip=1, drop="after")
    assert sync(server, staging)["n_remaining"] == 0
    assert sum(MANIFEST in one["changes"] for one in server.history(REPO)) == 1


def test_the_dataset_is_read_from_the_hub(server: hub.Server, staging: Path, tmp_path: Path) -> None:
    stage_dataset(write(tmp_path / "points", 10), staging_dir=staging)
    sync(server, staging)
    said = run(server, staging, f"""
        from safetensors_spark.dataset import open_dataset
        dataset = open_dataset("hf://datasets/me/points", cache_dir={str(tmp_path / "cache")!r})
        print(json.dumps([len(dataset), dataset[7]["x"][:2].tolist()]))
    """)  # fmt: skip
    assert json.loads(said) == [10, [2100.0, 2101.0]]


@pytest.mark.parametrize(
    ("fault", "card"),
    [
        # The client has a card looked at, and does not send one that is not text.
        ({"path": "/api/validate-yaml", "status": 400}, b"---\nlicense: none\n---\nMine\n"),
        ({"path": "/commit/", "files": "README.md", "status": 422}, b"Mine\n"),
        ({"path": "never"}, b"\xff\xfe"),
    ],
)
def test_a_card_that_is_refused_does_not_hold_the_data(
    server: hub.Server, staging: Path, tmp_path: Path, fault: dict[str, Any], card: bytes
) -> None:
    # As Git would bring it: the client refuses some of them itself.
    lines = [
        {"key": "header", "value": {"summary": "card"}},
        {"key": "file", "value": {"path": "README.md", "content": b64encode(card).decode(), "encoding": "base64"}},
    ]
    push = Request(f"{server.url}/api/datasets/{REPO}/commit/main", "\n".join(map(json.dumps, lines)).encode())
    push.add_header("Authorization", f"Bearer {hub.WRITE}")
    urlopen(push).close()
    before = tree(server)["README.md"]
    path = write(tmp_path / "points", 4)
    stage_dataset(path, staging_dir=staging)
    server.fail(**{"count": None, "message": "no such license", **fault})
    report = sync(server, staging)
    assert (report["n_failed"], report["n_remaining"]) == (0, 0)
    assert "README.md was refused, and is as it was before. The dataset is published." in report["errors"][0]
    assert {*shards(path), MANIFEST} <= set(tree(server))
    assert tree(server)["README.md"] == before


MADE = "<!-- Made by safetensors-spark -->"


@pytest.mark.parametrize(
    ("card", "kept"),
    [
        (b"# Mine\n", "# Mine\n\n" + MADE),
        (b"---\nlicense: mit\n---\n# Mine\n", "---\nlicense: mit\n# Made by"),
        (
            b'---\n"tags": [a]\nsize_categories: [b]\nconfigs: []\n---\nText',
            '---\n"tags": [a]\nsize_categories: [b]\nconfigs: []\n---\nText\n\n' + MADE,
        ),
        (b"---\n{license: mit}\n---\nText\n", "---\n{license: mit}\n---\nText\n"),
        (b"---\na line\n\nText\n---\nmore\n", "---\na line\n\nText\n---\nmore\n"),
        (b"---\r\nlicense: mit\r\n---\r\nText\r\n", "license: mit\r\n"),
        (b"\xef\xbb\xbf---\nlicense: mit\n---\nText\n", "\ufeff---\nlicense: mit\n"),
    ],
)
def test_a_card_keeps_what_its_author_wrote(tmp_path: Path, card: bytes, kept: str) -> None:
    manifest = parse_manifest((write(tmp_path / "points", 10) / MANIFEST).read_bytes(), MANIFEST)
    made = with_card(card, manifest, "me/points", "")
    assert kept in made.decode()
    assert "| x | F32 | [300] | fixed |" in made.decode()
    assert "10 rows in 3 shards" in made.decode()
    assert with_card(made, manifest, "me/points", "") == made
    larger = parse_manifest((write(tmp_path / "points", 2000) / MANIFEST).read_bytes(), MANIFEST)
    again = with_card(made, larger, "me/points", "").decode()
    assert "2,010 rows" in again
    assert again.count("Made by safetensors-spark") == made.decode().count("Made by safetensors-spark")


def test_a_new_card_has_metadata_and_how_to_load(tmp_path: Path) -> None:
    manifest = parse_manifest((write(tmp_path / "points", 10) / MANIFEST).read_bytes(), MANIFEST)
    made = with_card(None, manifest, "me/points", "data").decode()
    assert made.startswith("---\n# Made by safetensors-spark\ntags:\n- safetensors\nsize_categories:\n- n<1K\n")
    assert 'open_dataset("hf://datasets/me/points/data")' in made
    assert "\n# points\n" in made


def test_what_follows_a_mark_without_the_other_one_is_its_authors(tmp_path: Path) -> None:
    manifest = parse_manifest((write(tmp_path / "points", 10) / MANIFEST).read_bytes(), MANIFEST)
    made = with_card(None, manifest, "me/points", "").decode()
    card = made.replace("<!-- End of what safetensors-spark made -->\n", "My own text\n").encode()
    for _ in range(3):
        card = with_card(card, manifest, "me/points", "")
        assert "My own text" in card.decode()


def test_the_size_of_a_repository_is_that_of_all_its_datasets(tmp_path: Path) -> None:
    manifest = parse_manifest((write(tmp_path / "points", 600) / MANIFEST).read_bytes(), MANIFEST)
    train = with_card(None, manifest, "me/points", "train")
    both = with_card(train, manifest, "me/points", "test")
    assert metadata(train)["size_categories"] == ["n<1K"]
    assert metadata(both)["size_categories"] == ["1K<n<10K"]
    assert with_card(both, manifest, "me/points", "train") == both


@pytest.mark.parametrize(
    ("front", "added"),
    [
        ("", {"tags", "size_categories", "viewer", "configs"}),
        ("license: mit\n", {"tags", "size_categories", "viewer", "configs"}),
        ("tags: [a]\nviewer: true\n", {"size_categories", "configs"}),
        # Rows of Parquet beside the dataset, which `load_dataset` reads.
        ("configs:\n- config_name: rows\n  data_files: data/*.parquet\n", {"tags", "size_categories"}),
        (
            "pretty_name: 'a: b'\nlanguage:\n- en\nextra: {a: [1, 2]}\n",
            {"tags", "size_categories", "viewer", "configs"},
        ),
    ],
)
def test_the_client_reads_the_metadata_of_a_card(tmp_path: Path, front: str, added: set[str]) -> None:
    manifest = parse_manifest((write(tmp_path / "points", 10) / MANIFEST).read_bytes(), MANIFEST)
    card = f"---\n{front}---\nMine\n".encode()
    found, given = metadata(with_card(card, manifest, "me/points", "")), metadata(card)
    assert {name: found[name] for name in given} == given
    assert set(found) - set(given) == added


def metadata(card: bytes) -> dict[str, Any]:
    """As the Hub's client reads it."""
    found: dict[str, Any] = DatasetCard(card.decode()).data.to_dict()
    return found
