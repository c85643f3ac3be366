"""Stages a table of Arrow, beside pyarrow's own write of it, and syncs shards, beside a plain commit of such files."""

import os
from collections.abc import Iterator, Sequence
from functools import partial
from itertools import count
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa  # type: ignore[import-untyped]
import pyarrow.parquet as pq  # type: ignore[import-untyped]

import hub
from benchmarks.harness import Contender, Options, measure, table
from benchmarks.results import Table
from safetensors_spark.publish import PENDING_DIRNAME, ShardSchema, sync_pending, write_shard

# A row has about as many bytes as one of the embeddings of `--rows`.
WIDTH = 1024
# Of a sync: files of 16 MB.
FILES, FILE_ROWS = 16, 4096


def run(options: Options, folder: Path) -> Iterator[Table]:
    yield staging(options, folder)
    with hub.running(folder / "hub") as server:
        yield syncing(options, folder, server)


def staging(options: Options, folder: Path) -> Table:
    rows = rows_of(options.rows // 8)
    contenders = [
        Contender("pyarrow's `write_table`", lambda place: pq.write_table(rows, place / "rows.parquet"), is_ours=False),
        Contender("`write_shard`", partial(stage, rows), 0.8),
    ]
    return table("staging", "Staging", contenders, measure(contenders, options.rounds, folder), rows.nbytes)


def syncing(options: Options, folder: Path, server: hub.Server) -> Table:
    """Each run has files of its own, in a repository of its own: the Hub takes the same bytes once."""
    # Before the Hub's client is imported.
    os.environ.update(server.environment())
    from huggingface_hub import CommitOperationAdd, HfApi

    api, numbers = HfApi(), count()

    def prepared() -> Iterator[tuple[str, Path]]:
        for _ in range(options.rounds + 1):
            repo = f"me/bench{next(numbers)}"
            api.create_repo(repo, repo_type="dataset")
            place = folder / repo
            for file in range(FILES):
                stage(rows_of(FILE_ROWS, seed=next(numbers)), place, f"run-{file}")
            yield repo, place

    def commit(runs: Iterator[tuple[str, Path]], _: Path) -> None:
        repo, place = next(runs)
        found = sorted((place / PENDING_DIRNAME).glob("*.parquet"))
        files: Sequence[Any] = [CommitOperationAdd(f"data/{one.name}", one) for one in found]
        api.create_commit(repo, files, commit_message="all", repo_type="dataset")

    def sync(runs: Iterator[tuple[str, Path]], _: Path) -> None:
        repo, place = next(runs)
        if sync_pending(place, repo_id=repo).n_committed != FILES:
            raise RuntimeError("not all was committed")

    contenders = [
        Contender("`create_commit`", partial(commit, iter(list(prepared()))), is_ours=False),
        Contender("`sync_pending`", partial(sync, iter(list(prepared()))), 1 / 1.1),
    ]
    seconds = measure(contenders, options.rounds, folder)
    return table("syncing", "Syncing", contenders, seconds, FILES * rows_of(FILE_ROWS).nbytes)


def rows_of(count: int, seed: int = 1) -> Any:
    """Embeddings, and columns beside them."""
    random = np.random.default_rng(seed)
    vectors = pa.FixedSizeListArray.from_arrays(random.random(count * WIDTH, dtype=np.float32), WIDTH)
    return pa.table({"x": vectors, "id": np.arange(count), "text": [f"row {number}" for number in range(count)]})


def stage(rows: Any, folder: Path, run_id: str = "run") -> None:
    write_shard(rows, staging_dir=folder, run_id=run_id, schema=ShardSchema(columns={"id": pa.int64()}))
