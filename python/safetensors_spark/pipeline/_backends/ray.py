"""Tasks on Ray: its own, which it places, and runs again where workers, nodes and connections are lost."""

from __future__ import annotations

import os
from collections.abc import Collection, Mapping
from typing import Any

from safetensors_spark.pipeline._backends import cluster
from safetensors_spark.pipeline._failures import LostWorkerError, is_temporary, received
from safetensors_spark.pipeline._pool import ATTEMPTS
from safetensors_spark.pipeline._shard_file import Footer
from safetensors_spark.pipeline._task import Task, Work

# Seconds that cancelled tasks have to end.
_PATIENCE = 5.0

# Ray reads these when it is imported, and when it begins. What the caller has set stays.
# A worker is of the environment that its node has, and not of one that `uv run` makes for each.
os.environ.setdefault("RAY_ENABLE_UV_RUN_RUNTIME_ENV", "0")
# A shard that takes all memory of a node would be tried for ever.
os.environ.setdefault("RAY_task_oom_retries", str(ATTEMPTS - 1))

import ray  # noqa: E402
from ray import exceptions  # noqa: E402

LOST = (
    exceptions.ActorDiedError,
    exceptions.ActorUnavailableError,
    exceptions.LocalRayletDiedError,
    exceptions.NodeDiedError,
    exceptions.ObjectLostError,
    exceptions.OutOfMemoryError,
    exceptions.WorkerCrashedError,
)


def connect(address: str | None) -> None:
    """Connect this process to a cluster, if it is connected to none."""
    if not ray.is_initialized():
        ray.init(address)


class RayPool:
    """So many tasks at a time on a cluster of Ray.

    Args:
        address: of the cluster. None for the one that the process is connected to, else that of `RAY_ADDRESS`, else
            one that runs on this machine or is started.
        options: of the tasks, such as `num_cpus`.
    """

    restarts = True

    def __init__(self, slots: int, address: str | None, options: Mapping[str, Any]) -> None:
        connect(address)
        self.slots = slots
        retries = options.get("max_retries", ATTEMPTS - 1)
        self.attempts = retries + 1
        self._function = ray.remote(_run).options(
            **{**options, "max_retries": retries, "retry_exceptions": [ConnectionError, TimeoutError]}
        )
        self._running: set[Any] = set()
        self._work: Work | None = None
        self._content: Any = None

    def start(self, work: Work, task: Task) -> _Run:
        if work is not self._work:
            self._work, self._content = work, ray.put(cluster.packed(work))
        reference = self._function.remote(self._content.hex(), [self._content], task)
        self._running.add(reference)
        return _Run(reference)

    def wait(self, running: Collection[Any]) -> Collection[Any]:
        by_reference = {run.reference: run for run in running}
        ended, _ = ray.wait(list(by_reference))
        self._running.difference_update(ended)
        return [by_reference[reference] for reference in ended]

    def close(self, *, kill: bool) -> None:
        left = list(self._running)
        self._running.clear()
        if kill and left:
            for reference in left:
                ray.cancel(reference, force=True)
            ray.wait(left, num_returns=len(left), timeout=_PATIENCE)


class _Run:
    """A task that Ray has."""

    def __init__(self, reference: Any) -> None:
        self.reference = reference

    def result(self) -> Footer:
        try:
            succeeded, answer = ray.get(self.reference)
        except exceptions.RayTaskError as error:
            raise (error.cause if is_temporary(error.cause) else error) from None
        except LOST as error:
            raise LostWorkerError(f"{type(error).__name__}: {error}") from None
        if succeeded:
            footer: Footer = answer
            return footer
        raise received(answer)


def _run(name: str, content: list[Any], task: Task) -> tuple[bool, Any]:
    """What a worker of Ray does. The reference is in a list, for Ray would fetch the object for each task."""
    return cluster.attempt(name, lambda: ray.get(content[0]), task)
