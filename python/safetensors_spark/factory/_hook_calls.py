"""Calls hooks, so that nothing of a run depends on them: they get copies, and what they raise is a warning."""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Callable, Sequence
from copy import deepcopy
from typing import Any

from safetensors_spark._errors import printable
from safetensors_spark._files.commit.target import open_target
from safetensors_spark.factory._hook import Hook, PartitionEnd, StageEnd, StageFiles, StageStart
from safetensors_spark.factory._profiles import PROFILES

_LOGGER = logging.getLogger("safetensors_spark")


class HookCalls:
    """The hooks of one run.

    Raises `TypeError` for what is no hook.
    """

    def __init__(self, hooks: Sequence[Hook]) -> None:
        for one in hooks:
            if not isinstance(one, Hook):
                is_class = isinstance(one, type) and issubclass(one, Hook)
                wrong = f"the class {one.__name__}: call it" if is_class else f"a {type(one).__name__}"
                raise TypeError(f"hooks has {wrong}, expected instances of Hook")
        self._hooks, self._names = tuple(hooks), [str(one) for one in hooks]
        self._failures: Counter[int] = Counter()

    def __bool__(self) -> bool:
        return bool(self._hooks)

    def stage_start(self, event: StageStart) -> None:
        for place, hook in enumerate(self._hooks):
            self._call(place, "on_stage_start", event, hook.on_stage_start)

    def partition_end(self, event: PartitionEnd) -> None:
        for place, hook in enumerate(self._hooks):
            self._call(place, "on_partition_end", event, hook.on_partition_end)

    def stage_end(self, event: StageEnd) -> None:
        for place, hook in enumerate(self._hooks):
            self._call(place, "on_stage_end", event, hook.on_stage_end)

    def profiles(self, event: StageFiles) -> list[str]:
        """The paths that hooks have told, each of which is there."""
        found: dict[str, None] = {}
        for place, hook in enumerate(self._hooks):
            found |= dict.fromkeys(self._call(place, "profiles", event, _checked(hook)) or ())
        return list(found)

    def close(self) -> None:
        """Tell how often hooks have failed."""
        for place, count in sorted(self._failures.items()):
            if count > 1:
                _LOGGER.warning("The hook `%s` has failed %d times in this run.", self._names[place], count)

    def _call(self, place: int, name: str, event: Any, function: Callable[[Any], Any]) -> Any:
        try:
            # Of its own: what it does with it is seen by nobody.
            return function(deepcopy(event))
        except (Exception, SystemExit) as error:
            self._failures[place] += 1
            if self._failures[place] == 1:
                _LOGGER.warning(
                    "The hook `%s` has failed in `%s` of stage `%s`, and the run continues: %s",
                    self._names[place], name, event.stage, _told(error),
                )  # fmt: skip
            return None


def _told(error: BaseException) -> str:
    try:
        return printable(f"{type(error).__name__}: {error}")
    except Exception:
        # Its text is made by a method of its own, which may fail, too.
        return type(error).__name__


def _checked(hook: Hook) -> Callable[[StageFiles], list[str]]:
    """Its profiles. Raises `ValueError` for one that is not a file in the stage's folder of profiles."""

    def profiles(event: StageFiles) -> list[str]:
        # A copy, as the hook may change what it gets.
        folder, paths = event.folder, hook.profiles(event)
        if isinstance(paths, str):
            raise TypeError(f"it returned the text {paths!r}, expected a list of paths")
        found = list(paths)
        if found:
            there = open_target(folder).names(PROFILES)
            for path in found:
                before, _, name = str(path).partition("/")
                if before != PROFILES or name not in there:
                    raise ValueError(f"it returned {path!r}, expected a file of the stage, such as `{PROFILES}/a.bin`")
        return found

    return profiles
