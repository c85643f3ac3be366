"""The jars of HDFS's servers and of S3A, of the Hadoop version that this PySpark brings.

`PYTHONPATH=project python tests/pyspark_interop/filesystem_jars.py` has sbt fetch them, unless they are there: before
the tests, as two sbt in one clone disturb each other.
"""

from pathlib import Path

import pyspark

from sbt import ROOT, classpath

SPARK_JARS = Path(pyspark.__file__).parent / "jars"


def hadoop_version() -> str:
    [jar] = SPARK_JARS.glob("hadoop-client-api-*.jar")
    return jar.stem.removeprefix("hadoop-client-api-")


def listed() -> Path:
    """The file that lists what PySpark lacks."""
    return ROOT / "project" / "filesystems" / "target" / f"{hadoop_version()}.classpath"


def filesystem_jars() -> list[Path]:
    file = listed()
    jars = [Path(name) for name in file.read_text().splitlines()] if file.exists() else []
    fresh = jars and file.stat().st_mtime > (ROOT / "build.sbt").stat().st_mtime
    if not (fresh and all(jar.exists() for jar in jars)):
        raise FileNotFoundError(
            f"The jars of HDFS and S3A are missing. Run `PYTHONPATH=project python {__file__}` first."
        )
    return jars


def fetch() -> None:
    file = listed()
    found = classpath("filesystems/Runtime/dependencyClasspath", f"-DhadoopVersion={hadoop_version()}")
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text("\n".join(str(path) for path in found if path.suffix == ".jar"))


if __name__ == "__main__":
    try:
        filesystem_jars()
    except FileNotFoundError:
        fetch()
