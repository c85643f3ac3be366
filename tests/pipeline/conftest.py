"""One backend of each kind: `pytest tests/pipeline -k processes` runs one of them."""

from __future__ import annotations

import gzip
import json
import sys
from collections.abc import Callable, Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

from safetensors_spark.pipeline import Backend, create_backend

# Ray has an environment of its own, without Spark: `make test-ray`.
CLUSTERS = {"ray": "ray", "spark": "pyspark"}
BACKENDS = ("sync", "threads", "processes", *(name for name, module in CLUSTERS.items() if find_spec(module)))

# Of a node of Ray: it takes them from the machine's memory when it starts.
STORE_BYTES = 80 << 20

MakeBackend = Callable[..., Backend]


@pytest.fixture(autouse=True)
def own_cache(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> None:
    """Runs that write nothing have their folders in the user's cache."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path_factory.mktemp("cache")))


@pytest.fixture(params=BACKENDS)
def backend(request: pytest.FixtureRequest) -> MakeBackend:
    """Makes backends of one kind, with two tasks at a time."""
    if request.param in CLUSTERS:
        request.getfixturevalue(f"{request.param}_cluster")

    def make(**options: Any) -> Backend:
        return create_backend(request.param, 2, progress=False, **options)

    return make


@pytest.fixture(scope="session")
def ray_cluster() -> Iterator[Any]:
    """A cluster of two nodes, each with one CPU, to which this process is connected."""
    # First, for it says how Ray is imported.
    from safetensors_spark.pipeline._backends import ray as _  # noqa: F401, I001
    import ray
    from ray.cluster_utils import Cluster

    head = {"num_cpus": 1, "object_store_memory": STORE_BYTES, "include_dashboard": False}
    cluster = Cluster(initialize_head=True, connect=True, head_node_args=head)
    try:
        cluster.add_node(num_cpus=1, object_store_memory=STORE_BYTES)
        yield cluster
    finally:
        ray.shutdown()
        cluster.shutdown()


@pytest.fixture(scope="session")
def spark_cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    """A session of Spark with two executors, each with one core."""
    from pyspark.sql import SparkSession

    import quick_jvm
    import safetensors_spark

    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PYSPARK_PYTHON", sys.executable)
        builder = safetensors_spark.configure(SparkSession.builder).master("local-cluster[2,1,1024]")
        settings = {
            "spark.executor.memory": "1g",
            # As often as other backends try: Spark's default is four.
            "spark.task.maxFailures": "3",
            "spark.ui.enabled": "false",
            "spark.sql.warehouse.dir": str(tmp_path_factory.mktemp("warehouse")),
            # No task starts before both executors are there, so both get some.
            "spark.scheduler.minRegisteredResourcesRatio": "1.0",
            "spark.scheduler.maxRegisteredResourcesWaitingTime": "300s",
        }
        session = builder.config(map={**quick_jvm.CONF, **settings}).getOrCreate()
        yield session
        session.stop()


@pytest.fixture
def sync() -> MakeBackend:
    def make(**options: Any) -> Backend:
        return create_backend("sync", progress=False, **options)

    return make


@pytest.fixture
def files(tmp_path: Path) -> Path:
    """A folder of four files of 250 records, two of them in a folder of their own."""
    folder = tmp_path / "in"
    (folder / "more").mkdir(parents=True)
    for number in range(4):
        path = folder / ("more" if number % 2 else "") / f"{number}.jsonl.gz"
        with gzip.open(path, "wt") as file:
            for row in records(number):
                file.write(json.dumps(row) + "\n")
    return folder


def records(number: int) -> list[dict[str, Any]]:
    """The records of a file of `files`."""
    return [
        {"id": number * 250 + row, "score": row / 250, "text": "word " * (row % 7), "kind": f"k{row % 5}"}
        for row in range(250)
    ]


# As `files` are sorted.
ALL = [row for number in (0, 2, 1, 3) for row in records(number)]
