"""Datasets in MLflow: what `log_dataset` leaves on a tracking server, and the way back from there."""

import datetime
import json
import socket
import subprocess
import sys
import urllib.request
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

import fsspec
import mlflow
import mlflow.data
import numpy as np
import pytest
from mlflow.data.schema import TensorDatasetSchema
from mlflow.entities import DatasetInput
from mlflow.types import ColSpec, Schema, TensorSpec
from py4j.protocol import Py4JJavaError  # type: ignore[import-untyped]
from pyspark.sql import SparkSession
from safetensors.numpy import load_file

import safetensors_spark as sts
from failures import wait_for
from safetensors_spark._files.manifest import Column
from safetensors_spark.mlflow import SafetensorsDatasetSource, StoredDataset, from_safetensors, log_dataset
from spark_io import MANIFEST, Dataset, frame, write

# Of the server: no jobs beside requests. Of all: nobody is told what is used.
SETTINGS = {"MLFLOW_SERVER_ENABLE_JOB_EXECUTION": "false", "MLFLOW_DISABLE_TELEMETRY": "true", "DO_NOT_TRACK": "true"}


@pytest.fixture(scope="module", autouse=True)
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """A tracking server, to which MLflow talks as long as these tests run."""
    folder = tmp_path_factory.mktemp("mlflow")
    address = f"http://127.0.0.1:{_free_port()}"
    with pytest.MonkeyPatch.context() as patch, (folder / "log").open("wb") as log:
        for name, value in SETTINGS.items():
            patch.setenv(name, value)
        place = ["--host", "127.0.0.1", "--port", address.rpartition(":")[2], "--workers", "1"]
        stores = ["--backend-store-uri", "sqlite:///runs.db", "--default-artifact-root", "artifacts"]
        command = [sys.executable, "-m", "mlflow", "server", *place, *stores]
        process = subprocess.Popen(command, cwd=folder, stdout=log, stderr=log, stdin=subprocess.DEVNULL)
        try:
            wait_for(lambda: _answers(process, address, folder / "log"), 300)
            patch.setenv("MLFLOW_TRACKING_URI", address)
            yield
        finally:
            # The server ends the process that it has started; killed, it would leave it.
            process.terminate()
            process.wait(60)


def _free_port() -> int:
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return int(one.getsockname()[1])


def _answers(process: "subprocess.Popen[bytes]", address: str, log: Path) -> bool:
    assert process.poll() is None, log.read_text()
    try:
        with urllib.request.urlopen(f"{address}/health", timeout=10) as answer:
            return bool(answer.status == 200)
    except OSError:
        return False


@pytest.fixture
def points(spark: SparkSession, path: Path) -> Dataset:
    """Five rows in three shards."""
    return _write_points(spark, path)


def _write_points(spark: SparkSession, path: Path) -> Dataset:
    rows = [([float(i), float(-i)], i) for i in range(5)]
    return write(frame(spark, "x array<float>, y bigint", *rows), path, "overwrite", batch_size=2)


def _inputs(run_id: str) -> list[DatasetInput]:
    inputs = mlflow.get_run(run_id).inputs
    assert inputs is not None
    return inputs.dataset_inputs


def _logged(path: Path | str, **arguments: Any) -> DatasetInput:
    """The dataset as the server gives it back after it was logged in a run."""
    with mlflow.start_run() as run:
        log_dataset(path, **arguments)
    (found,) = _inputs(run.info.run_id)
    return found


def _json(text: str | None) -> Any:
    assert text is not None
    return json.loads(text)


def test_a_run_shows_the_dataset_that_it_read(points: Dataset) -> None:
    dataset = _logged(points.path).dataset
    source = json.loads(dataset.source)
    assert Path(unquote(urlsplit(source["uri"]).path)) == points.path / MANIFEST
    assert (source["total_samples"], source["shards"]) == (5, len(points.shards)) == (5, 3)
    assert source["total_bytes"] == sum(shard.stat().st_size for shard in points.shards)
    assert (dataset.name, dataset.source_type) == ("safetensors_dataset", "safetensors")
    assert dataset.digest == source["commit_id"] == points.manifest["commit_id"]
    assert _json(dataset.profile) == {
        "samples": 5,
        "bytes": source["total_bytes"],
        "shards": 3,
        "mode": "batch",
    }


