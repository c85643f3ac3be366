"""Runs a plan, stage by stage, on a pool. What an earlier run has made of the same input is not made again."""

from __future__ import annotations

import logging
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack
from itertools import chain
from typing import Any

from safetensors_spark._errors import counted
from safetensors_spark.pipeline._earlier import Earlier
from safetensors_spark.pipeline._fingerprint import fingerprint
from safetensors_spark.pipeline._names import check_not_in_place, outputs_of
from safetensors_spark.pipeline._operations import Commit, Join, Reshard
from safetensors_spark.pipeline._paths import QUARANTINE
from safetensors_spark.pipeline._plan import Plan, Stage
from safetensors_spark.pipeline._pool import Exchanging, Pool, Side, run_tasks
from safetensors_spark.pipeline._progress import Progress
from safetensors_spark.pipeline._quarantine import delete_others
from safetensors_spark.pipeline._reshard import pieces_of
from safetensors_spark.pipeline._run_folder import (
    RunFolder,
    cache_location,
    delete_old_folders,
    free_folder,
    run_location,
    stage_name,
)
from safetensors_spark.pipeline._settings import Settings
from safetensors_spark.pipeline._shard_file import Footer, ShardFile
from safetensors_spark.pipeline._task import Piece, Task, Work
from safetensors_spark.pipeline._watch import Watch
from safetensors_spark.pipeline._whole_file import delete_all_drafts

# Seconds in which a cluster ends the tasks of a run that has failed.
_PATIENCE = 4.0

# Of shards, what only later runs need.
_NOT_TOLD = {"version", "files", "is_bound"}
_LOGGER = logging.getLogger("safetensors_spark")


