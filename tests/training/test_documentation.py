"""The examples of README, of the documents and of tutorials run, from top to bottom."""

import gzip
from pathlib import Path

import pyarrow as pa  # type: ignore[import-untyped]
import pyarrow.parquet as pq  # type: ignore[import-untyped]
import pytest
from transformers import AutoModel

import examples
import hub
from safetensors_spark._commands.demo import checkpoint


def test_the_examples_of_readme_spark_and_python(tmp_path: Path) -> None:
    # What the examples read, and do not write.
    pq.write_table(pa.table({"day": ["2025-06-01"] * 2, "user_id": ["user_7", "user_8"]}), tmp_path / "requests")
    (tmp_path / "in").mkdir()
    with gzip.open(tmp_path / "in" / "a.jsonl.gz", "wt") as file:
        file.write('{"id": 1, "score": 0.25}\n{"id": 2, "score": 0.75}\n')
    model = checkpoint.folder()
    assert model is not None
    (tmp_path / "all-MiniLM-L6-v2").symlink_to(model)
    (tmp_path / "bert.safetensors").symlink_to(model / "model.safetensors")
    with hub.running(tmp_path / "hub") as server:
        of_hub = {name: value for name, value in server.environment().items() if name.startswith("HF_")}
        examples.run(tmp_path, "README.md", "docs/spark.md", "docs/python.md", "docs/clusters.md", more=of_hub)
        assert "dataset_manifest.json" in server.history("me/points")[-1]["tree"]
    assert pq.read_table(tmp_path / "out" / "00000.parquet").to_pylist() == [{"id": 2, "score": 0.75}]
    _, report = AutoModel.from_pretrained(tmp_path / "MiniLM-bf16", output_loading_info=True)
    # Lists or sets, by the version of transformers.
    assert not {*report["missing_keys"], *report["unexpected_keys"]}


def test_the_examples_of_training(tmp_path: Path) -> None:
    examples.run(tmp_path, "docs/training.md")


@pytest.mark.parametrize("tutorial", ["images", "tokens", "embeddings", "checkpoint"])
def test_a_tutorial(tmp_path: Path, tutorial: str) -> None:
    examples.run(tmp_path, f"docs/tutorials/{tutorial}.md", more={"XDG_CACHE_HOME": str(tmp_path / "cache")})


def test_functions_and_how_to(tmp_path: Path) -> None:
    examples.run(tmp_path, "docs/functions.md", "docs/how-to.md")
