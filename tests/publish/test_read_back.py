"""Datasets on the Hub are read by their URL, from a server of its API."""

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

import hub
from forks import run_module
from hub_client import client
from safetensors_spark.dataset import DatasetWriter

READ = """
import numpy as np
from safetensors_spark.dataset import open_dataset, open_store
url = "hf://datasets/me/points"
def opened(url=url, **options): return open_dataset(url, cache_dir=folder / "cache", **options)
def said(call):
    try: call()
    except OSError as error: return f"{type(error).__name__}: {error}"
    raise AssertionError("no error")
"""
PUBLISH = """
api.upload_folder(repo_id="me/points", folder_path=folder / "{}", repo_type="dataset", delete_patterns="*.safetensors")
"""


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[hub.Server]:
    with hub.running(tmp_path_factory.mktemp("hub")) as server:
        for name, first in (("old", 0), ("new", 5000)):
            with DatasetWriter(server.folder / name, batch_size=100) as writer:
                writer.write({"n": np.arange(first, first + 1000), "x": np.zeros((1000, 8), np.float32)})
        with DatasetWriter(server.folder / "keys", name_col="key", generate_index=True) as writer:
            writer.write({"key": [f"k{n:05}" for n in range(20_000)], "x": np.arange(2_000_000.0).reshape(20_000, 100)})
        client(
            server,
            'api.create_repo("me/points", repo_type="dataset")\n' + PUBLISH.format("old") + "\n"
            'api.create_tag("me/points", tag="v1", repo_type="dataset")\n'
            'api.create_repo("me/keys", repo_type="dataset")\n'
            'api.upload_folder(repo_id="me/keys", folder_path=folder / "keys", repo_type="dataset")\n'
            'api.create_repo("me/secret", repo_type="dataset", private=True)\n'
            'api.upload_folder(repo_id="me/secret", folder_path=folder / "old", repo_type="dataset")\n',
        )
        yield server


def test_samples_are_read_and_shards_downloaded_once(server: hub.Server) -> None:
    code = (
        READ
        + """
data = opened("hf://datasets/me/points@v1")
assert [int(data[n]["n"]) for n in (0, 5, 999)] == [0, 5, 999], data
"""
    )
    server.forget()
    client(server, code)
    shards = [path for _, path in server.counts() if path.endswith(".safetensors")]
    assert len(shards) == 2
    server.forget()
    client(server, code)
    assert not [path for _, path in server.counts() if path.endswith(".safetensors")]


def test_a_dataset_is_the_commit_that_was_opened(server: hub.Server) -> None:
    client(
        server,
        READ
        + "data = opened()\nassert data[5]['n'] == 5\n"
        + PUBLISH.format("new")
        + """
assert data[705]["n"] == 705
assert opened()[705]["n"] == 5705
assert opened("hf://datasets/me/points@v1")[705]["n"] == 705
assert "hf://datasets/me/points:" in repr(data)
""",
    )


def test_shards_that_revisions_share_are_downloaded_once(server: hub.Server) -> None:
    client(
        server,
        'api.create_repo("me/tagged", repo_type="dataset")\n'
        'api.upload_folder(repo_id="me/tagged", folder_path=folder / "old", repo_type="dataset")\n'
        'api.create_tag("me/tagged", tag="v1", repo_type="dataset")\n'
        'api.upload_file(repo_id="me/tagged", path_in_repo="a", path_or_fileobj=b"", repo_type="dataset")\n',
    )
    server.forget()
    client(
        server,
        READ
        + """
url = "hf://datasets/me/tagged"
main, tagged = opened(url), opened(f"{url}@v1")
assert list(main["n"]) == list(tagged["n"]) == list(range(1000))
from safetensors_spark._files.cache import Cache
assert [one.dataset for one in Cache(folder / "cache", 0).shards() if "tagged" in one.dataset] == [url] * 10
""",
    )
    assert sum(one["path"].endswith(".safetensors") for one in server.requests()) == 10


def test_files_by_the_same_name_are_those_of_their_revision(server: hub.Server) -> None:
    """A folder without a manifest has no checksums: the Hub tells its files apart."""
    client(
        server,
        READ
        + """
import struct, json
def file(value):
    header = json.dumps({"n": {"dtype": "I64", "shape": [1], "data_offsets": [0, 8]}}).encode()
    return struct.pack("<Q", len(header)) + header + struct.pack("<q", value)
api.create_repo("me/files", repo_type="dataset")
def put(value):
    return api.create_commit("me/files", [add("a.safetensors", file(value))], commit_message="n", repo_type="dataset")
first = put(1)
store = open_store("hf://datasets/me/files")
assert opened("hf://datasets/me/files")[0]["n"] == 1
put(2)
assert opened("hf://datasets/me/files")[0]["n"] == 2
assert opened(f"hf://datasets/me/files@{first.oid}")[0]["n"] == 1
assert store["n"][0] == 1
""",
    )


