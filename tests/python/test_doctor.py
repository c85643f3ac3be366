"""`safetensors-spark doctor` in set-ups that are broken in one way each."""

import re
import shutil
import sys
import zipfile
from importlib.metadata import distribution, metadata
from pathlib import Path

import pytest

import safetensors_spark as sts
from command import run
from safetensors_spark import _extras
from safetensors_spark._commands.cli import main
from safetensors_spark._spark import doctor
from safetensors_spark._spark.doctor import Finding


@pytest.fixture
def java(tmp_path: Path) -> "FakeJava":
    return FakeJava(tmp_path)


class FakeJava:
    """Launchers that only know `-version`."""

    def __init__(self, root: Path) -> None:
        self.root = root

    def home(self, said: str) -> str:
        """A folder for `JAVA_HOME` whose `bin/java -version` says this."""
        home = self.root / said.replace('"', "").replace(" ", "-")
        launcher = home / "bin" / "java"
        launcher.parent.mkdir(parents=True)
        launcher.write_text(f"#!/bin/sh\necho '{said}' >&2\n")
        launcher.chmod(0o755)
        return str(home)


def _command(env: dict[str, str], *python: str) -> tuple[int, str]:
    done = run("doctor", env={"JAVA_HOME": "", "SPARK_HOME": "", **env}, python=python)
    assert done.stderr == ""
    return done.returncode, done.stdout


@pytest.fixture
def site(tmp_path: Path) -> Path:
    """A folder with the package as a wheel installs it, but without its jar."""
    site = tmp_path / "site"
    package = Path(sts.__file__).parent
    shutil.copytree(package, site / package.name, ignore=shutil.ignore_patterns("jars", "__pycache__"))
    metadata = Path(str(distribution("safetensors-spark").locate_file(""))).glob("safetensors_spark-*.dist-info")
    for folder in metadata:
        shutil.copytree(folder, site / folder.name)
    return site


def _put_jar(site: Path, version: str) -> Path:
    """Gives the package a jar that says this version."""
    jar = site / "safetensors_spark" / "jars" / "connector.jar"
    jar.parent.mkdir()
    with zipfile.ZipFile(jar, "w") as archive:
        archive.writestr("META-INF/MANIFEST.MF", f"Manifest-Version: 1.0\r\nImplementation-Version: {version}\r\n")
    return jar


def _squeezed(said: str) -> str:
    """Without the spaces that line columns up."""
    return re.sub(" +", " ", said)


def _part(name: str, findings: list[Finding]) -> Finding:
    return next(finding for finding in findings if finding.name == name)


def test_all_is_well_here() -> None:
    code, said = _command({})
    assert code == 0
    assert said.endswith("Spark can use the connector here.\n")
    assert "To fix" not in said


def test_the_report_in_a_pipe_is_plain_text() -> None:
    _, said = _command({})
    assert said.isascii()
    assert "  ok  PySpark" in said


def test_no_java(tmp_path: Path) -> None:
    code, said = _command({"PATH": str(tmp_path)})
    assert code == 1
    assert "no  Java       not on the PATH, and JAVA_HOME is not set" in said
    assert "Install a JDK 17 or 21, or point JAVA_HOME at one." in said
    assert said.endswith("Spark cannot use the connector here.\n")


def test_java_home_without_java(tmp_path: Path) -> None:
    code, said = _command({"JAVA_HOME": str(tmp_path)})
    assert code == 1
    assert f"JAVA_HOME is {tmp_path}, which has no bin/java" in said
    assert "Unset JAVA_HOME, or correct it." in said


@pytest.mark.parametrize(
    ("said", "version"), [('openjdk version "11.0.25" 2024-10-15', 11), ('java version "1.8.0_412"', 8)]
)
def test_java_too_old(java: FakeJava, said: str, version: int) -> None:
    home = java.home(said)
    code, report = _command({"JAVA_HOME": home})
    assert code == 1
    assert f"no  Java       {version}, {home}/bin/java (from JAVA_HOME)" in report
    assert "no Spark in this process lacks Java" in _squeezed(report)
    assert "ok Spark Connect, as a client" in _squeezed(report)
    assert "Java Spark 4 needs Java 17 or newer. Install a JDK 17 or 21, or point JAVA_HOME" in _squeezed(report)


@pytest.mark.parametrize("said", ['openjdk version "17.0.15" 2025-04-15', 'openjdk version "21" 2023-09-19 LTS'])
def test_java_that_every_supported_spark_takes(java: FakeJava, said: str) -> None:
    assert doctor.examine_java({"JAVA_HOME": java.home(said)}, "4.0.5").ok


