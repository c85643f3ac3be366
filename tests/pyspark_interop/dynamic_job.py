"""Two writes and a read on executors that Spark allocates when there are tasks, and gives back when there are none.

Run as `python dynamic_job.py SETTINGS`, a JSON object: `master` and `path`. Prints a JSON object: the `rows` that are
read, and which `executors` there were with the `first` write, `between` the two, and with the `second` one.
"""

import json
import sys
from pathlib import Path
from typing import Any

from pyspark.sql import SparkSession

import quick_jvm
from application import start
from failures import append, seen, wait_for

CONF = {
    "spark.driver.host": "127.0.0.1",
    "spark.driver.memory": "512m",
    "spark.executor.memory": "512m",
    "spark.dynamicAllocation.enabled": "true",
    "spark.dynamicAllocation.shuffleTracking.enabled": "true",
    "spark.dynamicAllocation.minExecutors": "0",
    "spark.dynamicAllocation.maxExecutors": "2",
    "spark.dynamicAllocation.executorIdleTimeout": "1s",
} | quick_jvm.CONF


def executors(spark: SparkSession, active: bool) -> list[str]:
    """The ids of those that are there, or of all that have been."""
    listed = spark._jsc.sc().statusStore().executorList(active)
    return sorted({listed.apply(i).id() for i in range(listed.size())} - {"driver"})


def run(master: str, path: Path) -> dict[str, Any]:
    spark = start(CONF | {"spark.master": master})
    append(spark, path, 0)
    first = executors(spark, active=False)
    wait_for(lambda: executors(spark, active=True) == [])
    between = executors(spark, active=True)
    append(spark, path, 100)
    second = [one for one in executors(spark, active=False) if one not in first]
    rows = seen(spark, path)
    spark.stop()
    return {"rows": rows, "executors": {"first": first, "between": between, "second": second}}


if __name__ == "__main__":
    settings = json.loads(sys.argv[1])
    print(json.dumps(run(settings["master"], Path(settings["path"]))))
