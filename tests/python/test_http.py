"""Datasets at an HTTP server: one that lists and knows ranges, and one that does neither; broken answers; secrets."""

import logging
import socket
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from safetensors.numpy import save_file

import safetensors_spark as sts
from handmade import Handmade, samples_by_three
from http_store import PASSWORD, SIGNATURE, USER, HttpStore, serving
from safetensors_spark._commands.cli import main
from safetensors_spark._files import retries
from safetensors_spark.dataset import open_dataset, open_store

VALUES = [float(number) for number in range(9)]


@pytest.fixture(autouse=True)
def _no_waiting(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(retries, "DELAYS", (0.0, 0.0))
    monkeypatch.setenv("SAFETENSORS_SPARK_CACHE", str(tmp_path / "cache"))


@pytest.fixture
def dataset(tmp_path: Path) -> Handmade:
    """Three shards of three samples."""
    return samples_by_three(tmp_path / "data", VALUES)


@pytest.fixture
def http(dataset: Handmade) -> Iterator[HttpStore]:
    with serving(dataset.folder) as store:
        yield store


@pytest.fixture
def keyed(tmp_path: Path) -> Iterator[HttpStore]:
    """Tensors by key in two shards, with an index."""
    made = Handmade(tmp_path / "data")
    made.part(made.shard(a=[1.0, 2.0], b=[3.0]) + made.shard(c=[4.0] * 1000, d=[5.0]))
    made.commit()
    with serving(made.folder) as store:
        yield store


@pytest.mark.parametrize("poor", [False, True])
def test_a_dataset_is_read_and_verified(http: HttpStore, poor: bool, capsys: pytest.CaptureFixture[str]) -> None:
    http.ranges = http.listing = not poor
    assert open_dataset(http.url)[:]["v"].tolist() == VALUES
    assert main(["verify", http.url]) == 0
    assert "No faults found: 3 files" in capsys.readouterr().out
    assert main(["inspect", http.url]) == 0


@pytest.mark.parametrize("poor", [False, True])
def test_a_store_is_read_by_ranges_or_from_whole_files(keyed: HttpStore, poor: bool) -> None:
    keyed.ranges = keyed.listing = not poor
    store = open_store(keyed.url)
    assert store["b"].tolist() == [3.0]
    assert [array.tolist() for array in store.get_many(list("dab"))] == [[5.0], [1.0, 2.0], [3.0]]
    assert open_store(f"{keyed.url}/{store.shards[1].file}")["c"].tolist() == [4.0] * 1000
    assert main(["verify", keyed.url]) == 0


def test_a_folder_of_files_is_listed_by_the_links_of_its_page(tmp_path: Path) -> None:
    (tmp_path / "plain").mkdir()
    for number, name in enumerate(["a b.safetensors", "c#d%.safetensors", "notes.txt"]):
        save_file({"v": np.full(2, number, np.float32)}, tmp_path / "plain" / name)
    with serving(tmp_path / "plain") as http:
        assert open_dataset(f"{http.url}/")[:]["v"].tolist() == [0, 0, 1, 1]
        http.listing = False
        with pytest.raises(FileNotFoundError, match=f"{http.url} does not exist"):
            open_dataset(http.url)


def test_broken_answers_are_asked_for_again(http: HttpStore, caplog: pytest.LogCaptureFixture) -> None:
    ds = open_dataset(http.url)
    first, second, _ = (shard.file for shard in ds.shards)
    http.broken[first] = 2
    with caplog.at_level(logging.WARNING, "safetensors_spark"):
        assert [batch["v"].tolist() for batch in ds.batches(9)] == [VALUES]
    said = [record.message for record in caplog.records if record.name == "safetensors_spark"]
    assert len(said) == 2
    assert all(line.startswith(f"{http.url}/{first}: ") and line.endswith("trying again") for line in said)
    assert http.requests["GET", second] == 1


def test_a_shard_is_not_missing_because_the_server_is_busy(http: HttpStore) -> None:
    name = open_dataset(http.url).shards[0].file
    http.busy[name] = 3
    assert open_dataset(http.url)[0]["v"] == 0
    assert http.busy[name] == 0
    http.busy[name] = 1000
    with pytest.raises(OSError, match=f"{http.url}/{name} cannot be read .*503"):
        open_dataset(http.url)


def test_a_file_by_its_own_url(keyed: HttpStore, tmp_path: Path) -> None:
    keyed.private = True
    (file,) = tmp_path.glob("data/part-00001*")
    file.rename(file.with_name("a b.safetensors"))
    store = open_store(f"{keyed.url}/a%20b.safetensors?sig={SIGNATURE}")
    assert store["d"].tolist() == [5.0]
    assert repr(store) == f"<Store {keyed.url}/a b.safetensors: 1 file>"


def test_attempts_are_bounded(http: HttpStore) -> None:
    ds = open_dataset(http.url)
    http.broken[ds.shards[0].file] = 1000
    with pytest.raises(OSError, match=f"{http.url}/{ds.shards[0].file} cannot be read"):
        ds[0]
    assert http.requests["GET", ds.shards[0].file] == 3
    with pytest.raises(FileNotFoundError):
        open_dataset(f"{http.url}/nothing")
    # What does not exist is not asked for again.
    assert http.requests["GET", "nothing/dataset_manifest.json"] == 1


@pytest.mark.parametrize("host", ["127.0.0.1", "localhost"])
def test_a_refused_connection_is_tried_once_more(host: str, caplog: pytest.LogCaptureFixture) -> None:
    with socket.socket() as taken:
        # Nobody listens at it.
        taken.bind(("127.0.0.1", 0))
        url = f"http://{host}:{taken.getsockname()[1]}/data"
        with caplog.at_level(logging.WARNING, "safetensors_spark"), pytest.raises(OSError, match=f"{url}.* be read"):
            open_dataset(url)
    assert len([one for one in caplog.messages if one.endswith("trying again")]) == 1


@pytest.mark.parametrize("how", ["with_password", "signed"])
def test_secrets_are_used_and_never_shown(
    http: HttpStore, how: str, tmp_path: Path, caplog: pytest.LogCaptureFixture, capsys: pytest.CaptureFixture[str]
) -> None:
    pytest.importorskip("mlflow")
    from safetensors_spark.mlflow import from_safetensors

    http.private = True
    url = getattr(http, how)
    shown: list[object] = []

    def failed(expected: type[Exception], action: Any) -> None:
        with pytest.raises(expected) as raised:
            action()
        shown.extend([raised.value, raised.value.__cause__, raised.value.__context__])

    ds = open_dataset(url)
    assert ds[:]["v"].tolist() == VALUES
    logged = from_safetensors(url)
    shown += [ds, logged.to_dict(), logged.source, logged.source.load, ds._contents]
    assert logged.source.uri == f"{http.url}/dataset_manifest.json"
    assert [main([command, url]) for command in ("inspect", "verify")] == [0, 0]
    with caplog.at_level(logging.DEBUG, "safetensors_spark"):
        other = open_dataset(url, cache_dir=tmp_path / "other")
        http.broken[other.shards[0].file] = 1000
        failed(OSError, lambda: other[0])
        (http.folder / other.shards[1].file).unlink()
        failed(FileNotFoundError, lambda: other[3])
        http.private = True
        wrong = url.replace(PASSWORD, "other-word").replace(SIGNATURE, "other-sig")
        failed(PermissionError, lambda: open_dataset(wrong))
    failed(FileNotFoundError, lambda: open_dataset(url.replace("/data", "/data/nothing")))
    failed(sts.SafetensorsSparkError, lambda: open_dataset(url.replace("http://", "nothing://")))
    http.broken.clear()
    assert main(["verify", url]) == 1
    printed = capsys.readouterr()
    said = "\n".join([*map(repr, shown), *map(str, shown), caplog.text, printed.out, printed.err])
    said += "\n".join(str(path) for path in tmp_path.rglob("*"))
    for secret in (USER, PASSWORD, SIGNATURE, "other-word", "other-sig"):
        assert secret not in said