class Run:
    """One run of a plan."""

    def __init__(
        self,
        plan: Plan,
        settings: Settings,
        pool: Callable[[], Pool],
        progress: Progress,
        watch: Watch | None = None,
    ) -> None:
        self._plan, self._settings, self._make_pool, self._progress = plan, settings, pool, progress
        self._watch = watch
        self._earlier = Earlier(plan, settings)
        self._names = self._earlier.names
        self._outputs = [outputs_of(stage) for stage in plan.stages]
        check_not_in_place(plan)
        first = next((paths[0] for paths in reversed(self._outputs) if paths), None)
        code = fingerprint([self._names[0] if self._names else [], self._names[-1]])
        self.folder = RunFolder(run_location(first, settings.work_dir, code))
        own = self.folder.location.rpartition("/")[2]
        # Other pipelines write to the same folder, too.
        beside = first or self.folder.location
        self._quarantine = f"{beside.rpartition('/')[0]}/{QUARANTINE}/{own}"
        self.counters: Counter[str] = Counter()
        # What is known of right sides of joins, by the stages that join.
        self._of_right: dict[int, dict[str, Any]] = {}
        self.rows = 0
        self.manifest: dict[str, Any] = {}

    def run(self) -> Iterable[Any]:
        """Make all shards of the last stage. Returns their rows in order, which no other run of the same deletes."""
        with ExitStack() as stack:
            writes = self._lock(stack)
            self._earlier.look_in(self.folder)
            if not self._settings.resume:
                for number in range(len(self._plan.stages)):
                    self.folder.delete_stage(stage_name(number))
                    self.folder.delete_stage(f"right-{number}")
            self._clean()
            self.folder.delete_old_results()
            # Workers that are killed leave drafts.
            stack.push(lambda kind, *_: self._clean(_PATIENCE if kind is not None else 0))
            pool = _Lazy(self._make_pool)
            stack.enter_context(pool)
            shards = self._stages(pool)
            self._finish(shards)
            # Another run of the same may begin before these rows are read.
            if self._plan.stages[-1].leaves_files:
                return [path for shard in shards for path in shard.rows()]
            taken = self.folder.take_results(stage_name(len(self._plan.stages) - 1), self._names[-1])
            if not writes:
                self.folder.keep_results_alone()
            return chain.from_iterable(shard.rows() for shard in taken)

    def _lock(self, stack: ExitStack) -> bool:
        """Let no other run work in this folder, nor write the same files, whatever folder it works in. Returns whether
        this one writes files.
        """
        outputs = [paths[0] for paths in _all_outputs(self._plan) if paths]
        if not outputs:
            if self._settings.work_dir is None:
                delete_old_folders(cache_location())
            # Two runs of the same would disturb each other in this folder alone.
            self.folder = stack.enter_context(free_folder(self.folder.location))
            return False
        # In one order, so that no two runs wait for each other.
        for location in sorted({self.folder.location, *(run_location(place, None, "") for place in outputs)}):
            stack.enter_context(RunFolder(location).lock())
        return True

    def _stages(self, pool: _Lazy) -> list[ShardFile]:
        """Run the stages of which something is needed."""
        plan = self._plan
        needed, wanted = [], True
        for number in reversed(range(len(plan.stages))):
            if wanted or plan.stages[number].leaves_files:
                needed.append(number)
                wanted = self._earlier.is_incomplete(number)
        shards: list[ShardFile] = []
        done = -1
        for number in reversed(needed):
            if number <= done:
                continue
            done = self._end_of_shuffle(pool, number)
            shards = self._stage(pool, number, shards) if done == number else self._shuffled(pool, number, done, shards)
            if number > 0:
                # What has been made of it is whole.
                self._delete_exchanged(number - 1)
        return shards

    def _end_of_shuffle(self, pool: _Lazy, number: int) -> int:
        """The stage to which the pool itself brings the rows of this one; this one if it does not."""
        stages, last = self._plan.stages, number
        while stages[last].end is not None and not stages[last].leaves_files:
            last += 1
        does = last > number and self._earlier.is_incomplete(number) and isinstance(pool.pool, Exchanging)
        return last if does else number

    def _delete_exchanged(self, number: int) -> None:
        """Delete what a stage has made for the next one; of what it has written the record stays."""
        if not self._plan.stages[number].leaves_files:
            self.folder.delete_stage(stage_name(number))

    def _stage(self, pool: _Lazy, number: int, before: Sequence[ShardFile]) -> list[ShardFile]:
        stage, name = self._plan.stages[number], stage_name(number)
        if self._earlier.is_committed(number):
            self._progress.begin(number, stage, stage.shards)
            self.folder.delete_stage(name)
            return []
        made = {
            shard: found for shard in range(stage.shards) if (found := self._earlier.find(number, shard)) is not None
        }
        if made:
            _LOGGER.info(
                "stage %d: %s of %s made before, by the same code of the same input", number + 1,
                counted(len(made), "shard is", "shards are"), stage.shards,
            )  # fmt: skip
        self._progress.begin(number, stage, len(made))
        left = [shard for shard in range(stage.shards) if shard not in made]
        if left:
            tasks = self._tasks(pool, number, before, left)
            for done in run_tasks(pool.pool, self._work(number, name), tasks):
                self._progress.advance(number, done.footer)
                if self._watch is not None:
                    self._watch.made(number, self.folder.shard(name, done.task.name).rows())
        shards = self._closed(number, made)
        if self._watch is not None:
            self._watch.ended(number, chain.from_iterable(shard.rows() for shard in shards))
        return shards

    def _shuffled(self, pool: _Lazy, first: int, last: int, before: Sequence[ShardFile]) -> list[ShardFile]:
        """Make stages of which the pool brings the rows to the next one. Of all but the last nothing is left."""
        made = {
            shard: found
            for shard in range(self._plan.stages[last].shards)
            if (found := self._earlier.find(last, shard))
        }
        sides = []
        for number in range(first, last + 1):
            stage = self._plan.stages[number]
            self._progress.begin(number, stage, len(made) if number == last else 0)
            self.folder.delete_stage(f"shuffled-{number + 1}")
            name = f"shuffled-{number + 1}" if number < last else stage_name(number)
            left = [shard for shard in range(stage.shards) if number < last or shard not in made]
            tasks = self._tasks(pool, number, before, left, has_rows=number > first)
            sides.append(Side(self._work(number, name), tuple(tasks)))
        assert isinstance(pool.pool, Exchanging)
        footers: dict[int, list[Footer]] = {number: [] for number in range(first, last)}
        for number, footer in pool.pool.exchange(sides):
            footers.setdefault(number, []).append(footer)
            self._progress.advance(number, footer)
        for number in range(first, last):
            self.folder.write_summary(stage_name(number), self._names[number], summary_of(footers[number]))
            self.folder.delete_stage(f"shuffled-{number + 1}")
        return self._closed(last, made)

    def _work(self, number: int, name: str) -> Work:
        stage, settings = self._plan.stages[number], self._settings
        after = self._plan.stages[number + 1].shards if stage.end is not None else 1
        quarantine = self._quarantine if settings.quarantines else None
        folder, before = self.folder.stage(name), self.folder.stage(stage_name(number - 1))
        return Work(stage, number, folder, before, after, settings.memory, quarantine, settings.shared, settings.resume)

    def _closed(self, number: int, made: Mapping[int, ShardFile]) -> list[ShardFile]:
        """All shards of a stage, some of which were made before."""
        stage, name = self._plan.stages[number], stage_name(number)
        self.folder.keep_only(name, self._names[number])
        names = self._names[number]
        shards = [made.get(shard) or self.folder.shard(name, names[shard]) for shard in range(stage.shards)]
        summary = summary_of(shard.footer for shard in shards)
        if stage.right is not None:
            # When nothing of the stage was left, nothing of its right side was made now.
            before_now = self.folder.summary(name, names)
            kept: dict[str, Any] = {one: before_now[one] for one in ("right", "right_quarantined") if one in before_now}
            summary |= self._of_right.get(number, kept)
        self.folder.write_summary(name, names, summary)
        return shards

    def _tasks(
        self, pool: _Lazy, number: int, before: Sequence[ShardFile], left: Sequence[int], *, has_rows: bool = False
    ) -> list[Task]:
        """The tasks of these shards. Those that have their rows from a shuffle need no names of files."""
        stage, names, outputs = self._plan.stages[number], self._names[number], self._outputs[number]
        right = self._right(pool, number, stage) if isinstance(stage.begin, Join) else None
        tasks = []
        for shard in left:
            tasks.append(
                Task(
                    shard,
                    names[shard],
                    self._plan.shards[shard].rows if number == 0 else (),
                    () if has_rows else self._pieces(stage, number, shard, before),
                    None if right is None else (right[0], right[1][shard]),
                    None if outputs is None else outputs[shard],
                    self._earlier.write_ids.get(number - isinstance(stage.begin, Commit), ()),
                )
            )
        return tasks

    def _pieces(self, stage: Stage, number: int, shard: int, before: Sequence[ShardFile]) -> tuple[Piece, ...]:
        if number == 0:
            return ()
        names = self._names[number - 1]
        if isinstance(stage.begin, Reshard):
            return pieces_of(names, [one.rows_inside for one in before], shard, stage.shards)
        if isinstance(stage.begin, Join):
            return (Piece(names[shard]),)
        if self._earlier.is_committed(number - 1):
            return ()
        return tuple(map(Piece, names))

    def _right(self, pool: _Lazy, number: int, stage: Stage) -> tuple[str, list[str]]:
        """Make the right side of a join. Returns the folder of its shards, and their names."""
        assert stage.right is not None
        run = Run(stage.right, self._settings, self._make_pool, self._progress)
        run.folder = RunFolder(f"{self.folder.location}/right-{number}")
        run._earlier.look_in(run.folder)
        run._quarantine = f"{self._quarantine}/right-{number}"
        run._stages(pool)
        summaries = run._summaries()
        apart = sum(one.get("quarantined", 0) + one.get("right_quarantined", 0) for one in summaries)
        self._of_right[number] = {"right": dict(run._counted(summaries)), "right_quarantined": apart}
        last = len(stage.right.stages) - 1
        return run.folder.stage(stage_name(last)), run._names[last]

    def _clean(self, patience: float = 0) -> None:
        """Delete what dead processes have left of files that this run writes; those that die get some seconds."""
        outputs = [path for paths in _all_outputs(self._plan) for path in paths]
        deadline = time.monotonic() + patience
        while not delete_all_drafts(outputs) and time.monotonic() < deadline:
            time.sleep(0.05)

    def _finish(self, shards: Sequence[ShardFile]) -> None:
        stages = self._summaries()
        self.counters = self._counted(stages)
        self.rows = sum(shard.footer.rows for shard in shards)
        for number in range(len(self._plan.stages) - 1):
            self._delete_exchanged(number)
        for number, stage in enumerate(self._plan.stages):
            for inner, of_right in enumerate(stage.right.stages if stage.right is not None else ()):
                if not of_right.leaves_files:
                    self.folder.delete_stage(f"right-{number}/{stage_name(inner)}")
        if self._settings.quarantines:
            delete_others(self._quarantine, [stage.shards for stage in self._plan.stages])
        self.manifest = self._manifest(shards, stages)
        self.folder.write_manifest(self.manifest)

    def _summaries(self) -> list[dict[str, Any]]:
        return [self.folder.summary(stage_name(number), names) for number, names in enumerate(self._names)]

    def _counted(self, summaries: Iterable[dict[str, Any]]) -> Counter[str]:
        found: Counter[str] = Counter()
        for summary in summaries:
            found.update(summary["counters"])
            found.update(summary.get("right", {}))
        return found

    def _manifest(self, shards: Sequence[ShardFile], stages: list[dict[str, Any]]) -> dict[str, Any]:
        outputs = self._outputs[-1]
        return {
            "plan": self._plan.lines(),
            "rows": self.rows,
            "counters": dict(self.counters),
            "quarantine": self._quarantine
            if any(stage.get("quarantined") or stage.get("right_quarantined") for stage in stages)
            else None,
            "stages": stages,
            "shards": [
                {"shard": number, "output": outputs[number] if outputs else None}
                | {name: value for name, value in vars(shard.footer).items() if name not in _NOT_TOLD}
                for number, shard in enumerate(shards)
            ],
        }


class _Lazy(AbstractContextManager["_Lazy"]):
    """A pool that is made when there is something to do."""

    def __init__(self, make: Callable[[], Pool]) -> None:
        self._make = make
        self._pool: Pool | None = None

    @property
    def pool(self) -> Pool:
        if self._pool is None:
            self._pool = self._make()
        return self._pool

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        if self._pool is not None:
            self._pool.close(kill=kind is not None)


def _all_outputs(plan: Plan) -> Iterator[list[str]]:
    """What each stage writes, also on the right sides of joins."""
    for stage in plan.stages:
        yield outputs_of(stage) or []
        if stage.right is not None:
            yield from _all_outputs(stage.right)


def summary_of(footers: Iterable[Footer]) -> dict[str, Any]:
    """What all shards of a stage have in common."""
    found: dict[str, Any] = {"read": 0, "rows": 0, "bytes": 0, "quarantined": 0, "seconds": 0.0}
    counters: Counter[str] = Counter()
    for footer in footers:
        for name in found:
            found[name] += getattr(footer, name)
        counters.update(footer.counters)
    return found | {"counters": dict(counters)}
