"""Questions and requests to the JVM of a classic session: the only module that speaks Py4J."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_EXTENSIONS = "io.github.semyonsinchenko.safetensors.SafetensorsExtensions"


def runs() -> bool:
    """Whether this process has a JVM: from an earlier session, or because `spark-submit` started it."""
    from pyspark import SparkContext

    return SparkContext._gateway is not None or "PYSPARK_GATEWAY_PORT" in os.environ


def has_connector() -> bool:
    """Whether that JVM finds the connector's classes: it was started with the jar, or the active session has it."""
    from pyspark import SparkContext
    from pyspark.sql import SparkSession

    SparkContext._ensure_initialized()
    active = SparkSession.getActiveSession()
    if active is not None:
        return session_has_connector(active)
    jvm: Any = SparkContext._jvm
    return _loads(jvm.java.lang.Thread.currentThread().getContextClassLoader())


def setting(name: str) -> str | None:
    """A setting of the active session, or one that this process's JVM was started with."""
    from pyspark import SparkContext
    from pyspark.sql import SparkSession

    active = SparkSession.getActiveSession()
    if active is not None:
        return active.conf.get(name, None)
    SparkContext._ensure_initialized()
    jvm: Any = SparkContext._jvm
    return jvm.java.lang.System.getProperty(name)  # type: ignore[no-any-return]


def session_has_connector(spark: SparkSession) -> bool:
    """Whether this classic session finds the connector's classes."""
    return _loads(_session_loader(spark))


def connector_jar(spark: SparkSession) -> tuple[str | None, str]:
    """The version and the place of the jar from which this classic session has the connector."""
    extensions: Any = _session_loader(spark).loadClass(_EXTENSIONS)
    place = extensions.getProtectionDomain().getCodeSource().getLocation().toString()
    return extensions.getPackage().getImplementationVersion(), place


def register_functions(spark: SparkSession) -> None:
    """Register the SQL functions with a classic session that has the jar."""
    extensions: Any = _session_loader(spark).loadClass(_EXTENSIONS)
    gateway: Any = spark.sparkContext._gateway
    constructor = extensions.getConstructor(gateway.new_array(gateway.jvm.java.lang.Class, 0))
    constructor.newInstance(gateway.new_array(gateway.jvm.java.lang.Object, 0)).register(spark._jsparkSession)


def _session_loader(spark: SparkSession) -> Any:
    # Not the thread's loader: what `ADD JAR` brings belongs to the session.
    return spark._jsparkSession.artifactManager().classloader()


def _loads(loader: Any) -> bool:
    from py4j.protocol import Py4JJavaError  # type: ignore[import-untyped]

    try:
        loader.loadClass(_EXTENSIONS)
    except Py4JJavaError:
        return False
    return True
