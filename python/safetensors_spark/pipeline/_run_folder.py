"""The folder of a run: what its stages have made, by names that tell of what, so that a later run continues.

It is beside the output, `_pipeline/{number of the output's name}`, where all workers see it, or in the user's cache.
"""

from __future__ import annotations

import json
import os
import time
from collections.abc import Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from hashlib import blake2b
from itertools import count
from typing import Any
from uuid import uuid4

from safetensors_spark._errors import PipelineBusyError, PipelineError
from safetensors_spark._files.commit.host_lock import host_lock
from safetensors_spark._files.commit.local_target import LocalTarget
from safetensors_spark._files.commit.lock import locked
from safetensors_spark._files.commit.target import Target, open_target
from safetensors_spark.pipeline._fingerprint import fingerprint
from safetensors_spark.pipeline._paths import FOLDER, absolute, identity
from safetensors_spark.pipeline._shard_file import ShardFile

MANIFEST = "manifest.json"
_LOCK = "run"
_RESULTS = "results-"
# Seconds after which nobody reads results any more.
_OLD = 7 * 24 * 3600


class RunFolder:
    """Shard files by stage. A name has the fingerprint of all that the shard is made of."""

    def __init__(self, location: str) -> None:
        self.location = location
        self._target: Target = open_target(location)
        self._known: dict[str, set[str]] = {}
        self._results: str | None = None
        self._process = os.getpid()

    def stage(self, name: str) -> str:
        """The folder of a stage."""
        return f"{self.location}/{name}"

    def find(self, stage: str, name: str) -> ShardFile | None:
        """What was made of a shard before, if it is whole."""
        if stage not in self._known:
            self._known[stage] = set(self._target.names(stage))
        if name not in self._known[stage]:
            return None
        try:
            return self.shard(stage, name)
        except (PipelineError, OSError):
            # The machine stopped before all of it was on the disk.
            return None

    def shard(self, stage: str, name: str) -> ShardFile:
        return ShardFile(open_target(self.stage(stage)), name)

    def delete_stage(self, stage: str) -> None:
        self._known.pop(stage, None)
        self._target.delete_folder(stage)

    def keep_only(self, stage: str, names: Iterable[str]) -> None:
        """Delete what other runs have made of a stage."""
        kept = set(names)
        for name in self._target.names(stage):
            if name not in kept:
                self._target.delete(f"{stage}/{name}")

    def take_results(self, stage: str, names: Sequence[str]) -> list[ShardFile]:
        """Move what a stage has made to a folder of its own, which only `delete_results` deletes."""
        self._results = f"{_RESULTS}{uuid4().hex}"
        self._target.make(self._results)
        self._target.move((f"{stage}/{name}", f"{self._results}/{name}") for name in names)
        self._target.delete_folder(stage)
        return [self.shard(self._results, name) for name in names]

    def keep_results_alone(self) -> None:
        """Delete what no later run would continue from."""
        for name in self._target.names():
            if name == MANIFEST or name.startswith("stage-"):
                self._target.delete(name)

    def delete_results(self) -> None:
        # A child that was forked has the results of its parent, too.
        if self._results is not None and self._process == os.getpid():
            self._target.delete_folder(self._results)

    def delete_old_results(self) -> None:
        """Delete the results of processes that were killed before they had read them."""
        for name in self._target.names():
            if name.startswith(_RESULTS) and self._target.newest(name) < time.time() - _OLD:
                self._target.delete_folder(name)

    def write_manifest(self, manifest: dict[str, Any]) -> None:
        """What was made, for who wants to know."""
        self._write(MANIFEST, manifest)

    def write_summary(self, stage: str, names: Sequence[str], summary: dict[str, Any]) -> None:
        """What is known of a stage, which is kept when its shards are not."""
        self._write(f"{stage}.json", {"names": fingerprint(list(names)), "summary": summary})

    def summary(self, stage: str, names: Sequence[str]) -> dict[str, Any]:
        found: dict[str, Any] = json.loads(self._target.read(f"{stage}.json") or b"{}")
        if found.get("names") != fingerprint(list(names)):
            return {"counters": {}}
        summary: dict[str, Any] = found["summary"]
        return summary

    def _write(self, name: str, content: dict[str, Any]) -> None:
        self._target.replace(name, f"{name}.draft", [json.dumps(content, indent=1).encode()], lambda: None)

    @contextmanager
    def lock(self) -> Iterator[None]:
        """Let no other run work here. Raises `PipelineBusyError` if one does."""
        if isinstance(self._target, LocalTarget):
            with host_lock(self._target, _LOCK, self._busy):
                yield
        else:
            with locked(self._target):
                yield

    def _busy(self, owner: str) -> PipelineBusyError:
        return PipelineBusyError(
            f"{self.location} is the folder of a run of {owner}, which writes the same files. Wait until it has ended, "
            "or end it."
        )

    def is_old(self) -> bool:
        """Whether nothing was made here for so long that nobody continues from it, nor reads it."""
        return all(self._target.newest(name) < time.time() - _OLD for name in self._target.names())

    def delete(self) -> None:
        self._target.delete_folder("")


@contextmanager
def free_folder(location: str) -> Iterator[RunFolder]:
    """The folder, locked; or another one beside it, if a run works there."""
    for number in count(1):
        folder = RunFolder(location if number == 1 else f"{location}-{number}")
        with ExitStack() as stack:
            try:
                stack.enter_context(folder.lock())
            except PipelineBusyError:
                continue
            yield folder
            return


def delete_old_folders(cache: str) -> None:
    """Delete the folders of pipelines that write nothing, and that nobody has run for long."""
    for name in open_target(cache).names():
        folder = RunFolder(f"{cache}/{name}")
        with suppress(PipelineBusyError, OSError):
            if folder.is_old():
                with folder.lock():
                    folder.delete()


def cache_location() -> str:
    """Where pipelines that write nothing have their folders."""
    from platformdirs import user_cache_path

    return str(user_cache_path("safetensors-spark") / "pipelines")


def stage_name(number: int) -> str:
    return f"stage-{number + 1}"


def run_location(output: str | None, work_dir: str | None, code: str) -> str:
    """Where the folder of a run is.

    Args:
        output: the first file that it writes, or the dataset.
        work_dir: where the caller wants it.
        code: the fingerprint of the operations, for a plan that writes nothing.
    """
    name = blake2b((identity(output) if output else code).encode(), digest_size=8).hexdigest()
    if work_dir is not None:
        return f"{absolute(work_dir)}/{name}"
    if output is not None:
        return f"{output.rpartition('/')[0]}/{FOLDER}/{name}"
    return f"{cache_location()}/{name}"
