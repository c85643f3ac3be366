import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

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
