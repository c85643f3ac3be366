"""Executors that run out of memory in the midst of a write."""

from pathlib import Path
from tempfile import TemporaryDirectory

from reliability.check import Check, Outcome
from safetensors_spark.dataset import open_dataset, verify

# As clusters do it: the JVM ends at once, and tells nobody.
EXIT = "-XX:+ExitOnOutOfMemoryError"


def run(scale: float) -> Outcome:
    from failures import Job, leftovers, written
    from quick_jvm import OPTIONS

    conf = {"spark.executor.extraJavaOptions": f"{OPTIONS} {EXIT}"}
    count = max(1, round(20 * scale))
    with TemporaryDirectory() as folder:
        path, expected = Path(folder, "dataset"), []
        for number in range(count):
            file, first = Path(folder, f"exhausted{number}"), 100 * number
            job = Job(
                path, Path(folder, "log"), master="local-cluster[2,1,1024]", conf=conf, first=first, exhaust=str(file)
            )
            with job:
                attempts = job.finish()
            assert file.exists()
            assert len(attempts["0"]) > 1, attempts
            # How a JVM ends that may not go on without memory.
            assert "exited with code 3" in job.log.read_text()
            expected += written(first)
        assert [int(number) for number in open_dataset(path)[:]["x"][:, 0]] == expected
        assert verify(path).faults == []
        assert leftovers(path) == []
    return Outcome(count, f"{count} executors died, {len(expected)} rows are there once and in order")


CHECK = Check(
    name="executor-out-of-memory",
    kind="soak",
    environment="spark",
    what="an executor's JVM ends for lack of memory, half-way through a task that writes",
    holds="The task runs again, each row is there once, and no file of the dead executor is left.",
    run=run,
)