def test_the_schema_of_ragged_columns(spark: SparkSession, path: Path) -> None:
    df = frame(spark, "t string, v array<array<float>>, d date", ("a", [[1.0, 2.0]], datetime.date(2024, 2, 29)))
    schema = _json(_logged(write(df, path, batch_size=1, ragged="v").path).dataset.schema)
    assert [column["type"] for column in schema["mlflow_colspec"]] == [
        "U8 [?], text",
        "F32 [?, 2], ragged",
        "I32 [], date",
    ]
    specs = [(np.uint8, (-1, -1), "t"), (np.float32, (-1, -1, 2), "v"), (np.int32, (-1,), "d")]
    columns: list[ColSpec | TensorSpec] = [TensorSpec(np.dtype(dtype), shape, name) for dtype, shape, name in specs]
    assert TensorDatasetSchema.from_dict(schema) == TensorDatasetSchema(Schema(columns))


def test_the_schema_is_a_table_for_the_page_and_tensors_for_code(points: Dataset) -> None:
    schema = _json(_logged(points.path).dataset.schema)
    assert schema["mlflow_colspec"] == [{"name": "x", "type": "F32 [2]"}, {"name": "y", "type": "I64 []"}]
    columns: list[ColSpec | TensorSpec] = [
        TensorSpec(np.dtype("float32"), (-1, 2), "x"),
        TensorSpec(np.dtype("int64"), (-1,), "y"),
    ]
    assert TensorDatasetSchema.from_dict(schema) == TensorDatasetSchema(Schema(columns))


def test_a_logged_source_brings_the_dataset_back(points: Dataset) -> None:
    source = mlflow.data.get_source(_logged(points.path))
    assert isinstance(source, SafetensorsDatasetSource)
    stored = source.load()
    assert [Path(file) for file in stored.files] == points.shards
    assert (stored.location, stored.manifest.samples) == (str(points.path), 5)
    assert np.concatenate([load_file(file)["y"] for file in stored.files]).tolist() == [0, 1, 2, 3, 4]


def test_a_run_that_is_named_gets_the_dataset_and_the_active_one_does_not(points: Dataset) -> None:
    ended = mlflow.start_run().info.run_id
    mlflow.end_run()
    with mlflow.start_run() as active:
        log_dataset(str(points.path), ended, "points", context="training")
    (found,) = _inputs(ended)
    assert found.dataset.name == "points"
    assert [(tag.key, tag.value) for tag in found.tags] == [("mlflow.data.context", "training")]
    assert mlflow.get_run(ended).info.status == "FINISHED"
    assert _inputs(active.info.run_id) == []


def test_the_active_run_gets_the_context_too(points: Dataset) -> None:
    tags = _logged(points.path, context="testing").tags
    assert [(tag.key, tag.value) for tag in tags] == [("mlflow.data.context", "testing")]


def test_without_a_run_one_begins_as_with_mlflow_itself(points: Dataset) -> None:
    log_dataset(points.path)
    active = mlflow.active_run()
    mlflow.end_run()
    assert active is not None
    assert len(_inputs(active.info.run_id)) == 1


def test_a_folder_without_a_manifest_is_an_error_and_logs_nothing(tmp_path: Path) -> None:
    with mlflow.start_run() as run, pytest.raises(FileNotFoundError, match=f"{tmp_path} has no {MANIFEST}"):
        log_dataset(tmp_path)
    assert _inputs(run.info.run_id) == []


def test_a_dataset_that_was_written_to_has_another_digest_and_the_old_source_says_so(
    spark: SparkSession, points: Dataset
) -> None:
    before = _logged(points.path)
    _write_points(spark, points.path)
    assert _logged(points.path).dataset.digest != before.dataset.digest
    with pytest.raises(sts.DatasetChangedError, match=f"{points.path} was logged at commit {before.dataset.digest}"):
        mlflow.data.get_source(before).load()
    (points.path / MANIFEST).unlink()
    with pytest.raises(FileNotFoundError, match=f"{points.path} has no {MANIFEST}"):
        mlflow.data.get_source(before).load()


