"""A thousand writes and reads in one Spark session."""

from __future__ import annotations

import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

from reliability.check import Check, Outcome
from reliability.held import held, stays_flat

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


# All of the heap is resident from the beginning. Spark's store of what has run keeps little.
CONF = {
    "spark.master": "local[2]",
    "spark.driver.memory": "512m",
    "spark.driver.extraJavaOptions": "-Xms512m -XX:+AlwaysPreTouch -XX:+UseSerialGC -XX:TieredStopAtLevel=1",
    "spark.sql.shuffle.partitions": "2",
    "spark.ui.retainedJobs": "20",
    "spark.ui.retainedStages": "20",
    "spark.ui.retainedTasks": "100",
    "spark.sql.ui.retainedExecutions": "20",
}
ROWS = 20
# After so many appends a dataset is overwritten, so that its reads stay as long as they are.
APPENDS = 10


class Driver:
    """The JVM of a session."""

    def __init__(self, spark: SparkSession) -> None:
        jvm: Any = spark._jvm
        factory = jvm.java.lang.management.ManagementFactory
        pools = jvm.java.lang.Class.forName("java.lang.management.BufferPoolMXBean")
        self._pid = jvm.java.lang.ProcessHandle.current().pid()
        self._memory = factory.getMemoryMXBean()
        self._pools = factory.getPlatformMXBeans(pools)

    def held(self) -> dict[str, int]:
        """After garbage collections, and the cleaners that run behind them."""
        for _ in range(3):
            self._memory.gc()
            time.sleep(0.5)
        direct = [pool.getMemoryUsed() for pool in self._pools if pool.getName() == "direct"]
        return held(self._pid) | {"heap": self._memory.getHeapMemoryUsage().getUsed(), "direct": sum(direct)}


def batches(spark: SparkSession, path: Path, number: int) -> int:
    """Tensors, sequences and text in batches, decoded."""
    from spark_io import write

    rows = spark.range(0, ROWS, 1, 2).selectExpr(
        "array(cast(id as float), 0.5F) x", "sequence(0, id) ids", "cast(id as string) t"
    )
    write(rows, path, "append" if number % APPENDS else "overwrite", batch_size=5, ragged="ids")
    found = spark.read.format("safetensors").options(layout="rows", decode="true").load(str(path)).collect()
    for row in found:
        n = int(row["x"][0])
        assert (row["ids"], row["t"]) == (list(range(n + 1)), str(n))
    return _counted(len(found), number)


def keys(spark: SparkSession, path: Path, number: int) -> int:
    """Tensors by key, with an index that is appended to, and one of them looked up."""
    from spark_io import write

    first = number % APPENDS * ROWS
    rows = spark.range(first, first + ROWS, 1, 2).selectExpr("concat('k', id) k", "array(cast(id as int)) x")
    write(rows, path, "append" if number % APPENDS else "overwrite", name_col="k", generate_index="true")
    long = spark.read.format("safetensors").option("layout", "long").load(str(path))
    last = first + ROWS - 1
    [one] = long.where(f"tensor_key = 'k{last}'").selectExpr("st_to_array(tensor)[0] n").collect()
    assert one["n"] == last
    return _counted(long.count(), number)


def _counted(rows: int, number: int) -> int:
    assert rows == (number % APPENDS + 1) * ROWS, (rows, number)
    return rows


def repeat(folder: str, first: int, count: int) -> dict[str, Any]:
    """What the JVM holds after the first repetitions, and after all; and how many rows were read."""
    from application import start

    spark = start(CONF)
    driver, path, rows = Driver(spark), Path(folder), 0
    before: dict[str, int] = {}
    for number in range(count):
        if number == first:
            before = driver.held()
        if number % 2:
            rows += keys(spark, path / "keys", number // 2)
        else:
            rows += batches(spark, path / "batches", number // 2)
    after = driver.held()
    spark.stop()
    return {"before": before, "after": after, "rows": rows}


def run(scale: float) -> Outcome:
    return stays_flat(repeat, scale)


CHECK = Check(
    name="one-session",
    kind="soak",
    environment="spark",
    what="1,000 writes and reads in one Spark session with a heap of 512 MB: batches, text, keys with an index",
    holds="Every row is as it was written. After the first hundred descriptors, maps, threads and memory are flat.",
    run=run,
)
