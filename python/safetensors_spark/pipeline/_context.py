"""`ZephyrContext`, by the name that pipelines of zephyr use."""

from __future__ import annotations

from collections.abc import Mapping
from types import TracebackType
from typing import Any

from safetensors_spark.pipeline._backend import Backend, create_backend
from safetensors_spark.pipeline._dataset import Dataset


class ZephyrContext:
    """A backend, and objects that its workers share.

    Args:
        client: a backend, or the name of one. None for processes on this machine.
        num_workers: how many tasks run at a time.
        resources: of each task, as `BackendOptions` has them: a dictionary, such as `{"memory": "2GB"}`.
    """

    def __init__(
        self,
        client: Backend | str | None = None,
        num_workers: int | None = None,
        resources: Mapping[str, Any] | None = None,
    ) -> None:
        options: dict[str, Any] = dict(resources or {})
        if num_workers is not None:
            options["max_parallelism"] = num_workers
        if isinstance(client, Backend):
            self._backend = client.having(**options) if options else client
        else:
            self._backend = create_backend(client or "processes", **options)

    def put(self, name: str, obj: Any) -> None:
        """Share an object: functions get it by `get_shared(name)`."""
        self._backend = self._backend.having(shared={**self._backend.options.shared, name: obj})

    def execute(self, dataset: Dataset[Any]) -> list[Any]:
        """Run the pipeline. Returns all rows of its last stage: of a write, the paths."""
        return list(self._backend.execute(dataset))

    def __enter__(self) -> ZephyrContext:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        """A backend has nothing open between two runs."""
