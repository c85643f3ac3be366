"""What the server of a Spark Connect session has."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING
from weakref import WeakKeyDictionary

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_CATALOG = "safetensors"

_started_with_jar: WeakKeyDictionary[SparkSession, bool] = WeakKeyDictionary()


def is_remote(spark: SparkSession) -> bool:
    """Whether this is a session of Spark Connect."""
    return type(spark).__module__.startswith("pyspark.sql.connect")


def function_name(name: str) -> str:
    """The name to call a function of ours by, in the active session.

    A client can send the jar to a Connect server, but not add functions to it: then those of the catalog serve, which
    do the same.
    """
    spark = _active()
    return name if spark is None or has_functions(spark) else f"{_CATALOG}.{name}"


def jar_version(spark: SparkSession) -> str | None:
    """The version of the connector's jar that the session has on the server, as our catalog tells it."""
    rows = spark.sql(f"DESCRIBE NAMESPACE EXTENDED {_CATALOG}.wide").collect()
    found = re.search(r"\(version,([^)]+)\)", "\n".join(str(row["info_value"]) for row in rows))
    return found[1] if found else None


def has_functions(spark: SparkSession) -> bool:
    """Whether the server was started with the jar. Asked once for a session: no server gets functions later."""
    if spark not in _started_with_jar:
        _started_with_jar[spark] = spark.catalog.functionExists("arr_to_st")
    return _started_with_jar[spark]


def _active() -> SparkSession | None:
    """The Connect session that functions are resolved in; None in a process of classic sessions."""
    from pyspark.sql.utils import is_remote

    if not is_remote():
        return None
    from pyspark.sql.connect.session import SparkSession

    # Spark keeps the active session for the thread that made it; others have the default one.
    return SparkSession.getActiveSession() or SparkSession._get_default_session()  # type: ignore[return-value]
