"""Bring the connector's jar into a Spark session: one to be built, or one that runs."""

from __future__ import annotations

import os
import warnings
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from safetensors_spark._spark import connect, jar_settings, jvm, versions
from safetensors_spark._spark.jar import jar_path

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

FUNCTIONS = ("arr_to_st", "st_to_array", "st_to_array_double", "st_to_array_long", "st_show")

# Tables by path, as in SELECT * FROM safetensors.`/data/points`.
CATALOG = "spark.sql.catalog.safetensors"
CATALOG_CLASS = "io.github.semyonsinchenko.safetensors.SafetensorsCatalog"

_SUBMIT_ARGS = "PYSPARK_SUBMIT_ARGS"


def configure(builder: SparkSession.Builder) -> SparkSession.Builder:
    """Add the connector's jar and catalog to a session before it is built, and return the builder.

        spark = configure(SparkSession.builder.master("local[2]")).getOrCreate()

    Jars that you named are kept, whether on the builder, in `PYSPARK_SUBMIT_ARGS` or in
    `spark-defaults.conf`. If `PYSPARK_SUBMIT_ARGS` names jars, Spark ignores the builder's, so the jar is added to that
    variable of this process, too. The catalog is the setting `spark.sql.catalog.safetensors`, unless you have one with
    that name. Nothing else is set. Calling it twice changes nothing.

    Warns if it comes too late, because a JVM without the jar already runs or the session is a remote one: then
    build the session and call `attach`.

    Raises `IncompatibleVersionError` for a Spark before 4.0, and when you named the connector's jar in another version.
    """
    versions.check_spark(_pyspark_version())
    options: dict[str, Any] = builder._options
    if _remote(options).startswith("sc://"):
        _warn("A jar on the builder does not reach a Spark Connect server.")
        return builder
    submit_args = os.environ.get(_SUBMIT_ARGS, "")
    submitted = jar_settings.in_submit_args(submit_args)
    mine = jar_settings.split(options.get("spark.jars"))
    jars = jar_settings.merge(mine, submitted, jar_settings.in_defaults(_defaults(os.environ)), [jar_path()])
    versions.check_named(jars)
    if submitted:
        os.environ[_SUBMIT_ARGS] = jar_settings.join_submit_args(submit_args, jars)
    if jvm.runs() and not jvm.has_connector():
        _warn("A JVM runs already, and Spark ignores jars that come after its start.")
    if not _has_catalog(options, submit_args):
        builder = builder.config(CATALOG, CATALOG_CLASS)
    return builder.config("spark.jars", ",".join(jars))


def attach(spark: SparkSession) -> None:
    """Give a running session the data source and catalog `safetensors`, and the functions.

    For notebooks, `spark-submit` and Spark Connect. Does nothing if everything is present.

    A Spark Connect client can send the jar, but only a server that was started with it has the functions by their own
    names. On others, `safetensors_spark.functions` calls those of the catalog; in SQL, use their full names, such as
    `safetensors.st_to_array`.

    Raises `IncompatibleVersionError` for a Spark before 4.0, and when the session has the connector's jar in another
    version than this package.
    """
    versions.check_spark(spark.version)
    if spark.conf.get(CATALOG, None) is None:
        spark.conf.set(CATALOG, CATALOG_CLASS)
    if connect.is_remote(spark):
        _attach_connect(spark)
    else:
        _attach_classic(spark)


def _attach_classic(spark: SparkSession) -> None:
    if not jvm.session_has_connector(spark):
        path = jar_path().replace("\\", "\\\\").replace("'", "\\'")
        spark.sql(f"ADD JAR '{path}'")
    versions.check_jar(*jvm.connector_jar(spark))
    if not _has_functions(spark):
        jvm.register_functions(spark)


def _attach_connect(spark: SparkSession) -> None:
    if not connect.has_functions(spark):
        spark.addArtifacts(jar_path())
    if spark.conf.get(CATALOG) == CATALOG_CLASS:
        versions.check_jar(connect.jar_version(spark))


def _has_functions(spark: SparkSession) -> bool:
    return all(spark.catalog.functionExists(name) for name in FUNCTIONS)


def _has_catalog(options: Mapping[str, Any], submit_args: str) -> bool:
    """Whether the user has set a catalog with our name, which must not be replaced."""
    return (
        CATALOG in options
        or jar_settings.sets(submit_args, CATALOG)
        or jar_settings.default(_defaults(os.environ), CATALOG) is not None
        or (jvm.runs() and jvm.setting(CATALOG) is not None)
    )


def _remote(options: Mapping[str, Any]) -> str:
    return str(options.get("spark.remote") or os.environ.get("SPARK_REMOTE", ""))


def _defaults(env: Mapping[str, str]) -> Path:
    """The `spark-defaults.conf` that Spark will read."""
    if conf_dir := env.get("SPARK_CONF_DIR"):
        return Path(conf_dir, "spark-defaults.conf")
    return Path(_spark_home(env), "conf", "spark-defaults.conf")


def _spark_home(env: Mapping[str, str]) -> Path:
    if home := env.get("SPARK_HOME"):
        return Path(home)
    import pyspark

    return Path(pyspark.__file__).parent


def _pyspark_version() -> str:
    import pyspark

    return str(pyspark.__version__)


def _warn(reason: str) -> None:
    warnings.warn(f"{reason} Build the session and call `safetensors_spark.attach(spark)`.", UserWarning, stacklevel=3)
