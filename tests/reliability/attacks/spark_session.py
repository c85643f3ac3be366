"""Spark's session of attacks: the one that is there, or one for as long as the block lasts."""

import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from reliability.attacks.errors import LONGEST


@contextmanager
def session() -> Iterator[Any]:
    from pyspark.sql import SparkSession

    from spark_io import local_session

    if there := SparkSession.getActiveSession():
        yield there
        return
    with tempfile.TemporaryDirectory() as warehouse:
        spark = local_session(Path(warehouse))
        spark.sparkContext.setLogLevel("OFF")
        try:
            yield spark
        finally:
            spark.stop()


def outcome(action: Callable[[], Any]) -> str:
    """`done`, or the name of a clear error: one of Spark's analysis, or one of ours by its condition."""
    from pyspark.errors import AnalysisException, PySparkException

    try:
        action()
    except PySparkException as error:
        return _check_clear(error, isinstance(error, AnalysisException))
    return "done"


def _check_clear(error: Any, is_analysis: bool) -> str:
    said, condition = str(error), error.getCondition() or ""
    ours = condition.startswith("SAFETENSORS_")
    assert ours or is_analysis, f"{type(error).__name__} is no error of ours: {said[:3000]}"
    assert 0 < len(said) <= 2 * LONGEST, f"a text of {len(said)} characters: {said[:1000]}"
    assert "\n\tat " not in said, f"frames of Java: {said[:3000]}"
    return condition if ours else type(error).__name__
