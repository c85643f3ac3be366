"""One run of the syncer: what is staged is committed to a repository of the Hub."""

from __future__ import annotations

import io
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import ExitStack
from functools import partial
from hashlib import sha1
from itertools import islice
from pathlib import Path
from typing import Any

from huggingface_hub import CommitOperationAdd, CommitOperationDelete

from safetensors_spark._errors import printable
from safetensors_spark._files.manifest import MANIFEST, parse_manifest
from safetensors_spark.publish._card import CARD
from safetensors_spark.publish._hub import FailedError, HubRepo, RefusedError, RemoteFile
from safetensors_spark.publish._published import changed_card, missing_shards, place, replaced_files
from safetensors_spark.publish._retries import Retries, StoppedError
from safetensors_spark.publish._sidecar import Sidecar, now, sidecar_of
from safetensors_spark.publish._staged import (
    StagedShard,
    dataset_file,
    folder_of,
    move,
    pairs,
    without_body,
)
from safetensors_spark.publish._staging import (
    FAILED_DIRNAME,
    PENDING_DIRNAME,
    SYNCED_DIRNAME,
    Staging,
)
from safetensors_spark.publish._superseded import manifests, prefix_of, remove_superseded
from safetensors_spark.publish._sync_report import SyncReport
from safetensors_spark.publish._sync_state import SyncState

_Pair = tuple[StagedShard, Sidecar]


class _IncompleteError(Exception):
    """A dataset stays pending, for this reason."""