def test_java_too_new_for_this_spark(java: FakeJava) -> None:
    home = java.home('openjdk version "25.0.1" 2025-10-21 LTS')
    assert doctor.examine_java({"JAVA_HOME": home}, "4.3.0").ok
    found = doctor.examine_java({"JAVA_HOME": home}, "4.1.4")
    assert not found.ok
    assert "Spark 4.1.4 does not run on Java 25." in found.remedy


def test_java_home_wins_over_the_path_and_the_report_says_so(java: FakeJava) -> None:
    home, other = java.home('openjdk version "17.0.15"'), java.home('openjdk version "11.0.2"')
    found = doctor.examine_java({"JAVA_HOME": home, "PATH": f"{other}/bin"}, "4.1.4")
    assert found.ok
    assert found.found == f"17, {home}/bin/java (from JAVA_HOME); the PATH has 11, which Spark does not take"


def test_java_that_does_not_run(tmp_path: Path) -> None:
    launcher = tmp_path / "java"
    launcher.write_text("#!/bin/sh\nexit 1\n")
    launcher.chmod(0o755)
    found = doctor.examine_java({"PATH": str(tmp_path)}, "4.1.4")
    assert (found.ok, found.found) == (False, f"{launcher} (from PATH) does not run")


@pytest.mark.parametrize("version", ["3.5.6", "4.4.0", "5.0.0"])
def test_a_pyspark_that_is_not_supported(tmp_path: Path, version: str) -> None:
    (tmp_path / "pyspark").mkdir()
    (tmp_path / "pyspark" / "__init__.py").write_text(f"__version__ = {version!r}\n")
    code, said = _command({"PYTHONPATH": str(tmp_path)})
    assert code == 1
    assert f"no  PySpark    {version}\n" in said
    assert 'The connector supports 4.0 to 4.3: pip install "pyspark==4.3.*"' in said


def test_no_pyspark(site: Path) -> None:
    _put_jar(site, sts.__version__)
    code, said = _command({"PYTHONPATH": str(site)}, "-S")  # without site-packages
    assert code == 1
    assert "no  PySpark    not installed" in said
    assert "no Spark in this process lacks PySpark, Spark" in _squeezed(said)
    assert 'PySpark pip install "safetensors-spark[spark]"' in _squeezed(said)


def test_a_spark_home_of_another_version(tmp_path: Path) -> None:
    (tmp_path / "jars").mkdir()
    (tmp_path / "jars" / "spark-core_2.13-4.0.1.jar").touch()
    found = doctor.examine_spark_home({"SPARK_HOME": str(tmp_path)}, "4.1.4")
    assert (found.ok, found.found) == (False, f"4.0.1 in {tmp_path}, but PySpark is 4.1.4")
    assert found.remedy.startswith("Unset SPARK_HOME")


def test_a_spark_home_without_spark(tmp_path: Path) -> None:
    found = doctor.examine_spark_home({"SPARK_HOME": str(tmp_path)}, "4.1.4")
    assert (found.ok, found.found) == (False, f"no Spark in {tmp_path}")


def test_a_jar_of_another_version(site: Path) -> None:
    jar = _put_jar(site, "9.9.9")
    code, said = _command({"PYTHONPATH": str(site)})
    assert code == 1
    assert f"no  Connector  {jar} is 9.9.9, but the package is {sts.__version__}" in said
    assert "pip install --force-reinstall --no-deps safetensors-spark" in said


def test_no_jar(site: Path) -> None:
    code, said = _command({"PYTHONPATH": str(site)})
    assert code == 1
    assert f"no  Connector  {site / 'safetensors_spark' / 'jars'} holds no jar: the installation is damaged." in said
    assert "no Spark Connect, as a client lacks Connector" in _squeezed(said)
    assert "pip install --force-reinstall --no-deps safetensors-spark" in said


def test_what_does_not_work_names_what_it_lacks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "grpc", None)
    connect = _part("Spark Connect, as a client", doctor.examine().uses)
    assert (connect.ok, connect.found, connect.remedy) == (False, "lacks grpc", 'pip install "pyspark[connect]"')


def test_every_extra_is_known() -> None:
    provided = metadata("safetensors-spark").get_all("Provides-Extra")
    assert {extra.name for extra in _extras.EXTRAS} == set(provided or ())


def test_an_extra_that_is_not_installed_is_shown_with_its_command(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setitem(sys.modules, "fsspec", None)
    main(["doctor"])
    said = capsys.readouterr().out
    (line,) = [line for line in said.splitlines() if "datasets at URLs" in line]
    assert line.split()[:2] == ["no", "remote"]
    assert line.endswith('pip install "safetensors-spark[remote]"')
