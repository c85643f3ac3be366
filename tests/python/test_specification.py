"""The dataset in the appendix of format/dataset.md is one, and what the writer makes of its rows."""

import json
import re
from pathlib import Path

import jsonschema
import numpy as np
import pytest

from safetensors_spark.dataset import open_dataset, verify, write_dataset
from sbt import ROOT

PAGE = (ROOT / "format" / "dataset.md").read_text()
APPENDIX = PAGE[PAGE.index("## Appendix") :]


@pytest.fixture
def appendix(tmp_path: Path) -> Path:
    """The dataset, made of the page."""
    folder = tmp_path / "appendix"
    folder.mkdir()
    manifest, header = re.findall(r"```json\n(.*?)\n```", APPENDIX, re.DOTALL)
    (dump,) = re.findall(r"```text\n(.*?)\n```", APPENDIX, re.DOTALL)
    shard = bytes.fromhex("".join(line[4:] for line in dump.splitlines()))
    assert shard[8:256].decode() == header
    (folder / "dataset_manifest.json").write_text(manifest)
    (folder / json.loads(manifest)["shards"][0]["file"]).write_bytes(shard)
    return folder


def test_the_appendix_is_a_dataset(appendix: Path) -> None:
    schema = json.loads((ROOT / "format" / "dataset_manifest.schema.json").read_text())
    jsonschema.validate(json.loads((appendix / "dataset_manifest.json").read_text()), schema)
    assert verify(appendix).faults == []
    rows = open_dataset(appendix)
    assert [(row["x"].tolist(), row["text"]) for row in rows] == [([1, 2], "a"), ([3, 4], "bc")]


def test_the_appendix_is_what_is_written(appendix: Path, tmp_path: Path) -> None:
    rows = {"x": np.array([[1, 2], [3, 4]], np.float32), "text": ["a", "bc"]}
    write_dataset(rows, tmp_path / "written", batch_size=2)
    (expected,), (written,) = appendix.glob("*.safetensors"), (tmp_path / "written").glob("*.safetensors")
    assert written.read_bytes() == expected.read_bytes()
    one, other = (json.loads((path.parent / "dataset_manifest.json").read_text()) for path in (expected, written))
    for manifest in (one, other):
        del manifest["commit_id"], manifest["shards"][0]["file"]
    assert one == other


def test_the_page_names_the_current_versions_and_all_fields_of_the_manifest() -> None:
    schema = json.loads((ROOT / "format" / "dataset_manifest.schema.json").read_text())
    minor, major = schema["properties"]["format_version"]["enum"]
    assert f"**Versions {minor} and {major}**" in PAGE
    fields = PAGE[PAGE.index("## The manifest") : PAGE.index("## What a reader does")]
    for name in schema["properties"]:
        assert f"`{name}`" in fields, name
