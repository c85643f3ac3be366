"""One backend of each kind: `pytest tests/pipeline -k processes` runs one of them."""

from __future__ import annotations

import gzip
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from safetensors_spark.pipeline import Backend, create_backend

BACKENDS = ("sync", "threads", "processes")

MakeBackend = Callable[..., Backend]


@pytest.fixture(autouse=True)
def own_cache(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> None:
    """Runs that write nothing have their folders in the user's cache."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path_factory.mktemp("cache")))


@pytest.fixture(params=BACKENDS)
def backend(request: pytest.FixtureRequest) -> MakeBackend:
    """Makes backends of one kind, with two tasks at a time."""

    def make(**options: Any) -> Backend:
        return create_backend(request.param, 2, progress=False, **options)

    return make


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
