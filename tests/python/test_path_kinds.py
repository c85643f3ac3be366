"""What a path may be: a folder or file of any name, a manifest, an index of a checkpoint; and what is refused."""

import json
import os
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import fsspec
import numpy as np
import pytest
from safetensors.numpy import save_file

import safetensors_spark as sts
from handmade import Handmade
from safetensors_spark.dataset import open_dataset, open_store

INDEX = "model.safetensors.index.json"
VARIANT = "model.safetensors.index.fp16.json"


def save(path: Path, **tensors: Any) -> Path:
    save_file({name: np.array(values, np.float32) for name, values in tensors.items()}, path)
    return path


@pytest.fixture
def checkpoint(tmp_path: Path) -> Path:
    """A model in two precisions, each with an index."""
    folder = tmp_path / "model"
    folder.mkdir()
    for index, file, value in ((INDEX, "model.safetensors", 1), (VARIANT, "model.fp16.safetensors", 2)):
        save(folder / file, w=[value], b=[[value], [value]])
        (folder / index).write_text(json.dumps({"weight_map": {"w": file, "b": file}}))
    return folder


def test_an_index_of_a_variant_counts_only_by_its_name(checkpoint: Path) -> None:
    assert open_store(checkpoint)["w"].tolist() == [1]
    assert open_store(checkpoint / VARIANT)["w"].tolist() == [2]
    (checkpoint / INDEX).unlink()
    assert open_store(checkpoint)["w"].tolist() == [2]


def test_two_indexes_of_checkpoints_are_refused(checkpoint: Path) -> None:
    (checkpoint / "other.safetensors.index.json").write_bytes((checkpoint / VARIANT).read_bytes())
    with pytest.raises(sts.InvalidCheckpointError) as raised:
        open_store(checkpoint)
    assert str(raised.value) == (
        f"{checkpoint} has several checkpoint indexes: {INDEX}, other.safetensors.index.json. "
        "Give the path of one of them."
    )
    assert open_store(checkpoint / "other.safetensors.index.json")["w"].tolist() == [2]
    assert open_store(str(checkpoint / INDEX))["w"].tolist() == [1]


def test_a_checkpoint_has_no_samples(checkpoint: Path) -> None:
    said = f"{checkpoint} is a checkpoint, which has no samples: open it with `open_store`."
    with pytest.raises(sts.SafetensorsSparkError, match=f"^{said}$"):
        open_dataset(checkpoint)


def test_a_model_in_one_file_has_no_samples(tmp_path: Path) -> None:
    file = save(tmp_path / "model.safetensors", **{f"layer.{n}.weight": [n] * (n + 1) for n in range(1000)})
    for path in (file, tmp_path):
        with pytest.raises(sts.SafetensorsSparkError, match="open it with `open_store`") as raised:
            open_dataset(path)
        assert len(str(raised.value)) < 400


@pytest.mark.parametrize("where", ["", "memory://test-paths"])
def test_a_folder_named_like_a_file(tmp_path: Path, where: str) -> None:
    folder = tmp_path / "all.safetensors"
    folder.mkdir()
    save(folder / "a.safetensors", x=[1, 2])
    path = str(folder)
    if where:
        fsspec.filesystem("memory").put(f"{folder}/", "/test-paths/all.safetensors/", recursive=True)
        path = f"{where}/all.safetensors"
    assert open_store(path)["x"].tolist() == [1, 2]
    assert open_store(f"{path}/a.safetensors")["x"].tolist() == [1, 2]


def test_a_manifest_stands_for_its_dataset(tmp_path: Path) -> None:
    made = Handmade(tmp_path)
    made.shard(a=[1.0])
    made.commit()
    save(tmp_path / "beside.safetensors", b=[2])
    assert list(open_store(tmp_path / "dataset_manifest.json")) == ["a"]


def test_a_link_that_leads_to_itself(tmp_path: Path) -> None:
    save(tmp_path / "a.safetensors", x=[1, 2])
    (tmp_path / "loop").symlink_to("loop")
    assert open_store(tmp_path)["x"].tolist() == [1, 2]


DEEP = "[" * 100_000 + "]" * 100_000

MANIFESTS: dict[str, Callable[[str], str | bytes]] = {
    "deep JSON": lambda text: DEEP,
    "a number beyond 63 bits": lambda text: re.sub(r'"bytes": \d+', f'"bytes": {1 << 63}', text),
    "a number of many digits": lambda text: re.sub(r'"bytes": \d+', f'"bytes": 1{"0" * 5000}', text),
    "a dimension beyond 63 bits": lambda text: text.replace('"shape": null', f'"shape": [{1 << 63}]'),
    "half of a surrogate pair": lambda text: text.replace('"name": "v"', '"name": "\\ud800"'),
    "no UTF-8": lambda text: text.encode().replace(b'"name": "v"', b'"name": "\xff"'),
}