class Sync:
    """One run. `report` says what it has done so far."""

    def __init__(
        self,
        staging: Staging,
        hub: HubRepo,
        state: SyncState,
        most: int,
        max_retries: int,
        prefix: str,
        progress: Callable[[StagedShard, int], None],
        check: Callable[[], None],
    ) -> None:
        """`check` raises if another syncer has taken over."""
        self.staging, self._hub, self._state = staging, hub, state
        self._most, self._prefix, self._progress = most, prefix, progress
        self._again = Retries(max_retries, state.window_s)
        self._check = check
        self.report = SyncReport()
        self._committed: set[str] = set()

    def dry_run(self) -> SyncReport:
        try:
            self._again(self._hub.check_branch)
            self._plan(self._again(self._hub.head))
        except StoppedError as stopped:
            self.report.errors.append(printable(str(stopped)))
        self.report.n_remaining = sum(1 for _ in pairs(self.staging, PENDING_DIRNAME))
        return self.report

    def _plan(self, head: str) -> None:
        data, complete = self._waiting()
        finals = [pair for dataset in complete if not self._has_failed(dataset) for pair in self._finals(dataset)]
        there = self._again(lambda: self._there([*data, *finals], head))
        for pair in data:
            if self._is_taken(pair, there):
                self._refused(pair[0], self._taken)
        left = sum(1 for pair in data if not there.get(pair[0].name) and not self._is_taken(pair, there))
        datasets = {sidecar.dataset["id"] for shard, sidecar in finals if sidecar.dataset and not there.get(shard.name)}
        self.report.n_committed = len(data) + len(finals) - self.report.n_failed
        self.report.n_commits = -(-left // self._most) + len(datasets)

    def run(self, create_pr: bool) -> None:
        lost = self._report_lost()
        try:
            self._again(self._hub.head)
            self._again(self._hub.check_branch)
            if create_pr:
                self._to_pull_request()
            self._run()
        except StoppedError as stopped:
            self.report.errors.append(printable(str(stopped)))
        self.report.n_committed = len(self._committed)
        self.report.n_remaining = lost + sum(1 for _ in pairs(self.staging, PENDING_DIRNAME))
        if create_pr and not self.report.n_remaining:
            self._state.set_pull_request(self._repo, None)

    @property
    def _repo(self) -> str:
        """Repositories of different types may have one name."""
        return f"{self._hub.repo_type}s/{self._hub.repo_id}"

    def _to_pull_request(self) -> None:
        waiting = list(pairs(self.staging, PENDING_DIRNAME))
        known = self._state.pull_request(self._repo)
        if known is not None and not self._again(partial(self._hub.is_open, known)):
            known = None
        if waiting and known is None:
            title = self._state.title(self._repo, f"{self._prefix} {len(waiting)} files")
            known = self._again(lambda: self._hub.pull_request(title))
            self._state.set_pull_request(self._repo, known)
        self._hub.revision = known or self._hub.revision

    def _run(self) -> None:
        self._remove_superseded()
        data, complete = self._waiting()
        self._commit_shards(data)
        for dataset in complete:
            self._commit_dataset(dataset)
        self._remove_superseded()

    def _remove_superseded(self) -> None:
        self.report.errors += map(printable, remove_superseded(self.staging, self._hub.place))

    def _waiting(self) -> tuple[list[_Pair], list[str]]:
        """The shards that may be committed, and the datasets whose manifest is pending, as they were staged."""
        waiting = _in_order(list(pairs(self.staging, PENDING_DIRNAME)))
        complete = list(manifests(waiting))
        data = [
            (shard, sidecar)
            for shard, sidecar in waiting
            if not _is_final(sidecar) and (sidecar.dataset is None or sidecar.dataset["id"] in complete)
        ]
        return data, complete

    def _report_lost(self) -> int:
        """Say which sidecars have no body, and return how many."""
        lost = without_body(self.staging, PENDING_DIRNAME)
        for sidecar in lost:
            self.report.errors.append(
                printable(
                    f"{sidecar.path_in_repo} is lost: its sidecar is pending, and its body no longer exists. Call "
                    "prune_orphans "
                    "with older_than_s=0 while no worker runs, and stage it again."
                )
            )
        return len(lost)

    # -- Shards ------------------------------------------------------------------------------------------------------

    def _commit_shards(self, shards: Iterable[_Pair]) -> None:
        left = iter(shards)
        while batch := list(islice(left, self._most)):
            self._commit_batch(batch)

    def _commit_batch(self, batch: Sequence[_Pair]) -> None:
        """Commit these files, or find the ones that the Hub refuses."""
        try:
            self._again(lambda: self._attempt(batch))
        except RefusedError as error:
            if len(batch) == 1:
                self._fail(batch[0][0], str(error))
                return
            middle = len(batch) // 2
            self._commit_batch(batch[:middle])
            self._commit_batch(batch[middle:])

    def _attempt(self, batch: Sequence[_Pair]) -> None:
        # A conflict may come after a part of them was settled.
        batch = [pair for pair in batch if self.staging.exists(f"{PENDING_DIRNAME}/{pair[0].name}")]
        head = self._hub.head()
        there = self._there(batch, head)
        self._settle([pair for pair in batch if there.get(pair[0].name)], head)
        left = [pair for pair in batch if not there.get(pair[0].name)]
        for pair in left:
            if self._is_taken(pair, there):
                self._fail(pair[0], self._taken)
        if left := [pair for pair in left if not self._is_taken(pair, there)]:
            with ExitStack() as opened:
                # Two stagings of a dataset share shards.
                once = {(shard.path_in_repo, sidecar.sha256): (shard, sidecar) for shard, sidecar in left}
                additions = [self._addition(*pair, opened) for pair in once.values()]
                what = left[0][0].path_in_repo if len(left) == 1 else f"{len(left)} files"
                # With the parent, what a killed syncer has sent, and what arrives only now, is not committed as well.
                commit = self._commit(additions, f"{self._prefix} {what}", head)
            self._settle(left, commit)

    def _commit(
        self, operations: Sequence[CommitOperationAdd | CommitOperationDelete], message: str, parent: str
    ) -> str:
        self._hub.upload([one for one in operations if isinstance(one, CommitOperationAdd)])
        if self._state.remaining < 1:
            raise StoppedError(
                f"the budget of commits is spent: the next one may be made in {self._state.seconds_left:,.0f} s."
            )
        self._check()
        begun = self._state.begin()
        try:
            commit = self._hub.commit(operations, message, parent)
        except FailedError:
            # It may have been made.
            raise
        except Exception:
            self._state.withdraw(begun)
            raise
        if commit == parent:
            # The client commits nothing where each file is there already, whatever the tree says of it.
            self._state.withdraw(begun)
            return commit
        self.report.n_commits += 1
        self.report.commit_oids.append(commit)
        return commit

    def _addition(self, shard: StagedShard, sidecar: Sidecar, opened: ExitStack) -> CommitOperationAdd:
        """Raises `RefusedError` if the body is not what the sidecar says, or cannot have its path."""
        body: Any = shard.parquet_path
        if not isinstance(body, Path):
            body = opened.enter_context(self.staging.open(f"{PENDING_DIRNAME}/{shard.name}"))
            body = body if isinstance(body, io.BufferedIOBase) else io.BufferedReader(body, 1 << 20)
        try:
            # The client hashes the body, to know whether the Hub has it.
            made = CommitOperationAdd(shard.path_in_repo, body)
        except ValueError as error:
            raise RefusedError(str(error)) from None
        # The client corrects some paths. Then the next look would not find the file.
        if made.path_in_repo != shard.path_in_repo:
            raise RefusedError(f"its path in the repository is not plain, expected `{made.path_in_repo}`")
        if made.upload_info.sha256.hex() != sidecar.sha256:
            raise RefusedError("it is not what was staged: its bytes have changed since")
        return made

    def _there(self, batch: Sequence[_Pair], commit: str) -> dict[str, bool]:
        """The names of those whose path the commit has, and whether it has the same file there."""
        files = self._hub.files((shard.path_in_repo for shard, _ in batch), commit)
        return {
            shard.name: self._is_same(files[shard.path_in_repo], shard, sidecar)
            for shard, sidecar in batch
            if shard.path_in_repo in files
        }

    @staticmethod
    def _is_taken(pair: _Pair, there: Mapping[str, bool]) -> bool:
        """Whether another file has the path of a shard of rows: these are never replaced, files of datasets are."""
        return pair[1].dataset is None and there.get(pair[0].name) is False

    @property
    def _taken(self) -> str:
        return (
            f"{self._hub.repo_id} has another file at this path. Stage the rows with another run_id; or delete the "
            "file there, and call retry_failed"
        )

    def _body(self, shard: StagedShard) -> bytes:
        return self.staging.read(f"{folder_of(shard)}/{shard.name}") or b""

    def _is_same(self, remote: RemoteFile, shard: StagedShard, sidecar: Sidecar) -> bool:
        if remote.size != sidecar.size:
            return False
        if remote.sha256:
            return remote.sha256 == sidecar.sha256
        return remote.blob_id == _blob_id(self._body(shard))

    def _settle(self, batch: Sequence[_Pair], commit: str) -> None:
        """Move what the repository has to `synced/`."""
        record = {
            "repo_id": self._hub.repo_id,
            "repo_type": self._hub.repo_type,
            "revision": self._hub.revision,
            "commit": commit,
            "at": now(),
        }
        self._check()
        for shard, sidecar in batch:
            if self.staging.exists(sidecar_of(f"{PENDING_DIRNAME}/{shard.name}")):
                move(self.staging, shard, SYNCED_DIRNAME, synced=record, failed=None)
                self._committed.add(shard.name)
                self._progress(shard, sidecar.size)

    def _fail(self, shard: StagedShard, reason: str) -> None:
        move(self.staging, shard, FAILED_DIRNAME, failed={"reason": printable(reason), "at": now()})
        self._refused(shard, reason)

    def _refused(self, shard: StagedShard, reason: str) -> None:
        self.report.n_failed += 1
        self.report.errors.append(printable(f"{shard.path_in_repo} was refused: {reason}"))

    # -- Datasets ----------------------------------------------------------------------------------------------------

    def _commit_dataset(self, dataset: str) -> None:
        """Commit the manifest of a dataset whose shards are all in the repository."""
        finals = self._finals(dataset)
        try:
            self._commit_finals(dataset, finals)
        except RefusedError as error:
            for shard, _ in finals:
                self._fail(shard, str(error))
        except _IncompleteError as error:
            self.report.errors.append(printable(str(error)))

    def _finals(self, dataset: str) -> list[_Pair]:
        """What is committed last of a dataset."""
        return [pair for pair in self._files(PENDING_DIRNAME, dataset) if _is_final(pair[1])]

    def _has_failed(self, dataset: str) -> bool:
        return bool(self._files(FAILED_DIRNAME, dataset))

    def _commit_finals(self, dataset: str, finals: Sequence[_Pair]) -> None:
        try:
            self._again(lambda: self._attempt_dataset(dataset, finals, has_card=True))
        except RefusedError as error:
            # It may be the card, with what its author wrote. The data does without it.
            self._again(lambda: self._attempt_dataset(dataset, finals, has_card=False))
            self.report.errors.append(
                printable(f"{CARD} was refused, and is as it was before. The dataset is published. {error}")
            )

    def _attempt_dataset(self, dataset: str, finals: Sequence[_Pair], has_card: bool) -> None:
        self._put_back(dataset)
        if self._has_failed(dataset):
            raise _IncompleteError(
                f"{finals[-1][0].path_in_repo} stays pending: a file of the dataset was refused, and its sidecar in "
                "failed/ says why. retry_failed gives it to the next sync again."
            )
        head = self._hub.head()
        there = self._there(finals, head)
        if all(there.get(shard.name) for shard, _ in finals):
            self._settle(finals, head)
            return
        operations: list[CommitOperationAdd | CommitOperationDelete] = []
        with ExitStack() as opened:
            operations += [self._addition(*pair, opened) for pair in finals]
            prefix = prefix_of(finals[0][1])
            content = self._body(next(shard for shard, _ in finals if shard.name == dataset_file(dataset, MANIFEST)))
            manifest = parse_manifest(content, MANIFEST)
            about = (self._hub, prefix, manifest, head)
            if missing := missing_shards(*about):
                raise _IncompleteError(
                    f"{place(prefix, MANIFEST)} stays pending: {missing[0]}, which it names, is neither staged nor in "
                    f"{self._hub.repo_id}. Stage the dataset again."
                )
            operations += [CommitOperationDelete(path) for path in replaced_files(*about)]
            if has_card and self._hub.repo_type == "dataset" and (card := changed_card(*about)) is not None:
                operations.append(CommitOperationAdd(CARD, card))
            where = prefix or self._hub.repo_id
            commit = self._commit(operations, f"{self._prefix} {where}: {manifest.samples:,} rows", head)
        self._settle(finals, commit)

    def _put_back(self, dataset: str) -> None:
        """Commit shards again that were committed, and that another dataset has deleted since."""
        data = self._data(SYNCED_DIRNAME, dataset)
        there = self._there(data, self._hub.head())
        for shard, _ in data:
            if not there.get(shard.name):
                move(self.staging, shard, PENDING_DIRNAME, synced=None)
                self._committed.discard(shard.name)
        self._commit_shards(self._data(PENDING_DIRNAME, dataset))

    def _data(self, folder: str, dataset: str) -> list[_Pair]:
        return [pair for pair in self._files(folder, dataset) if not _is_final(pair[1])]

    def _files(self, folder: str, dataset: str) -> list[_Pair]:
        """The files of a dataset, without a look into the sidecars of all others."""
        return [pair for pair in pairs(self.staging, folder, dataset_file(dataset, "")) if _is_of(pair[1], dataset)]


def _in_order(waiting: Sequence[_Pair]) -> list[_Pair]:
    """As they were staged."""
    return sorted(waiting, key=lambda pair: (pair[1].created_at, pair[0].name))


def _is_final(sidecar: Sidecar) -> bool:
    return sidecar.dataset is not None and sidecar.dataset.get("role") == "final"


def _is_of(sidecar: Sidecar, dataset: str) -> bool:
    return sidecar.dataset is not None and sidecar.dataset.get("id") == dataset


def _blob_id(content: bytes) -> str:
    """Git's name of it."""
    return sha1(b"blob %d\0" % len(content) + content, usedforsecurity=False).hexdigest()
