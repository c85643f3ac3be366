import re
import shutil
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pyspark
import pytest
from pyspark.sql import SparkSession

from failures import daemon, wait_for
from spark_io import Dataset, local_session
from stores import write_store


@pytest.fixture(scope="session")
def spark(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SparkSession]:
    session = local_session(tmp_path_factory.mktemp("warehouse"))
    yield session
    session.stop()


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """A directory to write to, which does not exist yet."""
    return tmp_path / "dataset"


@pytest.fixture(scope="session")
def written(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Dataset:
    """Tensors by key in three shards; some modules have another dataset of this name."""
    return write_store(spark, tmp_path_factory.mktemp("written") / "store")


@pytest.fixture
def copied(written: Dataset, tmp_path: Path) -> Dataset:
    """The module's written dataset, which a test may damage."""
    return Dataset(Path(shutil.copytree(written.path, tmp_path / written.path.name)))


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[str]:
    """The address of a standalone master with two workers. Their hosts differ, as speculation wants another host."""
    spark_class = Path(pyspark.__file__).parent / "bin" / "spark-class"
    log = tmp_path / "master.log"
    with ExitStack() as stack:
        master = "org.apache.spark.deploy.master.Master --host 127.0.0.1 --port 0 --webui-port 0"
        stack.enter_context(daemon(spark_class, log, *master.split()))
        wait_for(lambda: re.search(r"Starting Spark master at spark://", log.read_text()))
        found = re.search(r"Starting Spark master at (spark://\S+)", log.read_text())
        assert found is not None
        for host in ("127.0.0.2", "127.0.0.3"):
            worker = f"org.apache.spark.deploy.worker.Worker --host {host} --cores 1 --memory 1g --webui-port 0"
            folder = ["--work-dir", str(tmp_path / host)]
            stack.enter_context(daemon(spark_class, tmp_path / f"{host}.log", *worker.split(), *folder, found[1]))
        wait_for(lambda: log.read_text().count("Registering worker") == 2)
        yield found[1]