@pytest.mark.parametrize("what", MANIFESTS)
def test_a_manifest_that_is_odd(tmp_path: Path, what: str) -> None:
    made = Handmade(tmp_path)
    made.shard(a=[1.0])
    made.commit()
    path = tmp_path / "dataset_manifest.json"
    before = path.read_text()
    odd = MANIFESTS[what](before)
    assert odd != before
    path.write_bytes(odd if isinstance(odd, bytes) else odd.encode())
    with pytest.raises(sts.InvalidManifestError, match="is not a valid dataset manifest"):
        open_store(tmp_path)


@pytest.mark.parametrize(
    "content",
    [
        DEEP,
        f'{{"weight_map": {DEEP}}}',
        '{"weight_map": {"\\udc00": "a.safetensors"}}',
        '{"weight_map": {"a": 1}}',
        '{"weight_map": []}',
        "[]",
        "",
    ],
    ids=range(7),
)
def test_an_index_of_a_checkpoint_that_is_odd(tmp_path: Path, content: str) -> None:
    save(tmp_path / "a.safetensors", a=[1])
    (tmp_path / INDEX).write_text(content)
    with pytest.raises(sts.InvalidCheckpointError, match=f"{INDEX} is not a valid checkpoint index"):
        open_store(tmp_path)


def test_a_file_of_a_name_that_no_file_system_has(tmp_path: Path) -> None:
    made = Handmade(tmp_path / "made")
    name = made.shard(a=[1.0])[0]["file_name"]
    made.commit()
    path = tmp_path / "made" / "dataset_manifest.json"
    path.write_text(path.read_text().replace(name, "x" * 1_000_000))
    with pytest.raises(sts.InvalidManifestError, match=r"`shards.0..file` is `xxx") as raised:
        open_store(tmp_path / "made")
    assert len(str(raised.value)) < 1000
    save(tmp_path / "a.safetensors", a=[1])
    (tmp_path / INDEX).write_text(json.dumps({"weight_map": {"a": "x" * 300}}))
    with pytest.raises(sts.InvalidCheckpointError, match="which is not the name of a file beside it"):
        open_store(tmp_path)


def _make_hole(path: Path) -> None:
    path.touch()
    os.truncate(path, 1 << 40)


@pytest.mark.parametrize("name", ["dataset_manifest.json", INDEX])
@pytest.mark.parametrize(
    ("make", "said"),
    [
        (os.mkfifo, "is not a regular file"),
        (lambda path: path.symlink_to("/dev/zero"), "is not a regular file"),
        (_make_hole, "has 1,099,511,627,776 bytes, and at most"),
    ],
    ids=["pipe", "device", "hole"],
)
def test_what_is_read_in_whole_and_has_no_end(
    tmp_path: Path, name: str, make: Callable[[Path], object], said: str
) -> None:
    save(tmp_path / "a.safetensors", a=[1])
    make(tmp_path / name)
    with pytest.raises(sts.SafetensorsSparkError, match=f"{re.escape(name)}.* {said}"):
        open_store(tmp_path / name)


def test_a_shard_that_is_a_link_to_itself(tmp_path: Path) -> None:
    made = Handmade(tmp_path)
    name = made.shard(a=[1.0])[0]["file_name"]
    made.commit()
    (tmp_path / name).unlink()
    (tmp_path / name).symlink_to(name)
    with pytest.raises(FileNotFoundError, match=f"{name} does not exist: the dataset has lost it"):
        open_store(tmp_path)["a"]


def test_what_is_not_there(tmp_path: Path) -> None:
    (tmp_path / "dangling").symlink_to("nothing")
    (tmp_path / "text").write_text("")
    for name, said in (
        ("nothing", f"{tmp_path}/nothing does not exist"),
        ("text/nothing", f"{tmp_path}/text/nothing does not exist"),
        ("a.safetensors", f"{tmp_path}/a.safetensors does not exist"),
        ("dangling", f"{tmp_path}/dangling is a broken link"),
        ("*.st", f"{tmp_path}/*.st does not exist: patterns are not expanded, give the folder or one file"),
    ):
        with pytest.raises(FileNotFoundError, match=f"^{re.escape(said)}$"):
            open_store(tmp_path / name)


def test_a_path_that_would_be_the_working_directory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    save(tmp_path / "a.safetensors", x=[1, 2])
    monkeypatch.chdir(tmp_path)
    with pytest.raises(sts.SafetensorsSparkError, match="the path is empty: give a folder"):
        open_dataset("")
    with pytest.raises(
        sts.SafetensorsSparkError, match="file://points is on another machine, `points`: write file:///path"
    ):
        open_dataset("file://points")
    assert open_dataset(".")["x"].tolist() == [1, 2]
    assert open_dataset(f"file://localhost{tmp_path}")["x"].tolist() == [1, 2]


def test_the_home_directory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    save(tmp_path / "a.safetensors", x=[1, 2])
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("USERPROFILE", str(tmp_path))
    for path in ("~", "~/", "~/a.safetensors", Path("~/a.safetensors")):
        assert open_store(path)["x"].tolist() == [1, 2]
    # Some programs name files so.
    save(tmp_path / "~b.safetensors", x=[3])
    monkeypatch.chdir(tmp_path)
    assert open_store("~b.safetensors")["x"].tolist() == [3]
