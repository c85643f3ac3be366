"""The jars of HDFS's servers and of S3A, of the Hadoop version that this PySpark brings; sbt fetches them."""

import re
import subprocess
from pathlib import Path

import pyspark

from sbt import ROOT, command

SPARK_JARS = Path(pyspark.__file__).parent / "jars"


def hadoop_version() -> str:
    [jar] = SPARK_JARS.glob("hadoop-client-api-*.jar")
    return jar.stem.removeprefix("hadoop-client-api-")


def filesystem_jars() -> list[Path]:
    """What PySpark lacks; the list is kept for the next run, as sbt takes its time to start."""
    version = hadoop_version()
    kept = ROOT / "project" / "filesystems" / "target" / f"{version}.classpath"
    jars = _listed(kept.read_text()) if kept.exists() else []
    fresh = jars and kept.stat().st_mtime > (ROOT / "build.sbt").stat().st_mtime
    if not (fresh and all(jar.exists() for jar in jars)):
        sbt = command([f"-DhadoopVersion={version}", "export filesystems/Runtime/dependencyClasspath"])
        run = subprocess.run(sbt, cwd=ROOT, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False)
        assert run.returncode == 0, run.stdout + run.stderr
        jars = _listed(run.stdout)
        kept.parent.mkdir(parents=True, exist_ok=True)
        kept.write_text("\n".join(map(str, jars)))
    return jars


def _listed(text: str) -> list[Path]:
    return [Path(name) for name in re.split(r"[:\s]", text) if name.endswith(".jar")]
