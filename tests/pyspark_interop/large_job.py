"""Large writes in an application of their own, and the memory that its driver took.

Run as `python large_job.py SETTINGS`, a JSON object: `conf` of the session, `columns` as expressions of `id`,
`options` of the writes, and `writes`, a path with a number of rows each. Prints a JSON list: of each write the peaks in
bytes of `resident`, the memory of the driver's process, and of `heap`, what lived on the driver's heap; `heap` only
where the settings ask for it, as it takes many garbage collections.
"""

import json
import subprocess
import sys
from collections.abc import Callable
from contextlib import nullcontext
from pathlib import Path
from threading import Event, Thread
from typing import Any

from pyspark.sql import SparkSession

from application import start
from spark_io import write


class Peak:
    """The most that `measure` gives while the block runs."""

    def __init__(self, measure: Callable[[], int]) -> None:
        self.value = 0
        self._measure = measure
        self._done = Event()
        self._thread = Thread(target=self._repeat)

    def _repeat(self) -> None:
        while not self._done.wait(0.5):
            self.value = max(self.value, self._measure())

    def __enter__(self) -> "Peak":
        self._thread.start()
        return self

    def __exit__(self, *error: object) -> None:
        self._done.set()
        self._thread.join()
        self.value = max(self.value, self._measure())


class Driver:
    """The JVM that a session's driver runs in."""

    def __init__(self, spark: SparkSession) -> None:
        jvm: Any = spark._jvm
        factory = jvm.java.lang.management.ManagementFactory
        self.pid = jvm.java.lang.ProcessHandle.current().pid()
        self._memory = factory.getMemoryMXBean()
        self._pools = [pool for pool in factory.getMemoryPoolMXBeans() if pool.getType().toString() == "Heap memory"]

    def heap(self) -> int:
        """What a garbage collection left; an earlier one, where the JVM puts this one off."""
        self._memory.gc()
        return sum(pool.getCollectionUsage().getUsed() for pool in self._pools)

    def resident(self) -> int:
        """Where the system keeps no peak it is the memory of now."""
        status = Path(f"/proc/{self.pid}/status")
        lines = status.read_text().splitlines() if status.exists() else []
        peaks = [int(line.split()[1]) for line in lines if line.startswith("VmHWM:")]
        now = ["ps", "-o", "rss=", "-p", str(self.pid)]
        return 1024 * (peaks[0] if peaks else int(subprocess.check_output(now)))


def run(settings: dict[str, Any]) -> list[dict[str, int]]:
    spark = start(settings["conf"])
    driver = Driver(spark)
    peaks = []
    for path, rows in settings["writes"].items():
        frame = spark.range(0, rows, 1, 2).selectExpr(*settings["columns"])
        with Peak(driver.resident) as resident, Peak(driver.heap) if settings.get("heap") else nullcontext() as heap:
            write(frame, Path(path), **settings["options"])
        peaks.append({"resident": resident.value} | ({"heap": heap.value} if heap else {}))
    spark.stop()
    return peaks


if __name__ == "__main__":
    print(json.dumps(run(json.loads(sys.argv[1]))))
