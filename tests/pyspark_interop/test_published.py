"""Spark reads what is published as docs/publish.md says: from a folder that `snapshot_download` fills."""

import subprocess
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

import examples
import hub
from spark_io import write

# The client of the Hub is in an environment of its own, without Spark.
CLIENT = Path(__file__).parents[2] / ".venv-publish/bin/python"

DOWNLOAD = """
import sys
from huggingface_hub import HfApi, snapshot_download
if sys.argv[2] == "v1":
    HfApi().create_tag("me/points", tag="v1", repo_type="dataset")
snapshot_download("me/points", repo_type="dataset", revision=sys.argv[2], local_dir=sys.argv[1])
"""


@pytest.mark.skipif(not CLIENT.exists(), reason="`make environments` makes the environment with the Hub's client")
def test_spark_reads_a_downloaded_snapshot_and_the_next_one(spark: SparkSession, tmp_path: Path) -> None:
    points, copy = tmp_path / "points", tmp_path / "copy"
    publish = ["-m", "safetensors_spark", "publish", "dataset", str(points), "me/points"]

    def client(server: hub.Server, *command: str) -> None:
        done = subprocess.run([CLIENT, *command], env=server.environment(), capture_output=True, text=True)
        assert done.returncode == 0, done.stderr

    def written(first: int) -> list[tuple[int, str]]:
        rows = spark.range(first, first + 6, 1, 2).selectExpr("id", "concat('row ', id) text")
        write(rows, points, "overwrite", batch_size=2)
        return [(number, f"row {number}") for number in range(first, first + 6)]

    def read() -> list[tuple[int, str]]:
        found = {"spark": spark, "path": str(copy)}
        exec(examples.block("docs/publish.md", "df = spark.read"), found)
        return sorted(map(tuple, found["df"].select("id", "text").collect()))  # type: ignore[attr-defined]

    with hub.running(tmp_path / "hub") as server:
        for revision, first in (("v1", 0), ("main", 100)):
            expected = written(first)
            client(server, *publish)
            client(server, "-c", DOWNLOAD, str(copy), revision)
            # Shards of the revision before are still there, and are not read.
            assert read() == expected
    assert len(list(copy.glob("*.safetensors"))) == 8
