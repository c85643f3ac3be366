"""Build the connector's jar into the Python package when its sources changed, and print its path.

python project/jar.py
"""

from __future__ import annotations

import hashlib
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

from sbt import ROOT, SbtError, command

JARS = ROOT / "python" / "safetensors_spark" / "jars"
SOURCES = ("VERSION", "build.sbt", "project/build.properties", "project/plugins.sbt", "scala/src/main")


def jar() -> Path:
    """The packaged jar, in step with its sources. Raises SbtError when it cannot be built."""
    version = (ROOT / "VERSION").read_text().strip()
    target = JARS / f"safetensors-spark_2.13-{version}.jar"
    stamp = target.with_suffix(".sources.sha256")
    fingerprint = sources_fingerprint()
    if not (target.exists() and stamp.exists() and stamp.read_text() == fingerprint):
        _build(target)
        stamp.write_text(fingerprint)
    return target


def sources_fingerprint() -> str:
    """SHA-256 over the names and contents of all that the jar is made from."""
    digest = hashlib.sha256()
    for file in _source_files():
        content = file.read_bytes()
        digest.update(f"{file.relative_to(ROOT).as_posix()} {len(content)}\n".encode())
        digest.update(content)
    return digest.hexdigest()


def _source_files() -> Iterator[Path]:
    for source in SOURCES:
        path = ROOT / source
        yield from sorted(file for file in path.rglob("*") if file.is_file()) if path.is_dir() else [path]


def _build(target: Path) -> None:
    print("Building the jar with sbt: about a minute the first time.", file=sys.stderr, flush=True)
    sbt = command(["connector/package"])
    # Standard output carries only the jar's path.
    if subprocess.run(sbt, cwd=ROOT, stdin=subprocess.DEVNULL, stdout=sys.stderr, check=False).returncode != 0:
        raise SbtError("sbt could not build the jar: see what it printed above.")
    shutil.rmtree(JARS, ignore_errors=True)
    JARS.mkdir()
    shutil.copyfile(ROOT / "scala" / "target" / "scala-2.13" / target.name, target)


def main() -> int:
    try:
        print(jar())
        return 0
    except SbtError as error:
        print(error, file=sys.stderr)
        return 1


if __name__ == "__main__":
    sys.exit(main())
