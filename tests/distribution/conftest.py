import shutil
from dataclasses import dataclass
from pathlib import Path

import pytest

from .environment import ROOT, Environment, output, uv


@dataclass(frozen=True)
class Distributions:
    sdist: Path
    wheel: Path


@pytest.fixture(scope="session")
def built(tmp_path_factory: pytest.TempPathFactory) -> Distributions:
    """The checkout's sdist and wheel, as `uv build` makes them."""
    folder = tmp_path_factory.mktemp("dist")
    output(uv(), "build", "--out-dir", folder, ROOT)
    return Distributions(sdist=next(folder.glob("*.tar.gz")), wheel=next(folder.glob("*.whl")))


@pytest.fixture
def unpacked(built: Distributions, tmp_path: Path) -> Path:
    """The sdist's folder: sources with a jar in step, and nothing of the checkout."""
    shutil.unpack_archive(built.sdist, tmp_path)
    return next(tmp_path.glob("safetensors_spark-*"))


@pytest.fixture
def environment(tmp_path: Path) -> Environment:
    return Environment.create(tmp_path / "environment")
