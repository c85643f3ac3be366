import zipfile
from pathlib import Path

from .conftest import Distributions
from .environment import Environment, run, without_java
from .test_wheel import JAR


def test_sdist_installs_without_java(built: Distributions, environment: Environment) -> None:
    environment.pip("install", built.sdist, env=without_java())
    jar = environment.jar_path(env=without_java())
    assert jar.is_relative_to(environment.folder)
    assert jar.read_bytes() == zipfile.ZipFile(built.wheel).read(JAR)


def test_sdist_with_changed_scala_sources_says_that_it_needs_java(unpacked: Path, environment: Environment) -> None:
    (unpacked / "scala" / "src" / "main" / "scala" / "Added.scala").write_text("object Added\n")
    install = run(environment.program("python"), "-m", "pip", "install", unpacked, env=without_java())
    assert install.returncode == 1
    assert "A JDK 17 or newer is needed, but PATH has no java" in install.stdout + install.stderr
