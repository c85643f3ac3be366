"""The server of the Hub's API that other tests use, with the real client: by LFS and by Xet."""

from collections.abc import Iterator
from pathlib import Path

import pytest

import hub
from hub_client import client


@pytest.fixture(params=[True, False], ids=["xet", "lfs"])
def xet(request: pytest.FixtureRequest) -> bool:
    return bool(request.param)


@pytest.fixture
def server(tmp_path: Path) -> Iterator[hub.Server]:
    with hub.running(tmp_path / "hub") as server:
        server.make_repo("me/points")
        yield server


def test_what_is_committed_is_read_back(server: hub.Server, xet: bool) -> None:
    client(
        server,
        """
        large = random.Random(1).randbytes(3_000_000) + bytes(range(256)) * 9000
        first = commit(add("README.md", b"one"), add("data/a.safetensors", large), add("b.bin", b"b" * 70000))
        found = api.get_paths_info("me/points", ["data/a.safetensors", "README.md", "none"], repo_type="dataset")
        assert [(one.path, one.size) for one in found] == [("data/a.safetensors", len(large)), ("README.md", 3)]
        assert found[0].lfs.sha256 == hashlib.sha256(large).hexdigest() and not found[1].lfs
        second = commit(CommitOperationDelete("b.bin"), add("README.md", b"two"), parent_commit=first.oid)
        assert commit(add("README.md", b"two")).oid == second.oid
        found = api.list_repo_files("me/points", repo_type="dataset")
        assert sorted(found) == [".gitattributes", "README.md", "data/a.safetensors"]
        path = hf_hub_download("me/points", "data/a.safetensors", repo_type="dataset")
        assert Path(path).read_bytes() == large
        where = snapshot_download("me/points", repo_type="dataset", revision=first.oid)
        assert (Path(where) / "README.md").read_bytes() == b"one"
        files = HfFileSystem()
        assert files.cat_file("datasets/me/points/data/a.safetensors", start=1000, end=2000) == large[1000:2000]
        found = [one["name"].rsplit("/")[-1] for one in files.ls(f"datasets/me/points@{first.oid}")]
        assert found == [".gitattributes", "README.md", "b.bin", "data"]
        commits = api.list_repo_commits("me/points", repo_type="dataset")
        assert [one.commit_id for one in commits][:2] == [second.oid, first.oid]
        """,
        xet,
    )
    made = server.history("me/points")
    assert [sorted(one["tree"]) for one in made] == [
        [".gitattributes"],
        [".gitattributes", "README.md", "b.bin", "data/a.safetensors"],
        [".gitattributes", "README.md", "data/a.safetensors"],
    ]
    uploads = [path for method, path in server.counts() if method == "PUT"]
    assert len(uploads) == (0 if xet else 2)


def test_a_folder_is_uploaded_once(server: hub.Server, xet: bool) -> None:
    code = """
        many = folder / "many"
        many.mkdir(exist_ok=True)
        for number in range(30): (many / f"{number}.safetensors").write_bytes(f"{number}\\0".encode() * 500)
        api.upload_folder(repo_id="me/points", folder_path=many, path_in_repo="in", repo_type="dataset")
    """
    client(server, code, xet)
    made = server.history("me/points")
    assert len(made[-1]["tree"]) == 31
    client(server, code, xet)
    assert server.history("me/points") == made


def test_files_uploaded_before_are_committed_later(server: hub.Server, xet: bool) -> None:
    client(
        server,
        """
        one = add("a.safetensors", b"a\\0" * 40000)
        api.preupload_lfs_files("me/points", [one], repo_type="dataset")
        commit(one)
        """,
        xet,
    )
    assert "a.safetensors" in server.history("me/points")[-1]["tree"]


def test_a_large_file_that_was_not_uploaded_is_refused(server: hub.Server, xet: bool) -> None:
    client(
        server,
        """
        one = add("a.safetensors", b"a\\0" * 40000)
        one.upload_info.sha256, one._upload_mode, one._should_ignore, one._is_uploaded = b"0" * 32, "lfs", False, True
        assert status(lambda: commit(one)) == 400
        """,
        xet,
    )
    assert len(server.history("me/points")) == 1


