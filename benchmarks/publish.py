"""Stages a table of Arrow as a shard, beside pyarrow's own write of it."""

from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa  # type: ignore[import-untyped]
import pyarrow.parquet as pq  # type: ignore[import-untyped]

from benchmarks.harness import Contender, Options, measure, table
from safetensors_spark.publish import ShardSchema, write_shard

# A row has about as many bytes as one of the embeddings of `--rows`.
WIDTH = 1024


def run(options: Options, folder: Path) -> Iterator[str]:
    yield staging(options, folder)


def staging(options: Options, folder: Path) -> str:
    rows = rows_of(options.rows // 8)
    contenders = [
        Contender("pyarrow's write_table", lambda place: pq.write_table(rows, place / "rows.parquet")),
        Contender("write_shard", partial(stage, rows), 0.8),
    ]
    return table(contenders, measure(contenders, options.rounds, folder), rows.nbytes)


def rows_of(count: int) -> Any:
    """Embeddings, and columns beside them."""
    random = np.random.default_rng(1)
    vectors = pa.FixedSizeListArray.from_arrays(random.random(count * WIDTH, dtype=np.float32), WIDTH)
    return pa.table({"x": vectors, "id": np.arange(count), "text": [f"row {number}" for number in range(count)]})


def stage(rows: Any, folder: Path) -> None:
    write_shard(rows, staging_dir=folder, run_id="run", schema=ShardSchema(columns={"id": pa.int64()}))
