"""Backends: where pipelines run, and with how many parallel tasks."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Mapping
from contextvars import ContextVar
from copy import copy
from dataclasses import dataclass, field, fields, replace
from typing import Any, ClassVar, Literal

from safetensors_spark._extras import require
from safetensors_spark.dataset._arguments import whole
from safetensors_spark.pipeline._dataset import Dataset
from safetensors_spark.pipeline._plan import Plan, plan_of
from safetensors_spark.pipeline._pool import Pool
from safetensors_spark.pipeline._progress import progress_of
from safetensors_spark.pipeline._results import Results
from safetensors_spark.pipeline._run import Run
from safetensors_spark.pipeline._settings import Settings
from safetensors_spark.pipeline._watch import Watch

_UNITS = {"": 1, "k": 10**3, "m": 10**6, "g": 10**9, "t": 10**12, "ki": 2**10, "mi": 2**20, "gi": 2**30, "ti": 2**40}
_MEMORY = 256 << 20


@dataclass(frozen=True)
class BackendOptions:
    """The options of all backends.

    Attributes:
        max_parallelism: the number of tasks that run at a time.
        memory: bytes of memory for each task, as a number or as text: `2GB`. A quarter of it is for rows that are
            sorted; by default that is 64 MiB.
        on_error: `raise` exceptions of functions; or `quarantine` the rows: they are written to `_quarantine` beside
            the output, with their errors.
        resume: reuse the results of earlier runs with the same input and code.
        work_dir: a folder that all workers can access, for rows between stages. By default it is beside the output.
        progress: show the progress; by default yes.
        dry_run: only print the plan.
        shared: objects that functions get with `get_shared(name)`.
        resources: other resources of each task on a cluster: `num_cpus`, `num_gpus`, and options of Ray's tasks.
    """

    max_parallelism: int
    memory: int | str | None = None
    on_error: Literal["raise", "quarantine"] = "raise"
    resume: bool = True
    work_dir: str | None = None
    progress: bool | None = None
    dry_run: bool = False
    shared: Mapping[str, Any] = field(default_factory=dict)
    resources: dict[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        whole("max_parallelism", self.max_parallelism, 1)
        if self.on_error not in ("raise", "quarantine"):
            raise ValueError(f"on_error is {self.on_error!r}, expected 'raise' or 'quarantine'")
        bytes_of(self.memory)

    @property
    def settings(self) -> Settings:
        memory = bytes_of(self.memory) or _MEMORY
        return Settings(
            max(memory // 4, 1 << 20), self.on_error == "quarantine", self.resume, self.work_dir, self.shared
        )


def bytes_of(memory: int | str | None) -> int | None:
    """A number of bytes: `2GB` is 2,000,000,000, `2GiB` 2^31."""
    if memory is None:
        return None
    if isinstance(memory, str):
        found = re.fullmatch(r"\s*(\d+(?:\.\d+)?)\s*([kmgt]i?)?b?\s*", memory.lower())
        if found is None:
            raise ValueError(f"memory is {memory!r}, expected bytes, such as '2GB' or '512MiB'")
        memory = int(float(found[1]) * _UNITS[found[2] or ""])
    if memory < 1:
        raise ValueError(f"memory is {memory!r}, expected bytes, such as '2GB' or '512MiB'")
    return memory


class Backend:
    """Executes pipelines."""

    kind: ClassVar[str]

    def __init__(self, options: BackendOptions) -> None:
        self.options = options

    def pool(self) -> Pool:
        """Workers for one run."""
        raise NotImplementedError

    def plan(self, dataset: Dataset[Any]) -> Plan:
        """The plan of `execute`, to print. Lists the files of the source, and runs nothing."""
        return plan_of(dataset)

    def execute(self, dataset: Dataset[Any], watch: Watch | None = None) -> Results:
        """Run the pipeline to its end. Returns an iterator of the rows of its last stage: for a write, the paths.

        Args:
            watch: is informed about finished shards.

        Raises exceptions of functions unchanged; `LostShardError` for a shard whose workers died each time; and
        `PipelineBusyError` while another process writes the same files. Finished shards are kept for the next attempt.
        """
        plan = self.plan(dataset)
        if self.options.dry_run:
            print(plan)
            return Results.none()
        progress = progress_of(self.options.progress)
        try:
            run = Run(plan, self.options.settings, self.pool, progress, watch)
            return Results.of(run, run.run())
        finally:
            progress.close()

    def having(self, **options: Any) -> Backend:
        """The same backend with other options."""
        changed = copy(self)
        changed.options = replace(self.options, **options)
        return changed

    def __repr__(self) -> str:
        return f"<{type(self).__name__}: {self.options.max_parallelism} tasks at a time>"


class SyncBackend(Backend):
    """One task at a time in the caller's thread: for tests, and for debuggers."""

    kind = "sync"

    def __init__(self, max_parallelism: int = 1, **options: Any) -> None:
        super().__init__(BackendOptions(max_parallelism, **options))

    def pool(self) -> Pool:
        from safetensors_spark.pipeline._backends.sync import SyncPool

        return SyncPool()


