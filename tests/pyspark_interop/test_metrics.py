"""What Spark's UI shows of a write."""

import re
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from spark_io import write


def last_metrics(spark: SparkSession) -> dict[str, str]:
    """The metrics of the last query, by description, as the UI's SQL page has them."""
    context = spark.sparkContext
    context._jsc.sc().listenerBus().waitUntilEmpty()
    store = spark._jsparkSession.sharedState().statusStore()
    executions = store.executionsList()
    last = executions.apply(executions.size() - 1)
    values = store.executionMetrics(last.executionId())
    metrics = (last.metrics().apply(i) for i in range(last.metrics().size()))
    return {m.name(): values.apply(m.accumulatorId()) for m in metrics if values.contains(m.accumulatorId())}


@pytest.mark.short
def test_rows_bytes_shards_and_times_are_shown(spark: SparkSession, path: Path) -> None:
    numbers = spark.range(1000, numPartitions=2).selectExpr("array(id, id) AS x")
    dataset = write(numbers, path, batch_size=100)
    shown = last_metrics(spark)
    assert shown["rows written"] == "1000"
    assert shown["shards written"] == "10" == str(len(dataset.shards))
    assert shown["bytes written"] == str(dataset.manifest["total_bytes"])
    assert all(re.fullmatch(r"\d+", shown[f"time {step}, all tasks (ms)"]) for step in ("encoding", "writing"))
