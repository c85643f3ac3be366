"""`project/sbt.py`: what a machine sees that lacks a JDK, or sbt, or the network."""

import hashlib
import os
import sys
from pathlib import Path
from urllib.error import URLError

import pytest

import sbt

from .environment import ROOT, run, without_java

INSTALL = (
    "install one (Debian: apt install openjdk-17-jdk-headless; macOS: brew install openjdk@17) and set JAVA_HOME to it."
)


def program(folder: Path, name: str, prints: str = "") -> Path:
    """An executable that prints to standard error, as `java -version` does."""
    folder.mkdir(parents=True, exist_ok=True)
    file = folder / name
    file.write_text(f"#!/bin/sh\ncat >&2 <<'END'\n{prints}\nEND\n")
    file.chmod(0o755)
    return file


def refusal(**environment: str) -> str:
    """The one line that sbt.py prints when it refuses to go on."""
    refused = run(sys.executable, ROOT / "project" / "sbt.py", "package", env=without_java(**environment))
    assert refused.returncode == 1
    assert refused.stdout == ""
    assert refused.stderr.count("\n") == 1
    return refused.stderr.rstrip("\n")


def test_no_java_is_one_line() -> None:
    assert refusal() == f"A JDK 17 or newer is needed, but PATH has no java: {INSTALL}"


def test_java_home_without_java_is_one_line(tmp_path: Path) -> None:
    home = f"JAVA_HOME={tmp_path}"
    assert refusal(JAVA_HOME=str(tmp_path)) == f"A JDK 17 or newer is needed, but {home} has no java: {INSTALL}"


@pytest.mark.parametrize(
    ("said", "version"),
    [('openjdk version "11.0.28" 2025-07-15', 11), ('java version "1.8.0_292"', 8), ('openjdk version "16"', 16)],
)
def test_old_java_is_one_line_that_tells_its_version(tmp_path: Path, said: str, version: int) -> None:
    java = program(tmp_path, "java", prints=said)
    path = os.pathsep.join([str(tmp_path), "/bin"])
    assert refusal(PATH=path) == f"A JDK 17 or newer is needed, but {java} (PATH) is Java {version}: {INSTALL}"


def test_java_home_goes_before_the_path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    home = program(tmp_path / "home" / "bin", "java", prints='openjdk version "21.0.8"')
    monkeypatch.setenv("JAVA_HOME", str(tmp_path / "home"))
    assert sbt.java() == str(home)


def test_sbt_of_the_path_is_used(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    mine = program(tmp_path, "sbt")
    monkeypatch.setenv("PATH", str(tmp_path), prepend=os.pathsep)
    assert sbt.command(["-DsparkVersion=4.0.1", "test"]) == [str(mine), "-J-Xmx1500m", "-DsparkVersion=4.0.1", "test"]


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A project whose launcher has the bytes `launcher`, not downloaded yet."""
    (tmp_path / "project").mkdir()
    checksum = hashlib.sha256(b"launcher").hexdigest()
    (tmp_path / "project" / "build.properties").write_text(f"sbt.version=1.2.3\nsbt.launch.sha256={checksum}\n")
    monkeypatch.setattr(sbt, "ROOT", tmp_path)
    return tmp_path


def test_launcher_is_downloaded_once(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    urls: list[str] = []

    def download(url: str) -> bytes:
        urls.append(url)
        return b"launcher"

    monkeypatch.setattr(sbt, "_download", download)
    assert sbt.launcher().read_bytes() == b"launcher"
    assert sbt.launcher() == project / ".tools" / "sbt-launch-1.2.3.jar"
    assert urls == [f"{sbt.MAVEN_CENTRAL}/org/scala-sbt/sbt-launch/1.2.3/sbt-launch-1.2.3.jar"]


def test_launcher_with_another_checksum_is_not_used(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sbt, "_download", lambda _: b"something else")
    with pytest.raises(
        sbt.SbtError, match=r"sbt-launch-1\.2\.3\.jar has SHA-256 f41f3fa.*, but project/build\.properties"
    ):
        sbt.launcher()
    assert not (project / ".tools").exists()


def test_no_network_is_one_line(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def unreachable(*_: object, **__: object) -> None:
        raise URLError("Name or service not known")

    monkeypatch.setattr("urllib.request.urlopen", unreachable)
    with pytest.raises(sbt.SbtError, match=r"^Cannot fetch sbt from .*: install sbt, or check the network\.$"):
        sbt.launcher()
    assert not (project / ".tools").exists()
