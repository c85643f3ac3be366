"""Lazy pipelines: from files to records to files and datasets, on this machine, on Ray or on Spark.

    pipeline = (
        Dataset.from_files("in/", "**/*.jsonl.gz")
        .flat_map(load_jsonl).filter(col("score") > 0.5).map(transform)
        .write_parquet("out/data-{shard:05d}-of-{total:05d}.parquet")
    )
    list(create_backend("processes").execute(pipeline))

Needs `pip install "safetensors-spark[pipeline]"`. Errors are those of `safetensors_spark`.
"""

from safetensors_spark._extras import require

require("pipeline", ("cloudpickle", "fsspec", "isal", "orjson", "pyarrow", "zstandard"))

from safetensors_spark.pipeline import counters  # noqa: E402
from safetensors_spark.pipeline._backend import (  # noqa: E402
    Backend,
    ProcessBackend,
    RayBackend,
    SparkBackend,
    SyncBackend,
    ThreadPoolBackend,
    create_backend,
    flow_backend,
    set_flow_backend,
)
from safetensors_spark.pipeline._context import ZephyrContext  # noqa: E402
from safetensors_spark.pipeline._dataset import Dataset  # noqa: E402
from safetensors_spark.pipeline._expression import Expr, col, lit  # noqa: E402
from safetensors_spark.pipeline._formats.readers import (  # noqa: E402
    load_file,
    load_jsonl,
    load_parquet,
    load_vortex,
)
from safetensors_spark.pipeline._operations import ShardInfo  # noqa: E402
from safetensors_spark.pipeline._plan import Plan  # noqa: E402
from safetensors_spark.pipeline._results import Results  # noqa: E402
from safetensors_spark.pipeline._shared import get_shared  # noqa: E402

__all__ = [
    "Backend",
    "Dataset",
    "Expr",
    "Plan",
    "ProcessBackend",
    "RayBackend",
    "Results",
    "ShardInfo",
    "SparkBackend",
    "SyncBackend",
    "ThreadPoolBackend",
    "ZephyrContext",
    "col",
    "counters",
    "create_backend",
    "flow_backend",
    "get_shared",
    "lit",
    "load_file",
    "load_jsonl",
    "load_parquet",
    "load_vortex",
    "set_flow_backend",
]
