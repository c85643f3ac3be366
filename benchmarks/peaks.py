"""The most memory that work has taken: of this process, or of Spark's JVM."""

import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from threading import Event, Thread

from pyspark.sql import SparkSession

# Between two looks at the JVM.
LOOK_SECONDS = 0.02

# Own memory is that of a Python process and its workers, without what it had from its beginning.
HEAP, DIRECT, OWN, RESIDENT = "heap MB", "direct MB", "own MB", "resident MB"


@contextmanager
def of_jvm(spark: SparkSession) -> Iterator[dict[str, float]]:
    """What the block takes, in megabytes: the heap with its garbage, direct buffers, and all that is resident.

    The JVM tells what it has now and no peak of direct buffers, so that it is asked again and again.
    """
    jvm = spark._jvm
    assert jvm is not None
    factory = jvm.java.lang.management.ManagementFactory
    pools = factory.getPlatformMXBeans(jvm.java.lang.Class.forName("java.lang.management.BufferPoolMXBean"))
    direct = next(pool for pool in pools if pool.getName() == "direct")
    memory, pid = factory.getMemoryMXBean(), jvm_of(spark)
    found, ended = {HEAP: 0.0, DIRECT: 0.0}, Event()

    def look() -> None:
        while not ended.is_set():
            found[HEAP] = max(found[HEAP], memory.getHeapMemoryUsage().getUsed() / 1e6)
            found[DIRECT] = max(found[DIRECT], direct.getMemoryUsed() / 1e6)
            time.sleep(LOOK_SECONDS)

    jvm.java.lang.System.gc()
    forget(pid)
    looking = Thread(target=look, daemon=True)
    looking.start()
    try:
        yield found
    finally:
        ended.set()
        looking.join()
        found[RESIDENT] = resident(pid)


def jvm_of(spark: SparkSession) -> int:
    """The number of its process."""
    assert spark._jvm is not None
    pid: int = spark._jvm.java.lang.ProcessHandle.current().pid()
    return pid


@contextmanager
def of_process() -> Iterator[dict[str, float]]:
    """What the block takes of this process, in megabytes, with what it had before."""
    found: dict[str, float] = {}
    forget(os.getpid())
    yield found
    found[RESIDENT] = resident(os.getpid())


def forget(pid: int) -> None:
    """Begin the peak of what is resident anew."""
    Path(f"/proc/{pid}/clear_refs").write_text("5")


def resident(pid: int) -> float:
    lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith("VmHWM")) * 1024 / 1e6