def test_branches_tags_and_pull_requests(server: hub.Server) -> None:
    client(
        server,
        """
        first = commit(add("a.txt", b"1"))
        api.create_tag("me/points", tag="v1", repo_type="dataset")
        api.create_branch("me/points", branch="next", repo_type="dataset")
        commit(add("a.txt", b"2"), revision="next")
        pull = commit(add("b.txt", b"3"), create_pr=True)
        assert pull.pr_revision == "refs/pr/1", pull
        commit(add("c.txt", b"4"), revision=pull.pr_revision)
        def files(revision): return sorted(api.list_repo_files("me/points", repo_type="dataset", revision=revision))[1:]
        assert files("refs/pr/1") == ["a.txt", "b.txt", "c.txt"] and files("main") == files("v1") == ["a.txt"]
        refs = api.list_repo_refs("me/points", repo_type="dataset", include_pull_requests=True)
        assert [one.name for one in refs.branches] == ["main", "next"] and refs.tags[0].target_commit == first.oid
        """,
    )


def test_who_may_not_is_refused(server: hub.Server) -> None:
    refused = 'print(status(lambda: commit(add("a.txt", b"1"))))'
    assert client(server, refused, token=hub.READ) == "403"
    assert client(server, refused, token=hub.OTHER) == "403"
    assert client(server, refused, token="hf_unknown") == "401"
    assert client(server, refused, token=None) == "401"
    client(server, 'api.create_repo("me/secret", repo_type="dataset", private=True)')
    ask = """
    try: print(api.dataset_info("me/secret").id)
    except RepositoryNotFoundError as error: print(error.response.status_code)
    """
    assert client(server, ask) == "me/secret"
    assert client(server, ask, token=hub.OTHER) == "404"
    assert client(server, ask, token=None) == "401"


def test_failures_on_demand(server: hub.Server) -> None:
    commits = {"method": "POST", "path": "/commit/main"}
    code = 'print(status(lambda: commit(add("a.txt", os.urandom(9).hex().encode()))))'
    for answer in (409, 412, 413, 422, 429, 503):
        server.fail(**commits, status=answer, headers={"Retry-After": "1", "RateLimit": '"api";r=0;t=1'})
        assert client(server, code) == str(answer)
    assert len(server.history("me/points")) == 1
    server.fail(**commits, drop="after")
    client(
        server,
        f"""
        try: {code}
        except Exception as error: assert "Server disconnected" in str(error), error
        else: raise AssertionError("an answer")
        """,
    )
    assert len(server.history("me/points")) == 2
    server.fail(**commits, move=True)
    head = 'commit(add("a.txt", os.urandom(9).hex().encode()), parent_commit=api.dataset_info("me/points").sha)'
    assert client(server, f"print(status(lambda: {head}))") == "412"
    server.fail(files="bad", count=None, status=422)
    client(
        server,
        """
        assert status(lambda: commit(add("good", b"1"), add("in/bad.txt", b"2"))) == 422
        commit(add("good", b"1"))
        """,
    )


def test_an_upload_that_is_cut_is_sent_again(server: hub.Server) -> None:
    """By new clients on their own; older ones raise an error, and a second call does it."""
    fault = server.fail(method="PUT", path="/_lfs/", cut=100_000)
    slow = server.fail(method="PUT", path="/_lfs/", rate=2_000_000, count=None)
    code = """
        more = lambda: commit(add("a.safetensors", b"a" * 400_000))
        try: more()
        except RuntimeError: more()
    """
    client(server, code, xet=False)
    assert "a.safetensors" in server.history("me/points")[-1]["tree"]
    assert server.hits(fault) == 1
    assert server.hits(slow) == 2


def test_thousands_of_files_and_commits(server: hub.Server) -> None:
    client(
        server,
        """
        for start in range(0, 2000, 100):
            commit(*(add(f"{number % 16}/{number}.txt", str(number).encode()) for number in range(start, start + 100)))
        from concurrent.futures import ThreadPoolExecutor
        with ThreadPoolExecutor(4) as threads:
            list(threads.map(lambda number: commit(add(f"one/{number}", b"1"), parent_commit=None), range(100)))
        assert len(list(api.list_repo_tree("me/points", recursive=True, repo_type="dataset"))) == 2118
        assert len(api.list_repo_commits("me/points", repo_type="dataset")) == 121
        """,
    )
    assert len(server.history("me/points", trees=False)) == 121
