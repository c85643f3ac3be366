"""The demo's word can be trusted: what it says is equal is equal, and a difference is found."""

import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from PIL import Image
from safetensors.numpy import load_file
from sklearn.datasets import load_digits  # type: ignore[import-untyped]

from command import run
from safetensors_spark._demo.report import Check, Clock, Part, compare, show

_ONE_PIXEL_WRONG = """
import sys
from safetensors_spark._cli import main
from safetensors_spark._demo import digits

right = digits.read_with_library
def wrong(folder, manifest):
    found = right(folder, manifest)
    found.images[300, 3, 4] = 99
    return found
digits.read_with_library = wrong
sys.exit(main(["demo"]))
"""


@pytest.fixture(scope="module")
def demo(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, str]:
    """The folder that the demo filled, and what it said."""
    folder = tmp_path_factory.mktemp("demo")
    done = run("demo", "--output", "out of the way/demo", cwd=folder)
    assert (done.returncode, done.stderr) == (0, ""), done.stdout
    return folder / "out of the way" / "demo", done.stdout


def test_every_digit_lies_in_the_shards(demo: tuple[Path, str]) -> None:
    dataset = demo[0] / "digits"
    manifest = json.loads((dataset / "dataset_manifest.json").read_text())
    shards = [load_file(dataset / shard["file"]) for shard in manifest["shards"]]
    digits = load_digits()
    assert {array.dtype.name for shard in shards for array in shard.values()} == {"uint8"}
    assert np.array_equal(np.concatenate([shard["image"] for shard in shards]), digits.images)
    assert np.array_equal(np.concatenate([shard["label"] for shard in shards]), digits.target)


def test_the_report_tells_what_was_written_compared_and_where_it_lies(demo: tuple[Path, str]) -> None:
    said = demo[1]
    assert "1,797 digits of scikit-learn went through Spark into 8 shards." in said
    assert "image  U8     [256, 8, 8]" in said
    for reader in ("safetensors library", "Spark              "):
        assert f"{reader}  pixels  115,008  all equal" in said
        assert f"{reader}  labels    1,797  all equal" in said
    assert "out of the way/demo/digits.png" in said
    assert said.endswith("Every value came back as it was.\n")


def test_the_contact_sheet_shows_images(demo: tuple[Path, str]) -> None:
    with Image.open(demo[0] / "digits.png") as sheet:
        assert sheet.format == "PNG"
        assert sheet.width > 1000
        assert len(sheet.getcolors(sheet.width * sheet.height) or []) > 16  # a shade for each value of a pixel


def test_spark_s_log_is_kept_in_a_file(demo: tuple[Path, str]) -> None:
    assert "Spark" in (demo[0] / "spark.log").read_text()
    assert "WARN" not in demo[1]


def test_one_wrong_pixel_fails_the_demo_and_is_named(tmp_path: Path) -> None:
    done = subprocess.run([sys.executable, "-c", _ONE_PIXEL_WRONG], capture_output=True, text=True, cwd=tmp_path)
    assert done.returncode == 1
    assert "1 differ, first at [300, 3, 4]: 99, expected " in done.stdout
    assert done.stdout.endswith("DIFFERENT: see the results above.\n")


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


def test_a_part_with_a_difference_does_not_hold(capsys: pytest.CaptureFixture[str]) -> None:
    part = Part("Title", [], [Check("Spark", "labels", 2, "1 differ")], [])
    show(part, Clock())
    assert not part.holds
    assert capsys.readouterr().out.endswith("DIFFERENT: see the results above.\n")
