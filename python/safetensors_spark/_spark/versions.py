"""Whether the package, its jar and Spark fit each other."""

from __future__ import annotations

import re
from collections.abc import Iterable
from importlib.metadata import version

from safetensors_spark._errors import IncompatibleVersionError

SUPPORTED_SPARK = ((4, 0), (4, 3))
_JAR_NAME = re.compile(r"safetensors-spark_2\.\d+-([^/]+)\.jar")


def package() -> str:
    """The version of this package."""
    return version("safetensors-spark")


def line(spark: str) -> tuple[int, ...]:
    """The release line: (4, 1) of 4.1.4."""
    return tuple(map(int, re.findall(r"\d+", spark)[:2]))


def supported() -> tuple[str, str]:
    """The first and the last Spark that the connector is tested with."""
    lowest, highest = (".".join(map(str, release)) for release in SUPPORTED_SPARK)
    return lowest, highest


def check_spark(spark: str) -> None:
    """Raise `IncompatibleVersionError` for a Spark that is too old. A newer one than was tested may do."""
    if line(spark) < SUPPORTED_SPARK[0]:
        lowest, highest = supported()
        raise IncompatibleVersionError(
            f"This is Spark {spark}, but safetensors-spark {package()} is for Spark {lowest} to {highest}, which has "
            f'Scala 2.13. Run it on one of these; for PySpark: pip install "pyspark=={highest}.*"'
        )


def check_jar(found: str | None, where: str = "that Spark has") -> None:
    """Raise `IncompatibleVersionError` if the jar that Spark has is of another version than this package."""
    if found == package():
        return
    install = f', or install the package that fits it: pip install "safetensors-spark=={found}"' if found else ""
    raise IncompatibleVersionError(
        f"The connector's jar {where} is {found or 'of an unknown version'}, but the package safetensors-spark is "
        f"{package()}. Take that jar away from where Spark finds it (`spark.jars`, `--jars`, `spark-defaults.conf`, "
        "Spark's folder `jars`), and restart Spark with the package's own: "
        f'--jars "$(safetensors-spark jar-path)"{install}'
    )


def check_named(jars: Iterable[str]) -> None:
    """Raise `IncompatibleVersionError` if one of the jars is, by its name, the connector's of another version."""
    for jar in jars:
        if named := _JAR_NAME.search(jar):
            check_jar(named[1], jar)
