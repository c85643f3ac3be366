"""Operators in actors of Ray, which live as long as a stage.

A stage has a desk for each such operator, itself an actor, which gives each batch to an actor that has nothing to do.
Tasks know the desk by its name. It starts the actors, and others for those that die; they end with it.
"""

from __future__ import annotations

import asyncio
from contextlib import suppress
from typing import Any
from uuid import uuid4

import pyarrow as pa  # type: ignore[import-untyped]
import ray

from safetensors_spark._errors import LostShardError, PipelineError, counted
from safetensors_spark.factory._apply import outcome
from safetensors_spark.factory._keys import keys_of
from safetensors_spark.factory._operator import Deduplicator, Operator
from safetensors_spark.pipeline._backends import cluster
from safetensors_spark.pipeline._backends.ray import LOST
from safetensors_spark.pipeline._failures import received, sent, with_note
from safetensors_spark.pipeline._pool import ATTEMPTS


class _Model:
    """An operator in a process of its own. What it raises is an answer, so that Ray tries nothing again."""

    def __init__(self, name: str, content: bytes) -> None:
        self._name, self._content = name, content
        self._operator: Any = None

    def load(self) -> bytes | None:
        """Load the operator. Returns the error, if there is one."""
        try:
            self._operator = cluster.unpacked(self._name, lambda: self._content)
            self._operator.load()
        except Exception as error:
            with_note(error, f"In `load` of operator `{self._name}`")
            return sent(error)
        return None

    def answer(self, batch: pa.RecordBatch, quarantine: bool) -> tuple[bool, Any]:
        """Whether the operator has an answer, and the answer or the error."""
        try:
            return True, _answer(self._operator, batch, quarantine)
        except SystemExit as error:
            # It would end this process, which looks like a lost one.
            told = PipelineError(f"`{self._operator.id}` has called `sys.exit({error.code!r})`: raise an error instead")
            return False, sent(told)
        except Exception as error:
            return False, sent(error)


def _answer(operator: Operator, batch: pa.RecordBatch, quarantine: bool) -> Any:
    return keys_of(operator, batch) if isinstance(operator, Deduplicator) else outcome(operator, batch, quarantine)


class _Desk:
    """Has the actors of an operator. A batch waits until one of them has nothing to do."""

    def __init__(self, name: str, content: bytes, count: int, gpus: float) -> None:
        self._arguments, self._count = (name, content), count
        # A task waits while an actor computes, so an actor has the task's core.
        self._model = ray.remote(_Model).options(num_cpus=0, num_gpus=gpus, scheduling_strategy="SPREAD")
        # Actors; or the error for which there will be none.
        self._free: asyncio.Queue[Any] = asyncio.Queue()
        self._starting: set[asyncio.Task[None]] = set()
        self._is_open = False

    async def open(self) -> None:
        """Start the actors. When Ray has lost this one, its successor does that by itself."""
        if not self._is_open:
            self._is_open = True
            for _ in range(self._count):
                self._start()

    def _start(self) -> None:
        starting = asyncio.create_task(self._add())
        self._starting.add(starting)
        starting.add_done_callback(self._starting.discard)

    async def _add(self) -> None:
        told = ""
        for _ in range(ATTEMPTS):
            model = self._model.remote(*self._arguments)
            try:
                failure = await model.load.remote()
            except LOST as error:
                told = f"{type(error).__name__}: {error}"
                continue
            self._free.put_nowait(model if failure is None else failure)
            return
        lost = f"the actor of `{self._arguments[0]}` died in {counted(ATTEMPTS, 'attempt')} to load it: {told}"
        self._free.put_nowait(sent(LostShardError(lost)))

    async def answer(self, batch: list[Any], quarantine: bool) -> tuple[str, Any]:
        """What has become of a batch: `made`, with a reference to the answer; `raised`; or `lost`, with why.

        Args:
            batch: a reference to it, which is in a list so that Ray does not bring it here.
        """
        await self.open()
        model = await self._free.get()
        if isinstance(model, bytes):
            # For all that wait.
            self._free.put_nowait(model)
            return "raised", model
        succeeded, found = model.answer.options(num_returns=2).remote(batch[0], quarantine)
        try:
            has_made = await succeeded
        except LOST as error:
            self._start()
            return "lost", f"{type(error).__name__}: {error}"
        except Exception as error:
            # Such as an answer that cannot be sent.
            self._free.put_nowait(model)
            return "raised", sent(error)
        self._free.put_nowait(model)
        return "made" if has_made else "raised", [found]


class Pool:
    """The actors of an operator, until they are ended.

    Attributes:
        name: by which tasks find them.
    """

    def __init__(self, operator: Operator, count: int) -> None:
        self.name = f"safetensors-spark-{uuid4().hex}"
        content = cluster.packed_value(operator)
        # A task that asks while Ray replaces the desk waits for the other one.
        options = {"num_cpus": 0, "max_restarts": ATTEMPTS - 1, "max_task_retries": ATTEMPTS - 1, "name": self.name}
        self._desk = ray.remote(_Desk).options(**options).remote(operator.id, content, count, operator.gpus)
        self._desk.open.remote()

    def end(self) -> None:
        """End them, whatever they do: those whose desk is gone end, too."""
        with suppress(Exception):
            ray.kill(self._desk)


def ask(name: str, operator: Operator, batch: pa.RecordBatch, quarantine: bool) -> Any:
    """The answer of one of the actors of this name. Raises what the operator raises.

    Raises `LostShardError` if the actors that had the batch died each time.
    """
    desk, place, told = ray.get_actor(name), [ray.put(batch)], ""
    for _ in range(ATTEMPTS):
        try:
            ended, found = ray.get(desk.answer.remote(place, quarantine))
            if ended == "lost":
                told = found
                continue
            answer = found if isinstance(found, bytes) else ray.get(found[0])
        except LOST as error:
            told = f"{type(error).__name__}: {error}"
            continue
        if ended == "raised":
            raise received(answer)
        return answer
    lost = LostShardError(
        f"the actor of `{operator.id}` died in {counted(ATTEMPTS, 'attempt')} at a batch of "
        f"{counted(batch.num_rows, 'row')}. The last one ended with: {told}. Usually, it ran out of memory: smaller "
        "windows (`window_bytes`) make smaller batches."
    )
    raise with_note(lost, f"In operator `{operator.id}`")


def gpus_of_nodes() -> list[float]:
    """How many GPUs each node of the cluster has."""
    return [node["Resources"].get("GPU", 0.0) for node in ray.nodes() if node["Alive"]]
