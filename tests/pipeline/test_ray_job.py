"""A script that is a job of a cluster of Ray."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

pytest.importorskip("ray")

from ray.job_submission import JobSubmissionClient

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


# A process of its own: Ray keeps one cluster for each process.
_CLUSTER = """
import sys
from ray.cluster_utils import Cluster
# Ports that no other cluster of this machine has.
ports = {{"dashboard_port": 0, "dashboard_agent_listen_port": 0}}
head = {{"num_cpus": 2, "object_store_memory": {store}, "include_dashboard": True, **ports}}
cluster = Cluster(initialize_head=True, head_node_args=head)
print("http://" + cluster.head_node.webui_url, flush=True)
sys.stdin.read()
cluster.shutdown()
"""


@pytest.fixture
def dashboard(monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """The address of a cluster that takes jobs."""
    # What jobs run is found as here.
    monkeypatch.setenv("PATH", f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}")
    command = [sys.executable, "-c", _CLUSTER.format(store=STORE_BYTES)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as cluster:
        assert cluster.stdout is not None
        address = cluster.stdout.readline().strip()
        assert address, "the cluster did not start"
        client = JobSubmissionClient(address)
        # The processes that start jobs are there later than the dashboard.
        while True:
            try:
                client.submit_job(entrypoint="true")
                break
            except RuntimeError as error:
                if "No available agent" not in str(error):
                    raise
                time.sleep(0.5)
        yield address


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
