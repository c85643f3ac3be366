"""Four workers stage shards, and one stages a dataset again and again, while the syncer is killed.

python tests/publish/soaking.py SHARDS KILLS        # as `make soak` does: 2,000 and 20
"""

import json
import os
import random
import subprocess
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path
from typing import Any, NamedTuple

import hub
from safetensors_spark._files.manifest import MANIFEST, parse_manifest
from safetensors_spark.publish import list_pending
from syncing import REPO, run

_WORKERS = 4

_STAGE = """
import sys
import pandas as pd
from safetensors_spark.publish import ShardSchema, write_shard
staging, worker, count = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
for number in range(count):
    rows = pd.DataFrame({"worker": [worker] * 3, "number": [number] * 3, "value": [0.5, 1.5, 2.5]})
    shard = write_shard(rows, staging_dir=staging, run_id=f"w{worker}-{number}", schema=ShardSchema())
    print(shard.path_in_repo, flush=True)
"""

_REWRITE = """
import sys
import numpy as np
from pathlib import Path
from safetensors_spark.dataset import write_dataset
from safetensors_spark.publish import stage_dataset
staging, path, times = sys.argv[1], sys.argv[2], int(sys.argv[3])
for number in range(times):
    rows = np.full((12, 8), number, np.float32)
    write_dataset([{"x": rows}], path, batch_size=4, mode="overwrite" if number % 3 == 2 else "append")
    stage_dataset(path, staging_dir=staging, path_in_repo="points")
    print((Path(path) / "dataset_manifest.json").read_text().replace("\\n", " "), flush=True)
"""

_SYNC = """
import sys
from safetensors_spark.publish import sync_pending
sync_pending(sys.argv[1], repo_id="me/points", budget=100_000)
"""


class Soaked(NamedTuple):
    """What a soak has seen.

    Attributes:
        staged: the paths of shards.
        killed: how many syncers.
        commits: how many there were.
        added: how often each path was added by a commit.
        last: the paths of the last revision.
        datasets: for each revision with a manifest the number of its rows, and the shards that it lacks.
        seconds: what all of it took.
    """

    staged: list[str]
    killed: int
    commits: int
    added: Counter[str]
    last: set[str]
    datasets: list[tuple[int, set[str]]]
    seconds: float


def soak(folder: Path, shards: int, kills: int) -> Soaked:
    """Stage so many shards, sync them by syncers of which so many are killed, and say what the repository has."""
    began = time.monotonic()
    staging, chance = folder / "staging", random.Random(0)
    with hub.running(folder / "hub") as server:
        run(server, folder, "from huggingface_hub import create_repo; create_repo('me/points', repo_type='dataset')")
        environment = server.environment()
        each, more = divmod(shards, _WORKERS)
        counts = [each + (number < more) for number in range(_WORKERS)]
        arguments = [[_STAGE, str(staging), str(number), str(count)] for number, count in enumerate(counts)]
        arguments.append([_REWRITE, str(staging), str(folder / "points"), str(max(3, kills))])
        outputs = [folder / f"worker-{number}.txt" for number in range(len(arguments))]
        workers = [
            subprocess.Popen([sys.executable, "-c", *one], stdout=output.open("w"), env=environment)
            for one, output in zip(arguments, outputs, strict=True)
        ]
        killed = 0
        while killed < kills or any(worker.poll() is None for worker in workers) or list_pending(staging):
            syncer = subprocess.Popen([sys.executable, "-c", _SYNC, str(staging)], env=environment)
            # It takes a while to import the client; of what comes after it, any moment may be the last one.
            limit = chance.uniform(0.5, 6) if killed < kills else None
            try:
                assert syncer.wait(limit) == 0
            except subprocess.TimeoutExpired:
                syncer.kill()
                syncer.wait()
                killed += 1
        assert [worker.wait() for worker in workers] == [0] * len(workers)
        staged = [path for output in outputs[:-1] for path in output.read_text().split()]
        history = server.history(REPO)
        manifests = _manifests(server, folder, history)
        added = Counter(path for commit in history for path, one in commit["changes"].items() if one is not None)
        datasets = [
            _whole(manifests[commit["tree"][f"points/{MANIFEST}"]], set(commit["tree"]))
            for commit in history
            if f"points/{MANIFEST}" in commit["tree"]
        ]
        return Soaked(staged, killed, len(history), added, set(history[-1]["tree"]), datasets, time.monotonic() - began)


def _manifests(server: hub.Server, folder: Path, history: list[dict[str, Any]]) -> dict[str, bytes]:
    """The manifests of all revisions, by the names that trees have for them."""
    path = f"points/{MANIFEST}"
    revisions = {commit["tree"][path]: commit["id"] for commit in history if path in commit["tree"]}
    code = f"""
        from huggingface_hub import hf_hub_download
        revisions = {revisions!r}
        found = {{
            name: Path(hf_hub_download("me/points", {path!r}, revision=one, repo_type="dataset")).read_text()
            for name, one in revisions.items()
        }}
        print(json.dumps(found))
    """
    found = json.loads(run(server, folder, code))
    return {name: text.encode() for name, text in found.items()}


def _whole(content: bytes, there: set[str]) -> tuple[int, set[str]]:
    manifest = parse_manifest(content, MANIFEST)
    return manifest.samples, {f"points/{shard.file}" for shard in manifest.shards} - there


def check(found: Soaked, shards: int, kills: int) -> None:
    """Raises if a shard is not in the repository exactly once, or a revision has a part of a dataset."""
    assert len(found.staged) == len(set(found.staged)) == shards
    assert found.killed == kills
    assert set(found.staged) <= found.last
    assert {path: found.added[path] for path in found.staged if found.added[path] != 1} == {}
    assert found.datasets
    assert [lacking for _, lacking in found.datasets if lacking] == []


if __name__ == "__main__":
    shards, kills = map(int, sys.argv[1:])
    with tempfile.TemporaryDirectory(dir=os.environ.get("SOAK_FOLDER")) as place:
        found = soak(Path(place), shards, kills)
    check(found, shards, kills)
    print(
        f"{shards:,} shards of {_WORKERS} workers, {found.killed} syncers killed: {found.commits:,} commits, each shard"
        f" in one of them; {len(found.datasets):,} revisions have a dataset, each whole; {found.seconds:,.0f} s"
    )
