"""Calls of the Hub that are made again where that may help."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable
from typing import TypeVar

from safetensors_spark._errors import printable
from safetensors_spark.publish._hub import ConflictError, FailedError, LimitedError

_LOGGER = logging.getLogger("safetensors_spark")

# Seconds before the second attempt; each pause is twice as long as the one before.
_FIRST_PAUSE_S = 1.0
_LONGEST_PAUSE_S = 60.0

_T = TypeVar("_T")


class StoppedError(Exception):
    """What is left stays pending, for this reason."""


class Retries:
    """How the calls of one sync are made again.

    Args:
        most: how often a call is, that failed or came into conflict with another commit.
        window_s: how long to wait in all, where the Hub says that there were too many requests.
    """

    def __init__(self, most: int, window_s: float) -> None:
        self._most, self._window_s = most, window_s
        self._waited = 0.0

    def __call__(self, call: Callable[[], _T]) -> _T:
        """Make the call, again if need be. Raises `StoppedError` if that does not help."""
        pause, failures = _FIRST_PAUSE_S, 0
        while True:
            try:
                return call()
            except LimitedError as error:
                self._wait(max(error.seconds, pause), str(error))
            except (ConflictError, FailedError) as error:
                failures += 1
                if failures > self._most:
                    raise StoppedError(f"the Hub failed {failures} times, the last time with: {error}") from None
                _LOGGER.warning("The Hub: %s. It is tried again in %.0f s.", printable(str(error)), pause)
                time.sleep(pause)
            pause = min(_LONGEST_PAUSE_S, pause * 2)

    def _wait(self, seconds: float, text: str) -> None:
        self._waited += seconds
        if self._waited > self._window_s:
            raise StoppedError(f"the Hub asks to wait for {seconds:,.0f} s ({text})")
        _LOGGER.warning("The Hub asks to wait for %.0f s (%s).", seconds, printable(text))
        time.sleep(seconds)
