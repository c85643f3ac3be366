"""The examples of docs/publish.md and of the tutorial run. What they do with Spark is in tests/pyspark_interop."""

from pathlib import Path

import numpy as np

import examples
import hub
from safetensors_spark.dataset import write_dataset
from syncing import publish


def test_the_examples_of_publish(tmp_path: Path) -> None:
    # What the examples read, and do not write.
    write_dataset({"key": ["a", "b"], "v": np.ones((2, 3))}, tmp_path / "vectors", name_col="key")
    write_dataset({"x": np.arange(4)}, tmp_path / "secret", batch_size=2)
    with hub.running(tmp_path / "hub") as server:
        for name in ("vectors", "secret"):
            assert publish(server, "dataset", tmp_path / name, f"me/{name}").returncode == 0
        of_hub = {name: value for name, value in server.environment().items() if name.startswith("HF_")}
        examples.run(tmp_path, "docs/publish.md", more=of_hub | {"SECRET_TOKEN": hub.READ}, but=["spark.read"])
        tree = server.history("me/points")[-1]["tree"]
    assert {"dataset_manifest.json", "README.md"} < set(tree)
    assert [path for path in tree if path.startswith("data/")] == ["data/m1/b/night-1.parquet"]


def test_the_tutorial_of_the_hub(tmp_path: Path) -> None:
    with hub.running(tmp_path / "hub") as server:
        of_hub = {name: value for name, value in server.environment().items() if name.startswith("HF_")}
        examples.run(tmp_path, "docs/tutorials/hub.md", more=of_hub)