def test_a_dataset_by_key(spark: SparkSession, path: Path) -> None:
    by_key = frame(spark, "id string, v array<double>", ("a", [1.0]), ("b", [2.0]), ("c", [3.0]))
    write(by_key, path, name_col="id", dtype="BF16")
    dataset = _logged(path).dataset
    profile = _json(dataset.profile)
    assert (profile["samples"], profile["shards"], profile["mode"]) == (3, 1, "key_value")
    # NumPy has no BF16, so there is the table alone.
    assert _json(dataset.schema) == {"mlflow_colspec": [{"name": "v", "type": "BF16 [1]"}]}


def test_a_dataset_behind_fsspec(points: Dataset) -> None:
    memory = fsspec.filesystem("memory")
    memory.put(str(points.path), "/mlflow/points", recursive=True)
    found = _logged("memory://mlflow/points", storage_options={"secret": "not to be logged"})
    assert json.loads(found.dataset.source)["uri"] == f"memory:///mlflow/points/{MANIFEST}"
    assert "secret" not in found.dataset.to_dictionary().__repr__()
    stored = mlflow.data.get_source(found).load()
    for url, shard in zip(stored.files, points.shards, strict=True):
        with fsspec.open(url) as file:
            assert file.read() == shard.read_bytes()


def test_mlflow_has_the_constructor_and_takes_a_path_for_the_source_of_other_datasets(points: Dataset) -> None:
    # MLflow puts constructors into its module as it finds them.
    constructors: Any = mlflow.data
    dataset = constructors.from_safetensors(str(points.path), name="points", digest="1")
    assert (dataset.name, dataset.digest, dataset.source.shards) == ("points", "1", 3)
    with pytest.warns(UserWarning, match="MLflow will assume that this is a SafetensorsDatasetSource"):
        arrays = constructors.from_numpy(np.zeros(3), source=str(points.path))
    assert arrays.source == dataset.source


@pytest.mark.parametrize("source", ["memory://absent", "absent", "s3://bucket/points", 7])
def test_other_sources_are_left_to_mlflow(source: object) -> None:
    assert not SafetensorsDatasetSource._can_resolve(source)


def test_columns_that_are_not_known(points: Dataset) -> None:
    dataset = from_safetensors(points.path)
    columns = (Column("a", None, None), Column("b", "F32", None), Column("c", None, (2, 3)))
    unknown = type(dataset)(replace(dataset._manifest, columns=columns), dataset.source)
    table = json.loads(unknown.to_dict()["schema"])["mlflow_colspec"]
    assert [column["type"] for column in table] == ["? [?]", "F32 [?]", "? [2, 3]"]
    assert unknown.schema is None
    # More than the server takes.
    many = type(dataset)(replace(dataset._manifest, columns=columns * 20_000), dataset.source)
    assert many.to_dict()["schema"] is None


def test_the_connector_writes_the_same_json(spark: SparkSession, tmp_path: Path) -> None:
    path = tmp_path / "a b=é%20+~"
    _write_points(spark, path)
    jvm: Any = spark._jvm
    scala = jvm.io.github.semyonsinchenko.safetensors.mlflow.SafetensorsDatasetSource
    hadoop = spark._jsc.hadoopConfiguration()
    source = from_safetensors(path).source
    assert scala.apply(str(path), hadoop).toJson() == source.to_json()
    assert scala.SourceType() == source._get_source_type()
    assert SafetensorsDatasetSource.from_json(source.to_json()).load() == StoredDataset(
        str(path), from_safetensors(path)._manifest
    )
    with pytest.raises(Py4JJavaError, match=f"FileNotFoundException: file:{tmp_path} has no {MANIFEST}"):
        scala.apply(str(tmp_path), hadoop)


@pytest.mark.parametrize("first", ["mlflow.data", "safetensors_spark.mlflow"])
def test_mlflow_finds_it_without_pyspark_and_without_a_warning(first: str) -> None:
    script = (
        "import sys, warnings; sys.modules['pyspark'] = None; warnings.filterwarnings('error', message='Failure'); "
        f"import {first}; import mlflow.data; from mlflow.data.sources import SafetensorsDatasetSource; "
        "print(mlflow.data.from_safetensors.__name__)"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True)
    assert done.stdout == "from_safetensors\n", done.stderr


def test_without_mlflow_the_extra_is_named() -> None:
    script = "import sys; sys.modules['mlflow'] = None; import safetensors_spark.mlflow"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True)
    assert "MissingExtraError: not installed: mlflow. Install the extra `mlflow`:" in done.stderr
    assert 'pip install "safetensors-spark[mlflow]"' in done.stderr
