"""A script that is a job of a cluster of Ray."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

pytest.importorskip("ray")

from ray.cluster_utils import Cluster

from pipeline.conftest import STORE_BYTES
from safetensors_spark._commands.cli import main

_SCRIPT = """
import sys
from safetensors_spark.pipeline import Dataset, flow_backend

def main():
    backend = flow_backend()
    rows = Dataset.from_list([{"n": 1}, {"n": 2}]).map(lambda row: {"n": row["n"] * 10})
    paths = list(backend.execute(rows.write_jsonl(sys.argv[1] + "/{shard}.jsonl")))
    print(backend, "wrote", len(paths))
"""


@pytest.fixture
def dashboard(monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """The address of a cluster that takes jobs, which needs more processes."""
    # What jobs run is found as here.
    monkeypatch.setenv("PATH", f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}")
    head = {"num_cpus": 2, "object_store_memory": STORE_BYTES, "include_dashboard": True, "dashboard_port": 0}
    cluster = Cluster(initialize_head=True, head_node_args=head)
    try:
        yield f"http://{cluster.head_node.webui_url}"
    finally:
        cluster.shutdown()


def test_a_script_is_a_job_of_the_cluster(tmp_path: Path, dashboard: str, capfd: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "job").mkdir()
    script = tmp_path / "job" / "script.py"
    script.write_text(_SCRIPT)
    command = ["pipeline", "--cluster=ray", f"--cluster-config={dashboard}", "--max-parallelism=2", "--num-cpus=0.5"]
    assert main([*command, str(script), f"{tmp_path}/out"]) == 0
    assert "RayBackend: 2 tasks at a time> wrote 2" in capfd.readouterr().out
    assert [json.loads(path.read_text()) for path in sorted((tmp_path / "out").glob("*.jsonl"))] == [
        {"n": 10},
        {"n": 20},
    ]
    script.write_text(_SCRIPT.replace("backend = flow_backend()", "raise ValueError('no rows')"))
    assert main([*command, str(script), f"{tmp_path}/out"]) != 0
    output = capfd.readouterr()
    assert "no rows" in output.out
    assert "on Ray ended as FAILED" in output.err
