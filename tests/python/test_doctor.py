"""`safetensors-spark doctor` in set-ups that are broken in one way each."""

import sys
import zipfile
from pathlib import Path

import pytest

from command import run
from safetensors_spark import _doctor
from safetensors_spark._doctor import Finding


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


def _command(env: dict[str, str]) -> tuple[int, str]:
    done = run("doctor", env={"JAVA_HOME": "", "SPARK_HOME": "", **env})
    assert done.stderr == ""
    return done.returncode, done.stdout


def _part(name: str, findings: list[Finding]) -> Finding:
    return next(finding for finding in findings if finding.name == name)


def test_all_is_well_here() -> None:
    code, said = _command({})
    assert code == 0
    assert said.endswith("Spark can use the connector here.\n")
    assert "To mend" not in said


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


@pytest.mark.parametrize("said", ['openjdk version "11.0.25" 2024-10-15', 'java version "1.8.0_412"'])
def test_java_too_old(java: FakeJava, said: str) -> None:
    found = _doctor.examine_java({"JAVA_HOME": java.home(said)}, "4.1.4")
    assert not found.ok
    assert "Spark 4 needs Java 17 or newer." in found.mend


@pytest.mark.parametrize("said", ['openjdk version "17.0.15" 2025-04-15', 'openjdk version "21" 2023-09-19 LTS'])
def test_java_that_every_supported_spark_takes(java: FakeJava, said: str) -> None:
    assert _doctor.examine_java({"JAVA_HOME": java.home(said)}, "4.0.5").ok


def test_java_too_new_for_this_spark(java: FakeJava) -> None:
    home = java.home('openjdk version "25.0.1" 2025-10-21 LTS')
    assert _doctor.examine_java({"JAVA_HOME": home}, "4.3.0").ok
    found = _doctor.examine_java({"JAVA_HOME": home}, "4.1.4")
    assert not found.ok
    assert "Spark 4.1.4 does not run on Java 25." in found.mend


def test_java_home_wins_over_the_path_and_the_report_says_so(java: FakeJava) -> None:
    home, other = java.home('openjdk version "17.0.15"'), java.home('openjdk version "11.0.2"')
    found = _doctor.examine_java({"JAVA_HOME": home, "PATH": f"{other}/bin"}, "4.1.4")
    assert found.ok
    assert found.found == f"17, {home}/bin/java (from JAVA_HOME); the PATH has 11, which Spark does not take"


def test_java_that_does_not_run(tmp_path: Path) -> None:
    launcher = tmp_path / "java"
    launcher.write_text("#!/bin/sh\nexit 1\n")
    launcher.chmod(0o755)
    found = _doctor.examine_java({"PATH": str(tmp_path)}, "4.1.4")
    assert (found.ok, found.found) == (False, f"{launcher} (from PATH) does not run")


@pytest.mark.parametrize("version", ["3.5.6", "4.4.0", "5.0.0"])
def test_a_pyspark_that_is_not_supported(tmp_path: Path, version: str) -> None:
    (tmp_path / "pyspark").mkdir()
    (tmp_path / "pyspark" / "__init__.py").write_text(f"__version__ = {version!r}\n")
    code, said = _command({"PYTHONPATH": str(tmp_path)})
    assert code == 1
    assert f"no  PySpark    {version}\n" in said
    assert 'The connector supports 4.0 to 4.3: pip install "pyspark==4.3.*"' in said


def test_no_pyspark(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pyspark", None)
    diagnosis = _doctor.examine({})
    pyspark = _part("PySpark", diagnosis.parts)
    assert (pyspark.found, pyspark.mend) == ("not installed", 'pip install "safetensors-spark[spark]"')
    assert not diagnosis.spark_works


def test_a_spark_home_of_another_version(tmp_path: Path) -> None:
    (tmp_path / "jars").mkdir()
    (tmp_path / "jars" / "spark-core_2.13-4.0.1.jar").touch()
    found = _doctor.examine_spark_home({"SPARK_HOME": str(tmp_path)}, "4.1.4")
    assert (found.ok, found.found) == (False, f"4.0.1 in {tmp_path}, but PySpark is 4.1.4")
    assert found.mend.startswith("Unset SPARK_HOME")


def test_a_spark_home_without_spark(tmp_path: Path) -> None:
    found = _doctor.examine_spark_home({"SPARK_HOME": str(tmp_path)}, "4.1.4")
    assert (found.ok, found.found) == (False, f"no Spark in {tmp_path}")


def test_a_jar_of_another_version(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    jar = tmp_path / "other.jar"
    with zipfile.ZipFile(jar, "w") as archive:
        archive.writestr("META-INF/MANIFEST.MF", "Manifest-Version: 1.0\r\nImplementation-Version: 9.9.9\r\n")
    monkeypatch.setattr(_doctor, "jar_path", lambda: str(jar))
    found = _doctor.examine_jar()
    assert not found.ok
    assert found.found.startswith(f"{jar} is 9.9.9, but the package is ")
    assert found.mend == "pip install --force-reinstall --no-deps safetensors-spark"


def test_no_jar(monkeypatch: pytest.MonkeyPatch) -> None:
    def jar_path() -> str:
        raise FileNotFoundError("jars holds no jar")

    monkeypatch.setattr(_doctor, "jar_path", jar_path)
    assert _doctor.examine_jar().found == "jars holds no jar"


def test_what_does_not_work_names_what_it_lacks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "grpc", None)
    connect = _part("Spark Connect, as a client", _doctor.examine().uses)
    assert (connect.ok, connect.found, connect.mend) == (False, "lacks grpc", 'pip install "pyspark[connect]"')
