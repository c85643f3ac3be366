"""What the Hub's answers mean, and what the client makes of them: which are refusals, which may go away."""

from collections.abc import Iterator
from hashlib import sha256
from pathlib import Path

import numpy as np
import pytest

import hub
from safetensors_spark.dataset import write_dataset
from safetensors_spark.publish import list_pending, stage_dataset
from staging_samples import files, stage_bytes
from syncing import REPO, run, sync, tree

PUT = """
from huggingface_hub import upload_file
upload_file(path_or_fileobj={!r}, path_in_repo={!r}, repo_id='me/points', repo_type='dataset')
"""


@pytest.fixture
def server(tmp_path: Path) -> Iterator[hub.Server]:
    with hub.running(tmp_path / "hub") as server:
        server.make_repo(REPO)
        yield server


@pytest.fixture
def staging(tmp_path: Path) -> Path:
    return tmp_path / "staging"


def points(path: Path) -> Path:
    write_dataset([{"x": np.arange(12.0).reshape(4, 3)}], path, batch_size=4)
    return path


def test_a_card_that_could_not_be_asked_for_is_not_taken_for_a_missing_one(
    server: hub.Server, staging: Path, tmp_path: Path
) -> None:
    run(server, tmp_path, PUT.format(b"# Mine\n", "README.md"))
    stage_dataset(points(tmp_path / "points"), staging_dir=staging)
    server.fail(method="HEAD", path="README.md", status=403)
    assert "cannot be written" in run(server, staging, "try: sync()\nexcept HubAccessError as error: print(error)")
    sync(server, staging)
    found = run(server, staging, """
        from huggingface_hub import hf_hub_download
        print(Path(hf_hub_download("me/points", "README.md", repo_type="dataset")).read_text())
    """)  # fmt: skip
    assert "# Mine" in found
    assert "4 rows in 1 shard" in found


def test_a_file_that_gitignore_excludes_is_refused_and_not_lost(server: hub.Server, staging: Path) -> None:
    run(server, staging, PUT.format(b"*/b.parquet\n", ".gitignore"))
    for name in "abc":
        stage_bytes(staging, f"{name}.parquet", name.encode())
    report = sync(server, staging)
    assert (report["n_committed"], report["n_failed"]) == (2, 1)
    assert report["errors"] == [
        "data/b.parquet was refused: the repository's .gitignore excludes data/b.parquet",
    ]
    assert files(staging)["failed"] == ["b.parquet", "b.parquet.meta.json"]


def test_a_tag_or_a_commit_cannot_be_committed_to(server: hub.Server, staging: Path) -> None:
    run(
        server,
        staging,
        "from huggingface_hub import create_tag; create_tag('me/points', tag='v1', repo_type='dataset')",
    )
    stage_bytes(staging, "a.parquet")
    for revision in ("v1", server.history("me/points")[-1]["id"]):
        code = f"try: sync(revision={revision!r})\nexcept HubAccessError as error: print(error)"
        assert f"has no branch `{revision}`" in run(server, staging, code)
    assert len(list_pending(staging)) == 1


@pytest.mark.parametrize("branch", ["dev/x", "refs/pr/1"])
def test_a_branch_may_have_a_slash_or_be_a_pull_requests(server: hub.Server, staging: Path, branch: str) -> None:
    run(server, staging, """
        from huggingface_hub import create_branch, create_pull_request
        create_branch("me/points", branch="dev/x", repo_type="dataset")
        create_pull_request("me/points", title="t", repo_type="dataset")
    """)  # fmt: skip
    stage_bytes(staging, "a.parquet")
    assert sync(server, staging, revision=branch)["n_committed"] == 1
    assert "data/a.parquet" in server.history("me/points")[-1]["tree"]


def test_a_path_that_the_client_refuses_fails_alone(server: hub.Server, staging: Path, tmp_path: Path) -> None:
    stage_dataset(points(tmp_path / "points"), staging_dir=staging, path_in_repo="data/.git")
    stage_bytes(staging, "a.parquet")
    report = sync(server, staging)
    assert (report["n_committed"], report["n_failed"]) == (1, 1)
    assert "cannot update files under a '.git/' folder" in report["errors"][0]


def test_a_file_that_lfs_refuses_fails_alone(server: hub.Server, staging: Path) -> None:
    for name in "abc":
        stage_bytes(staging, f"{name}.parquet", name.encode())
    digest = sha256(b"b").hexdigest()
    server.fail(path="objects/batch", files=digest, count=None, status=422, message="larger than 50 GB")
    report = sync(server, staging, xet=False)
    assert (report["n_committed"], report["n_failed"], report["n_remaining"]) == (2, 1, 0)
    assert "larger than 50 GB" in report["errors"][0]
    assert set(tree(server)) == {"data/a.parquet", "data/c.parquet"}


def test_an_upload_that_fails_says_why(server: hub.Server, staging: Path) -> None:
    stage_bytes(staging, "a.parquet", b"a" * 1000)
    server.fail(method="PUT", path="/", status=418, message="a teapot", count=None)
    report = sync(server, staging, xet=False, max_retries=0)
    assert report["n_remaining"] == 1
    assert "Error while uploading 'data/a.parquet' to the Hub (418: a teapot)" in report["errors"][0]


@pytest.mark.parametrize(
    ("option", "said"),
    [
        ("max_batch=0", "max_batch is 0, expected at least 1: files of a commit, of which more than 100 are 100."),
        ("max_retries=-1", "max_retries is -1, expected 0 or more."),
    ],
)
def test_a_number_that_means_nothing_is_an_error(server: hub.Server, staging: Path, option: str, said: str) -> None:
    stage_bytes(staging, "a.parquet")
    code = f"try: sync({option})\nexcept InvalidWriteError as error: print(error)"
    assert run(server, staging, code) == said
    assert len(list_pending(staging)) == 1


def test_a_type_of_repository_that_there_is_not_is_an_error(server: hub.Server, staging: Path) -> None:
    said = run(server, staging, "try: sync(repo_type='data')\nexcept ValueError as error: print(error)")
    assert said == "repo_type is 'data', expected dataset, model or space."
