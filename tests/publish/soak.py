"""Workers write shards and a dataset changes, while the syncer is killed. Then the repository is checked.

python tests/publish/soak.py --shards 2000 --kills 20 --seed 7
"""

import argparse
import json
import random
import signal
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from functools import partial
from hashlib import sha256
from itertools import groupby
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa  # type: ignore[import-untyped]

import hub
from forks import Fork
from safetensors_spark._files.manifest import MANIFEST, parse_manifest
from safetensors_spark.dataset import write_dataset
from safetensors_spark.publish import ShardSchema, ensure_staging_layout, stage_dataset, write_shard
from syncing import REPO

WORKERS = 4
DEADLINE_S = 600
# Of the repository: there the dataset is.
FOLDER = "points"
SCHEMA = ShardSchema(columns={"x": pa.int64()}, path_in_repo="data/{bucket}/{run_id}.parquet")


@dataclass(frozen=True)
class Dataset:
    """Its manifest, and the SHA-256 of each shard by its path in the repository."""

    manifest: bytes
    shards: Mapping[str, str]


@dataclass(frozen=True)
class Soak:
    """What was done."""

    shards: int
    kills: int
    in_commits: int
    datasets: int
    revisions: int
    seconds: float

    def __str__(self) -> str:
        return (
            f"{self.shards:,} shards by {WORKERS} workers, the syncer killed {self.kills} times, {self.in_commits} of "
            f"them during a commit: {self.revisions:,} revisions, {self.datasets} datasets one after the other, "
            f"{self.seconds:,.0f} s. Every shard is there once, and every revision is whole."
        )


def soak(folder: Path, shards: int, kills: int, seed: int) -> Soak:
    """Raises `AssertionError` if a shard is lost or twice in the repository, or a revision has half a dataset."""
    begun, chance = time.monotonic(), random.Random(seed)
    staging = folder / "staging"
    ensure_staging_layout(staging)
    with hub.running(folder / "hub") as server, ExitStack() as forks:
        server.make_repo(REPO)
        environment = server.environment()
        shares = [range(first, shards, WORKERS) for first in range(WORKERS)]
        workers = [forks.enter_context(Fork(partial(write_shards, staging, share), environment)) for share in shares]
        datasets: list[Dataset] = []
        in_commits = 0
        for _ in range(kills):
            # There is always something to commit.
            datasets.append(next_dataset(folder / "points", staging, len(datasets)))
            server.forget()
            with Fork(partial(sync_for_ever, staging), environment) as syncer:
                wait_for_work(syncer, server, staging, chance)
                syncer.kill()
                assert syncer.done().returncode == -signal.SIGKILL, syncer.done().stderr
            in_commits += any("/commit/" in one["path"] and one["status"] is None for one in server.requests())
            server.heal()
        for worker in workers:
            done = worker.done(DEADLINE_S)
            assert done.returncode == 0, done.stderr
        with Fork(partial(sync_all, staging), environment) as last:
            done = last.done(DEADLINE_S)
        assert done.returncode == 0, done.stderr
        history = server.history(REPO)
        check_shards(history, staging, shards)
        check_datasets(history, partial(server.read, REPO, f"{FOLDER}/{MANIFEST}"), datasets)
    return Soak(shards, kills, in_commits, len(datasets), len(history), time.monotonic() - begun)


# -- In processes of their own ---------------------------------------------------------------------------------------


def write_shards(staging: Path, numbers: range) -> None:
    for number in numbers:
        rows = pa.table({"x": np.arange(number, number + 20)})
        write_shard(rows, staging_dir=staging, run_id=f"run-{number}", schema=SCHEMA)


def sync_for_ever(staging: Path) -> None:
    while True:
        sync_once(staging)


def sync_once(staging: Path) -> int:
    # The client of this process.
    from safetensors_spark.publish import sync_pending

    report = sync_pending(staging, repo_id=REPO, budget=10**6)
    assert (report.errors, report.n_failed) == ([], 0), report
    return report.n_remaining


def sync_all(staging: Path) -> None:
    assert sync_once(staging) == 0


# -- In this one -----------------------------------------------------------------------------------------------------


def next_dataset(path: Path, staging: Path, number: int) -> Dataset:
    """Overwrite the dataset and stage it."""
    values = np.arange(4 * (1 + number % 3)) + number
    write_dataset([{"x": values}], path, batch_size=4, mode="overwrite")
    stage_dataset(path, staging_dir=staging, path_in_repo=FOLDER)
    manifest = (path / MANIFEST).read_bytes()
    names = [shard.file for shard in parse_manifest(manifest, MANIFEST).shards]
    return Dataset(manifest, {f"{FOLDER}/{name}": sha256((path / name).read_bytes()).hexdigest() for name in names})


def wait_for_work(syncer: Fork, server: hub.Server, staging: Path, chance: random.Random) -> None:
    """Until some files are moved, or a commit is being made, and a moment longer."""
    synced = staging / "synced"
    slow = server.fail(method="POST", path="/commit/", count=None, delay=chance.random() / 4)
    begun, before = time.monotonic(), len(list(synced.iterdir()))
    in_commit, moved = chance.random() < 0.5, chance.randrange(1, 5)
    while not (server.hits(slow) if in_commit else len(list(synced.iterdir())) >= before + moved):
        assert syncer.is_alive, syncer.done().stderr
        assert time.monotonic() - begun < DEADLINE_S, "the syncer commits nothing"
        time.sleep(0.005)
    time.sleep(chance.random() / 4)


def check_shards(history: Sequence[Mapping[str, Any]], staging: Path, shards: int) -> None:
    sidecars = [json.loads(path.read_bytes()) for path in (staging / "synced").glob("run-*.meta.json")]
    assert {one["run_id"] for one in sidecars} == {f"run-{number}" for number in range(shards)}
    staged = {one["path_in_repo"]: one["sha256"] for one in sidecars}
    assert len(staged) == shards
    assert {path: one for path, one in history[-1]["tree"].items() if path.startswith("data/")} == staged
    made = Counter(path for commit in history for path in commit["changes"] if path.startswith("data/"))
    assert set(made.values()) == {1}, made.most_common(3)


def check_datasets(
    history: Sequence[Mapping[str, Any]], manifest: Callable[[str], bytes], datasets: Sequence[Dataset]
) -> None:
    """Each revision has one of the datasets whole, each is at least one revision, and they come in their order."""
    seen = []
    for commit in history:
        if f"{FOLDER}/{MANIFEST}" in commit["tree"]:
            seen.append([one.manifest for one in datasets].index(manifest(commit["id"])))
            assert datasets[seen[-1]].shards.items() <= commit["tree"].items(), commit["id"]
    assert [number for number, _ in groupby(seen)] == list(range(len(datasets)))
    assert list(dict.fromkeys(seen)) == list(range(len(datasets)))
    there = {path for path in history[-1]["tree"] if path.startswith(f"{FOLDER}/")}
    assert there == {*datasets[-1].shards, f"{FOLDER}/{MANIFEST}"}


def main() -> int:
    parser = argparse.ArgumentParser(description="Write shards while the syncer is killed, and check the repository.")
    parser.add_argument("--shards", type=int, default=2000)
    parser.add_argument("--kills", type=int, default=20)
    parser.add_argument("--seed", type=int, default=random.SystemRandom().randrange(10**6))
    arguments = parser.parse_args()
    print(f"seed {arguments.seed}", flush=True)
    with tempfile.TemporaryDirectory() as folder:
        print(soak(Path(folder), arguments.shards, arguments.kills, arguments.seed))
    return 0


if __name__ == "__main__":
    sys.exit(main())