def test_a_key_is_read_by_ranges(server: hub.Server) -> None:
    server.forget()
    client(
        server,
        READ
        + """
store = open_store("hf://datasets/me/keys")
assert store["k00777"][0] == 77700
assert [one[0] for one in store.get_many(["k00001", "k19999"])] == [100, 1999900]
""",
    )
    asked = [one for one in server.requests() if one["path"].endswith(".safetensors")]
    assert [one["sent"] for one in asked] == [800, 800, 800]


def test_inspect_and_verify_read_what_is_published(server: hub.Server) -> None:
    def said(command: str, dataset: str) -> str:
        done = run_module("safetensors_spark", [command, f"hf://datasets/me/{dataset}"], server.environment())
        assert done.returncode == 0, done.stderr
        return done.stdout

    assert "1,000" in said("inspect", "points@v1")
    said("verify", "points@v1")
    said("verify", "keys")


def test_a_private_dataset_is_read_with_the_token(server: hub.Server) -> None:
    code = """
data = opened("hf://datasets/me/secret", storage_options={"token": "hf_read"})
assert data[5]["n"] == 5 and "hf_read" not in repr(data) + str(data)
print(said(lambda: opened("hf://datasets/me/secret")))
print(said(lambda: opened("hf://datasets/me/secret", storage_options={"token": "hf_unknown"})))
"""
    without, unknown = client(server, READ + code, token=None).splitlines()
    assert without.startswith("FileNotFoundError: hf://datasets/me/secret does not exist, or may not be read without")
    assert "hf auth login" in without
    assert unknown.startswith(
        "PermissionError: hf://datasets/me/secret may not be read: the token is unknown to the Hub"
    )
    assert "hf_unknown" not in unknown


@pytest.mark.parametrize(
    ("url", "expected"),
    [
        ("hf://datasets/me/none", "FileNotFoundError: hf://datasets/me/none does not exist, or may not be read"),
        (
            "hf://me/points",
            "FileNotFoundError: hf://me/points does not exist, or may not be read without the right token.",
        ),
        (
            "hf://datasets/me/points@v9",
            "FileNotFoundError: hf://datasets/me/points@v9 does not exist: the repository has",
        ),
    ],
)
def test_what_is_not_there_is_said_in_one_line(server: hub.Server, url: str, expected: str) -> None:
    found = client(server, READ + f"print(said(lambda: opened({url!r})))")
    assert found.startswith(expected)
    assert "\n" not in found


def test_a_dataset_that_was_not_there_is_found_when_it_is_published(server: hub.Server) -> None:
    client(
        server,
        READ
        + """
said(lambda: opened("hf://datasets/me/later"))
api.create_repo("me/later", repo_type="dataset")
api.upload_folder(repo_id="me/later", folder_path=folder / "old", repo_type="dataset")
assert opened("hf://datasets/me/later")[5]["n"] == 5
""",
    )


def test_a_gated_dataset_says_where_to_ask(server: hub.Server) -> None:
    client(
        server,
        'api.create_repo("me/gated", repo_type="dataset")\n'
        'api.upload_folder(repo_id="me/gated", folder_path=folder / "old", repo_type="dataset")\n'
        'api.update_repo_settings("me/gated", repo_type="dataset", gated="auto")\n',
    )
    found = client(server, READ + 'print(said(lambda: opened("hf://datasets/me/gated")))', token=hub.OTHER)
    assert found.startswith("PermissionError: hf://datasets/me/gated/dataset_manifest.json may not be read: the repo")
    assert "Request access on its page" in found


def test_offline_is_said(server: hub.Server) -> None:
    found = client(server, READ + "print(said(opened))", offline=True)
    assert found == (
        "OSError: hf://datasets/me/points cannot be read: HF_HUB_OFFLINE is set. Unset it, or read a local copy."
    )


def test_a_shard_whose_download_is_cut_is_read_again(server: hub.Server, tmp_path: Path) -> None:
    fault = server.fail(method="GET", path=r"resolve/.*\.safetensors", cut=1000)
    busy = server.fail(method="GET", path=r"/tree/", status=503)
    code = (
        f'assert opened("hf://datasets/me/points@v1").__len__() == 1000\nimport safetensors_spark.dataset as d\n'
        f'assert d.open_dataset("hf://datasets/me/points@v1", cache_dir={str(tmp_path)!r})[5]["n"] == 5'
    )
    client(server, READ + code)
    assert (server.hits(fault), server.hits(busy)) == (1, 1)
