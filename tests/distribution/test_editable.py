import shutil
import zipfile
from pathlib import Path

import pytest

from .environment import Environment, run, without_java


@pytest.fixture
def checkout(unpacked: Path, environment: Environment) -> Path:
    """Sources that the environment has installed with `pip install -e`."""
    environment.pip("install", "-e", unpacked)
    return unpacked


def test_jar_follows_the_scala_sources(checkout: Path, environment: Environment) -> None:
    before = environment.jar_path(env=without_java())  # in step: nothing to build
    assert before.is_relative_to(checkout)
    assert "Added.class" not in zipfile.ZipFile(before).namelist()

    (checkout / "scala" / "src" / "main" / "scala" / "Added.scala").write_text("object Added\n")
    after = environment.jar_path()
    assert "Added.class" in zipfile.ZipFile(after).namelist()
    assert environment.jar_path(env=without_java()) == after  # in step again


def test_jar_that_cannot_be_built_says_why(checkout: Path, environment: Environment) -> None:
    shutil.rmtree(checkout / "python" / "safetensors_spark" / "jars")
    script = "import safetensors_spark; safetensors_spark.jar_path()"
    failed = run(environment.program("python"), "-c", script, env=without_java())
    assert failed.returncode == 1
    assert "A JDK 17 or newer is needed, but PATH has no java" in failed.stderr
    assert failed.stderr.splitlines()[-1].startswith("RuntimeError: The jar of this checkout could not be built")


def test_install_without_its_jar_says_how_to_mend_it(unpacked: Path, environment: Environment) -> None:
    environment.pip("install", unpacked, env=without_java())
    environment.jar_path(env=without_java()).unlink()
    failed = run(environment.program("safetensors-spark"), "jar-path", env=without_java())
    assert failed.returncode != 0
    assert "pip install --force-reinstall --no-deps safetensors-spark" in failed.stderr
