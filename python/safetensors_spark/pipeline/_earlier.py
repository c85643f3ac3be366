"""What earlier runs have made of the same rows by the same code, so that it need not be made again."""

from __future__ import annotations

from safetensors_spark.pipeline._committing import DatasetFiles
from safetensors_spark.pipeline._fingerprint import fingerprint
from safetensors_spark.pipeline._names import outputs_of, shard_names, write_id
from safetensors_spark.pipeline._operations import Commit
from safetensors_spark.pipeline._plan import Plan
from safetensors_spark.pipeline._run_folder import RunFolder, stage_name
from safetensors_spark.pipeline._settings import Settings
from safetensors_spark.pipeline._shard_file import ShardFile
from safetensors_spark.pipeline._source import version_of_file


class Earlier:
    """Looks into the folder of a run, and into its outputs.

    Attributes:
        names: of each shard of each stage.
        write_ids: by stage, of what it writes to a dataset.
    """

    def __init__(self, plan: Plan, settings: Settings) -> None:
        self._plan, self._settings = plan, settings
        self.names = _names_of(plan, settings.quarantines, settings)
        self.write_ids: dict[int, tuple[str, ...]] = {}
        if any(isinstance(stage.begin, Commit) for stage in plan.stages):
            # With rows kept apart or not, shards are those of the same rows if both get to the commit.
            both = zip(self.names, _names_of(plan, not settings.quarantines, settings), strict=True)
            self.write_ids = {number: tuple(map(write_id, names)) for number, names in enumerate(both)}
        self._outputs = [outputs_of(stage) for stage in plan.stages]
        self._datasets: dict[str, DatasetFiles] = {}

    def look_in(self, folder: RunFolder) -> None:
        """The folder of the run."""
        self._folder = folder

    def is_incomplete(self, number: int) -> bool:
        if self.is_committed(number):
            return False
        return any(self.find(number, shard) is None for shard in range(self._plan.stages[number].shards))

    def find(self, number: int, shard: int) -> ShardFile | None:
        """What an earlier run has made of a shard, if its output is still that of that run."""
        found = self._folder.find(stage_name(number), self.names[number][shard])
        if found is None or found.footer.is_bound:
            return None
        if any(version_of_file(name) != version for name, version in found.footer.files.items()):
            return None
        return found if self._is_still_there(number, shard, found) else None

    def _is_still_there(self, number: int, shard: int, found: ShardFile) -> bool:
        stage, outputs = self._plan.stages[number], self._outputs[number]
        if isinstance(stage.begin, Commit):
            dataset, write = self._dataset(stage.begin), found.footer.version
            if not (dataset.has(write) if write else dataset.exists):
                return False
        if stage.write is None or outputs is None:
            return True
        commit = self._commit_of(number)
        if commit is not None:
            return self._dataset(commit).keeps(next(found.rows()))
        return found.footer.version == version_of_file(outputs[shard])

    def _commit_of(self, number: int) -> Commit | None:
        """The commit of what a stage writes."""
        begin = self._plan.stages[number + 1].begin if number + 1 < len(self._plan.stages) else None
        return begin if isinstance(begin, Commit) else None

    def is_committed(self, number: int) -> bool:
        """Whether a dataset has what the stage would write, by this pipeline or by one that makes the same rows."""
        commit = self._commit_of(number)
        if commit is None or not self._settings.resume:
            return False
        write_ids = self.write_ids[number]
        # What failed in a run that kept rows apart fails again.
        found = write_ids if self._settings.quarantines else write_ids[:1]
        return any(map(self._dataset(commit).has, found))

    def _dataset(self, commit: Commit) -> DatasetFiles:
        return self._datasets.setdefault(commit.path, DatasetFiles(commit))


def _names_of(plan: Plan, quarantines: bool, settings: Settings) -> list[list[str]]:
    return shard_names(plan, fingerprint([quarantines, dict(settings.shared)]))
