"""Run sbt, fetched from Maven Central when this machine has none.

python project/sbt.py <sbt arguments>
python project/sbt.py --check-java       only tell, in one line, if the JDK will not do
"""

from __future__ import annotations

import hashlib
import os
import re
import shutil
import subprocess
import sys
import urllib.request
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
MAVEN_CENTRAL = "https://repo1.maven.org/maven2"
OLDEST_JAVA = 17
HEAP = "-Xmx1500m"


class SbtError(Exception):
    """What keeps sbt from running, said in one line."""


def java() -> str:
    """The `java` of JAVA_HOME, else of PATH. Raises SbtError when there is none, or one too old for Spark 4."""
    home = os.environ.get("JAVA_HOME")
    found = shutil.which("java", path=str(Path(home, "bin"))) if home else shutil.which("java")
    place = f"JAVA_HOME={home}" if home else "PATH"
    if found is None:
        raise SbtError(_install_java(f"{place} has no java"))
    version = _java_version(found)
    if version is None:
        raise SbtError(_install_java(f"{found} ({place}) does not tell its version"))
    if version < OLDEST_JAVA:
        raise SbtError(_install_java(f"{found} ({place}) is Java {version}"))
    return found


def _java_version(program: str) -> int | None:
    printed = subprocess.run([program, "-version"], capture_output=True, text=True, check=False).stderr
    version = re.search(r'version "(?:1\.)?(\d+)', printed)
    return int(version[1]) if version else None


def _install_java(found: str) -> str:
    return (
        f"A JDK {OLDEST_JAVA} or newer is needed, but {found}: install one (Debian: apt install "
        f"openjdk-{OLDEST_JAVA}-jdk-headless; macOS: brew install openjdk@{OLDEST_JAVA}) and set JAVA_HOME to it."
    )


def launcher() -> Path:
    """The sbt launcher that project/build.properties names, in `.tools`; fetched and checked when it is not there."""
    properties = _properties()
    name = f"sbt-launch-{properties['sbt.version']}.jar"
    target = ROOT / ".tools" / name
    if not target.exists():
        url = f"{MAVEN_CENTRAL}/org/scala-sbt/sbt-launch/{properties['sbt.version']}/{name}"
        content = _download(url)
        actual, expected = hashlib.sha256(content).hexdigest(), properties["sbt.launch.sha256"]
        if actual != expected:
            raise SbtError(f"{url} has SHA-256 {actual}, but project/build.properties expects {expected}: not used.")
        _write_whole(target, content)
    return target


def _properties() -> dict[str, str]:
    lines = (ROOT / "project" / "build.properties").read_text().splitlines()
    return dict(line.split("=", 1) for line in lines if "=" in line and not line.startswith("#"))


def _download(url: str) -> bytes:
    try:
        with urllib.request.urlopen(url, timeout=120) as response:
            content: bytes = response.read()
            return content
    except OSError as error:
        raise SbtError(f"Cannot fetch sbt from {url} ({error}): install sbt, or check the network.") from error


def _write_whole(target: Path, content: bytes) -> None:
    """So that a run that is cut short, or another at the same time, leaves no half file."""
    target.parent.mkdir(exist_ok=True)
    part = target.with_suffix(f".{os.getpid()}")
    part.write_bytes(content)
    part.replace(target)


def command(arguments: list[str]) -> list[str]:
    """The command line that runs sbt with `arguments`. Raises SbtError when it cannot run here."""
    program = java()
    installed = shutil.which("sbt")
    if installed:
        return [installed, f"-J{HEAP}", *arguments]
    # The launcher takes no JVM options after its own name.
    options = [argument for argument in arguments if argument.startswith("-D")]
    rest = [argument for argument in arguments if not argument.startswith("-D")]
    return [program, HEAP, *options, "-jar", str(launcher()), *rest]


def classpath(key: str, *options: str) -> list[Path]:
    """The jars and directories of one of the build's class paths, compiled and fetched if need be."""
    # Where the variable CI is set, sbt writes control characters, into a pipe too.
    arguments = command([*options, "-Dsbt.color=false", "-Dsbt.supershell=false", f"export {key}"])
    run = subprocess.run(arguments, cwd=ROOT, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False)
    if run.returncode != 0:
        raise SbtError(f"sbt cannot tell {key}:\n{run.stdout}{run.stderr}")
    return [Path(name) for name in run.stdout.strip().splitlines()[-1].split(os.pathsep)]


def main() -> int:
    arguments = sys.argv[1:]
    try:
        if arguments == ["--check-java"]:
            java()
            return 0
        return subprocess.run(command(arguments), cwd=ROOT, check=False).returncode
    except SbtError as error:
        print(error, file=sys.stderr)
        return 1


if __name__ == "__main__":
    sys.exit(main())
