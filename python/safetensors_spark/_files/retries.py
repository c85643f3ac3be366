"""Requests to a store: which failures are worth another attempt, and what to say of those that are not."""

from __future__ import annotations

import logging
import random
import time
from collections.abc import Callable
from errno import ECONNREFUSED
from typing import TypeVar

from safetensors_spark._errors import printable
from safetensors_spark._files.hub import hub_error
from safetensors_spark._files.secrets import without_secrets

_LOGGER = logging.getLogger("safetensors_spark")

# Seconds to wait before each further attempt, of which random parts are taken: many processes fail at the same time.
DELAYS = (0.5, 1.0, 2.0, 4.0)

# What another attempt does not change: the file or the request is wrong.
_FINAL = (
    AttributeError, FileNotFoundError, ImportError, IsADirectoryError, LookupError, NotADirectoryError,
    NotImplementedError, PermissionError, TypeError, ValueError,
)  # fmt: skip

_DENIED = (401, 403)
# The request took too long, or there were too many.
_TEMPORARY = (408, 429)

_T = TypeVar("_T")


def retried(name: str, call: Callable[[], _T], done: str = "read") -> _T:
    """What the call returns, if need be in a later attempt. Errors say that the file cannot be `done`.

    Raises `FileNotFoundError`, `PermissionError` or another `OSError`. The error has neither the secrets of a URL nor
    the errors that it comes from, which may have them.
    """
    for attempt, delay in enumerate((*DELAYS, None)):
        try:
            return call()
        except Exception as error:
            failure = _cause(error)
            # Where nobody listens, mostly the address is wrong.
            if delay is None or hub_error(name, failure) or _is_final(failure) or (attempt and _is_refused(failure)):
                break
            _LOGGER.warning("%s: %s; trying again", name, _said(failure))
            time.sleep(delay * random.uniform(0.5, 1))
    raise _shown(name, failure, done)


def _cause(error: Exception) -> Exception:
    """fsspec says of all that goes wrong with the length of an HTTP file that the file does not exist."""
    cause = error.__cause__
    is_http = isinstance(error, FileNotFoundError) and type(cause).__module__.partition(".")[0] == "aiohttp"
    return cause if is_http and isinstance(cause, Exception) and _status(cause) not in (404, 410) else error


def _status(error: Exception) -> int | None:
    """The status of HTTP."""
    status = getattr(error, "status", None)
    return status if isinstance(status, int) else None


def _is_final(error: Exception) -> bool:
    status = _status(error)
    if status is not None:
        return 400 <= status < 500 and status not in _TEMPORARY
    return isinstance(error, _FINAL)


def _is_refused(error: Exception) -> bool:
    return getattr(error, "errno", None) == ECONNREFUSED


def _said(error: Exception) -> str:
    return printable(without_secrets(f"{type(error).__name__}: {error}"))


def _shown(name: str, error: Exception, done: str) -> OSError:
    if refused := hub_error(name, error):
        return refused
    if isinstance(error, FileNotFoundError):
        return FileNotFoundError(f"{name} does not exist")
    if isinstance(error, PermissionError) or _status(error) in _DENIED:
        return PermissionError(f"{name} may not be {done} ({_said(error)})")
    return OSError(f"{name} cannot be {done} ({_said(error)})")
