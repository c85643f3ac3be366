"""The jars of HDFS's servers and of S3A, of the Hadoop version that this PySpark brings; sbt fetches them."""

from pathlib import Path

import pyspark

from sbt import ROOT, classpath

SPARK_JARS = Path(pyspark.__file__).parent / "jars"


def hadoop_version() -> str:
    [jar] = SPARK_JARS.glob("hadoop-client-api-*.jar")
    return jar.stem.removeprefix("hadoop-client-api-")


def filesystem_jars() -> list[Path]:
    """What PySpark lacks; the list is kept for the next run, as sbt takes its time to start."""
    version = hadoop_version()
    kept = ROOT / "project" / "filesystems" / "target" / f"{version}.classpath"
    jars = [Path(name) for name in kept.read_text().splitlines()] if kept.exists() else []
    fresh = jars and kept.stat().st_mtime > (ROOT / "build.sbt").stat().st_mtime
    if not (fresh and all(jar.exists() for jar in jars)):
        found = classpath("filesystems/Runtime/dependencyClasspath", f"-DhadoopVersion={version}")
        jars = [path for path in found if path.suffix == ".jar"]
        kept.parent.mkdir(parents=True, exist_ok=True)
        kept.write_text("\n".join(map(str, jars)))
    return jars
