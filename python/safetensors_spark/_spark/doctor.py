"""What Spark needs to use the connector, what of it is here, and how to fix the rest."""

from __future__ import annotations

import os
import re
import zipfile
from collections.abc import Mapping
from dataclasses import dataclass
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path

from safetensors_spark import _extras
from safetensors_spark._errors import SafetensorsSparkError
from safetensors_spark._spark import versions
from safetensors_spark._spark.jar import jar_path
from safetensors_spark._spark.java import Java, find_java, java_on_path

_INSTALL_SPARK = 'pip install "safetensors-spark[spark]"'


@dataclass(frozen=True)
class Finding:
    """Something that was looked at: is it well, what was seen, what to do about it."""

    name: str
    ok: bool
    found: str
    remedy: str = ""


@dataclass(frozen=True)
class Diagnosis:
    """The parts that Spark needs, the uses that they allow, and the extras of this package."""

    parts: list[Finding]
    uses: list[Finding]
    extras: list[Finding]

    @property
    def findings(self) -> list[Finding]:
        return self.parts + self.uses

    @property
    def spark_works(self) -> bool:
        return all(part.ok for part in self.parts)


def examine(env: Mapping[str, str] = os.environ) -> Diagnosis:
    """Look at everything. Starts no JVM but for `java -version`."""
    spark = _pyspark_version()
    parts = [examine_java(env, spark), examine_pyspark(spark), examine_spark_home(env, spark), examine_jar()]
    return Diagnosis(parts, _uses(parts), [_extra(extra) for extra in _extras.EXTRAS])


def require_spark() -> None:
    """Raise `SafetensorsSparkError`, which says what to fix, if Spark cannot use the connector here."""
    ill = [part for part in examine().parts if not part.ok]
    if ill:
        lines = (f"    {part.name}: {part.found}. {part.remedy}" for part in ill)
        raise SafetensorsSparkError("\n".join(["Spark cannot use the connector here.", *lines]))


def examine_java(env: Mapping[str, str], spark: str | None) -> Finding:
    """Whether the Java that Spark would start can run it."""
    java = find_java(env)
    install = "Install a JDK 17 or 21, or point JAVA_HOME at one."
    if java is None and (home := env.get("JAVA_HOME")):
        return Finding("Java", False, f"JAVA_HOME is {home}, which has no bin/java", "Unset JAVA_HOME, or correct it.")
    if java is None:
        return Finding("Java", False, "not on the PATH, and JAVA_HOME is not set", install)
    where = f"{java.path} (from {java.origin})"
    if java.version is None:
        return Finding("Java", False, f"{where} does not run", install)
    found = f"{java.version}, {where}{_shadowed(env, java)}"
    if java.version < 17:
        return Finding("Java", False, found, f"Spark 4 needs Java 17 or newer. {install}")
    if java.version >= 23 and spark is not None and versions.line(spark) < (4, 2):
        return Finding("Java", False, found, f"Spark {spark} does not run on Java {java.version}. {install}")
    return Finding("Java", True, found)


def _shadowed(env: Mapping[str, str], used: Java) -> str:
    other = java_on_path(env)
    if other is None or other.version == used.version:
        return ""
    return f"; the PATH has {other.version}, which Spark does not take"


def examine_pyspark(spark: str | None) -> Finding:
    """Whether PySpark is installed, in a version that the connector is tested with."""
    if spark is None:
        return Finding("PySpark", False, "not installed", _INSTALL_SPARK)
    if versions.SUPPORTED_SPARK[0] <= versions.line(spark) <= versions.SUPPORTED_SPARK[1]:
        return Finding("PySpark", True, spark)
    lowest, highest = versions.supported()
    remedy = f'The connector supports {lowest} to {highest}: pip install "pyspark=={highest}.*"'
    return Finding("PySpark", False, spark, remedy)


def examine_spark_home(env: Mapping[str, str], spark: str | None) -> Finding:
    """Whether there is a Spark to start, and whether it is the one that PySpark speaks to."""
    home = env.get("SPARK_HOME") or _package_folder("pyspark")
    jars = [jar.name for jar in Path(home or os.devnull, "jars").glob("spark-core_*.jar")]
    unset = "Unset SPARK_HOME, or point it at the Spark that PySpark belongs to."
    if not jars:
        remedy = unset if "SPARK_HOME" in env else _INSTALL_SPARK
        return Finding("Spark", False, f"no Spark in {home}" if home else "not installed", remedy)
    found = jars[0].removesuffix(".jar").split("-")[-1]
    if spark is not None and versions.line(found) != versions.line(spark):
        return Finding("Spark", False, f"{found} in {home}, but PySpark is {spark}", unset)
    return Finding("Spark", True, f"{found}, {home}")


def examine_jar() -> Finding:
    """Whether the connector's jar is in the package, and of its version."""
    reinstall = "pip install --force-reinstall --no-deps safetensors-spark"
    package = versions.package()
    try:
        path = jar_path()
        built = _jar_version(path)
    except Exception as error:  # whatever is wrong with the jar is what the user came to hear
        return Finding("Connector", False, str(error), reinstall)
    if built != package:
        return Finding("Connector", False, f"{path} is {built}, but the package is {package}", reinstall)
    return Finding("Connector", True, f"{built}, {path}")


def _uses(parts: list[Finding]) -> list[Finding]:
    remote = [part for part in parts if part.name in ("PySpark", "Connector")]  # the server has Java and Spark
    return [
        _use("Spark in this process", parts, [], ""),
        _use("Spark Connect, as a client", remote, _extras.not_installed(_extras.CONNECT), "pyspark[connect]"),
    ]


def _use(name: str, needs: list[Finding], missing: list[str], extra: str) -> Finding:
    """A use that needs these parts, and the modules of which some are missing."""
    lacks = [need.name for need in needs if not need.ok] + missing
    remedy = f'pip install "{extra}"' if missing else ""
    return Finding(name, not lacks, f"lacks {', '.join(lacks)}" if lacks else "", remedy)


def _extra(extra: _extras.Extra) -> Finding:
    """Whether the modules of an extra are there, and what it enables."""
    lacks = _extras.not_installed(extra.modules)
    return Finding(
        extra.name, not lacks, extra.enables, f'pip install "safetensors-spark[{extra.name}]"' if lacks else ""
    )


def _pyspark_version() -> str | None:
    try:
        return str(import_module("pyspark").__version__)
    except Exception:  # a PySpark that does not import is no PySpark
        return None


def _package_folder(name: str) -> str | None:
    spec = find_spec(name)
    return str(Path(spec.origin).parent) if spec and spec.origin else None


def _jar_version(path: str) -> str:
    manifest = zipfile.ZipFile(path).read("META-INF/MANIFEST.MF").decode()
    match = re.search(r"^Implementation-Version: (\S+)", manifest, re.MULTILINE)
    return match[1] if match else "of an unknown version"
