"""What goes wrong in a task: which failures another attempt may change, and what is said of the others."""

from __future__ import annotations

import pickle
import sys
import traceback
from typing import Any

from safetensors_spark._errors import PipelineError

# A connection that was lost, or a server that does not answer. What a store's client retries has been retried before.
_TEMPORARY = (ConnectionError, TimeoutError)


class LostWorkerError(Exception):
    """A worker that died, or was lost, with the shard that it had."""


class ChangedFileError(PipelineError):
    """A file is no longer the one that was planned with, which is the fault of no row."""


def is_temporary(error: BaseException) -> bool:
    return isinstance(error, (LostWorkerError, *_TEMPORARY))


def with_note(error: BaseException, note: str) -> BaseException:
    """The error, which says more where it is printed."""
    if sys.version_info >= (3, 11):
        error.add_note(note)
    else:
        error.__notes__ = [*getattr(error, "__notes__", ()), note]
    return error


def text_of(error: BaseException) -> str:
    """The error's class and what it says."""
    try:
        return f"{type(error).__qualname__}: {error}"
    except Exception as failed:
        return f"{type(error).__qualname__} (its text is not to be had: {type(failed).__qualname__})"


def sent(error: BaseException) -> bytes:
    """An error as bytes for another process, where it is of its own class if that class can be sent."""
    import cloudpickle

    trace = "".join(traceback.format_exception(type(error), error, error.__traceback__))
    notes = list(getattr(error, "__notes__", ()))
    try:
        content = bytes(cloudpickle.dumps(error, 5))
        pickle.loads(content)
    except Exception:
        told = f"{text_of(error)} (this class of error cannot be sent between processes)"
        content = bytes(cloudpickle.dumps(PipelineError(told), 5))
    return bytes(cloudpickle.dumps((content, notes, trace), 5))


def received(content: bytes) -> BaseException:
    """The error that another process has sent, with its traceback as the cause."""
    found: Any
    found, notes, trace = pickle.loads(content)
    error: BaseException = pickle.loads(found)
    known = getattr(error, "__notes__", ())
    for note in notes:
        if note not in known:
            with_note(error, note)
    error.__cause__ = RemoteTracebackError(trace)
    return error


class RemoteTracebackError(Exception):
    """The traceback in the process where an error was raised."""

    def __str__(self) -> str:
        return f"\n{super().__str__()}"
