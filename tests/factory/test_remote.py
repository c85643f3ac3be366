"""Runs whose folder is in S3, of a server that the test starts."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import datasets
import pytest
from s3fs import S3FileSystem  # type: ignore[import-untyped]

import s3_server
from factory.conftest import Longer, Upper
from safetensors_spark.factory import ChangedStageError, Pipeline, Stage, report, run
from safetensors_spark.factory.hooks.whylogs import WhylogsProfiles
from safetensors_spark.factory.operators.exact_dedup import ExactDedup
from safetensors_spark.factory.operators.length import TextLength
from safetensors_spark.pipeline import create_backend

BUCKET = "datasets"
SIZES: dict[str, Any] = {"shard_bytes": 20_000, "window_bytes": 8000, "file_bytes": 10_000}


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Iterator[S3FileSystem]:
    log = tmp_path_factory.mktemp("s3") / "requests.json"
    server = subprocess.Popen(
        [sys.executable, s3_server.__file__, str(log)], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
    )
    with server, pytest.MonkeyPatch.context() as patch:
        assert server.stdout is not None
        endpoint = f"http://127.0.0.1:{server.stdout.readline().split()[1]}"
        for name, value in (
            ("AWS_ENDPOINT_URL", endpoint),
            ("AWS_ACCESS_KEY_ID", "test"),
            ("AWS_SECRET_ACCESS_KEY", "test"),
            ("AWS_DEFAULT_REGION", "us-east-1"),
            ("HF_DATASETS_CACHE", str(tmp_path_factory.mktemp("cache"))),
        ):
            patch.setenv(name, value)
        files = S3FileSystem(use_listings_cache=False)
        files.mkdir(BUCKET)
        yield files
        server.kill()


def _pipeline(limit: int = 100) -> Pipeline:
    first = Stage("score", [TextLength(), Longer(limit=limit), Upper()])
    return Pipeline(
        "numbers", (first, Stage("unique", [ExactDedup(fields=("text",))]), Stage("end", [Longer(limit=300)]))
    )


def test_a_run_in_a_store_leaves_what_a_local_one_does(rows: Any, tmp_path: Path, store: S3FileSystem) -> None:
    place = f"s3://{BUCKET}/web"
    expected = run(_pipeline(), rows, tmp_path, backend=create_backend("sync", progress=False), **SIZES)
    backend = create_backend("processes", 2, progress=False)
    for source in (rows, rows.to_iterable_dataset()):
        found = run(_pipeline(), source, f"{place}/", backend=backend, mode="overwrite", **SIZES)
        assert isinstance(found, type(source))
        assert list(found) == list(expected)
    local = {
        path.relative_to(tmp_path).as_posix(): path.read_bytes()
        for path in tmp_path.rglob("*.parquet")
        if "_cache" not in path.parts
    }
    run(_pipeline(), rows, place, backend=backend, mode="overwrite", **SIZES)
    assert {name: store.cat_file(f"{place}/{name}") for name in local} == local
    assert len([name for name in store.find(place) if name.endswith(".parquet")]) == len(local)


def test_a_run_in_a_store_goes_on(rows: Any, store: S3FileSystem) -> None:
    place, backend = f"s3://{BUCKET}/on", create_backend("sync", progress=False)
    hooks = [WhylogsProfiles(columns=("text_length",))]
    expected = list(run(_pipeline(), rows, place, backend=backend, hooks=hooks, **SIZES))
    before = {name: store.info(name)["LastModified"] for name in store.find(f"{place}/score")}
    assert any("/profiles/whylogs-" in name for name in before)
    store.rm(f"{place}/end/manifest.json")
    assert list(run(_pipeline(), rows, place, backend=backend, hooks=hooks, **SIZES)) == expected
    assert {name: store.info(name)["LastModified"] for name in store.find(f"{place}/score")} == before
    with pytest.raises(ChangedStageError, match="`limit` of `longer_1` is 200, and was 100"):
        run(_pipeline(200), rows, place, backend=backend, **SIZES)

    found = report(place)
    assert [(stage.rows_in, stage.rows_out) for stage in found.stages] == [(1000, 899), (899, 899), (899, 699)]
    command = [sys.executable, "-m", "safetensors_spark", "factory", "report", place]
    assert "exact_dedup_1" in subprocess.run(command, capture_output=True, text=True, check=True).stdout
    refused = subprocess.run([*command[:-1], f"s3://{BUCKET}/none"], capture_output=True, text=True, check=False)
    assert refused.returncode
    assert "is not the folder of a run" in refused.stderr


def test_an_empty_run_in_a_store(store: S3FileSystem) -> None:
    nothing = datasets.Dataset.from_dict({"n": [1], "text": ["a"]})
    found = run(_pipeline(), nothing, f"s3://{BUCKET}/empty", backend=create_backend("sync", progress=False))
    assert len(found) == 0
    assert "text_length" in found.features