class ThreadPoolBackend(Backend):
    """Threads of this process: for tasks that wait for files and servers, such as downloads."""

    kind = "threadpool"

    def __init__(self, max_parallelism: int = 32, **options: Any) -> None:
        super().__init__(BackendOptions(max_parallelism, **options))

    def pool(self) -> Pool:
        from safetensors_spark.pipeline._backends.threads import ThreadPool

        return ThreadPool(self.options.max_parallelism)


class ProcessBackend(Backend):
    """Processes of this machine, one for each core: for computation. The default."""

    kind = "processes"

    def __init__(self, max_parallelism: int | None = None, **options: Any) -> None:
        parallelism = (os.cpu_count() or 1) if max_parallelism is None else max_parallelism
        super().__init__(BackendOptions(parallelism, **options))

    def pool(self) -> Pool:
        from safetensors_spark.pipeline._backends.processes import ProcessPool

        return ProcessPool(self.options.max_parallelism)


class RayBackend(Backend):
    """Tasks on a Ray cluster, which places them and reruns lost ones.

    All nodes must see the folders of output and of `work_dir`, and have this package and the modules that functions
    import. The process stays connected to Ray when a run has ended.

    Args:
        address: the address of the cluster. None for the one that the process is connected to, else that of
            `RAY_ADDRESS`, else one that runs on this machine, else a new local one.
        options: options of `BackendOptions`, and of Ray's tasks, such as `num_cpus` and `num_gpus`. Ray reserves
            these, and `memory`, for each task.
    """

    kind = "ray"

    def __init__(self, max_parallelism: int = 100, *, address: str | None = None, **options: Any) -> None:
        super().__init__(BackendOptions(max_parallelism, **_with_resources(options, {})))
        self._address = address

    def connect(self) -> None:
        """Connect this process to the cluster, as a run does that is not connected yet."""
        require("ray", ("ray",))
        from safetensors_spark.pipeline._backends.ray import connect

        connect(self._address)

    def pool(self) -> Pool:
        require("ray", ("ray",))
        from safetensors_spark.pipeline._backends.ray import RayPool

        memory = bytes_of(self.options.memory)
        kept = {} if memory is None else {"memory": memory}
        return RayPool(self.options.max_parallelism, self._address, kept | self.options.resources)

    def having(self, **options: Any) -> Backend:
        return super().having(**_with_resources(options, self.options.resources))


class SparkBackend(Backend):
    """Tasks on the executors of a Spark session, which reruns lost ones.

    All nodes must see the folders of output and of `work_dir`, and have this package and the modules that functions
    import.

    Args:
        spark: the session, not one of Spark Connect. None for the active session.
        options: options of `BackendOptions`.
    """

    kind = "spark"

    def __init__(self, max_parallelism: int = 100, *, spark: Any = None, **options: Any) -> None:
        super().__init__(BackendOptions(max_parallelism, **options))
        self._spark = spark

    def pool(self) -> Pool:
        require("spark", ("pyspark",))
        from pyspark.sql import SparkSession

        from safetensors_spark.pipeline._backends.spark import SparkPool

        return SparkPool(self.options.max_parallelism, self._spark or SparkSession.active())


def _with_resources(options: dict[str, Any], before: Mapping[str, Any]) -> dict[str, Any]:
    """The options, of which those that only a cluster knows are `resources`."""
    names = {option.name for option in fields(BackendOptions)}
    own = {name: value for name, value in options.items() if name in names}
    further = {name: value for name, value in options.items() if name not in names}
    return own | {"resources": {**before, **own.get("resources", {}), **further}}


_BACKENDS: dict[str, Callable[..., Backend]] = {
    "sync": SyncBackend,
    "threadpool": ThreadPoolBackend,
    "threads": ThreadPoolBackend,
    "processes": ProcessBackend,
    "ray": RayBackend,
    "spark": SparkBackend,
}

_flow: ContextVar[Backend | None] = ContextVar("safetensors_spark_flow_backend", default=None)


def create_backend(backend_type: str = "processes", max_parallelism: int | None = None, **options: Any) -> Backend:
    """A backend by name: `processes`, `threadpool` (or `threads`), `sync`, `ray` or `spark`.

    Args:
        max_parallelism: the number of tasks that run at a time.
        options: options of `BackendOptions`.
    """
    make = _BACKENDS.get(backend_type)
    if make is None:
        raise ValueError(f"backend_type is {backend_type!r}, expected one of {', '.join(_BACKENDS)}")
    return make(**options) if max_parallelism is None else make(max_parallelism, **options)


def set_flow_backend(backend: Backend | None) -> None:
    """Set the backend that `flow_backend` returns in this context."""
    _flow.set(backend)


def flow_backend(**options: Any) -> Backend:
    """The backend of the command line; by default, processes on this machine.

    Args:
        options: options of `BackendOptions`, which replace those of the command line.
    """
    current = _flow.get() or ProcessBackend()
    return current.having(**options) if options else current
