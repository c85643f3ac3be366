"""Rows and datasets on their way to the Hugging Face Hub: workers stage them, and one syncer commits them.

Needs `pip install "safetensors-spark[publish]"`, and neither Spark nor Java. Errors are those of `safetensors_spark`.
"""

from safetensors_spark._extras import require

# Workers do not talk to the Hub.
require("publish", ("pyarrow",))

from safetensors_spark.publish._shard_schema import ShardSchema  # noqa: E402
from safetensors_spark.publish._stage_dataset import stage_dataset  # noqa: E402
from safetensors_spark.publish._staged import (  # noqa: E402
    StagedShard,
    ensure_staging_layout,
    list_pending,
    move_to,
    prune_orphans,
)
from safetensors_spark.publish._staging import FAILED_DIRNAME, PENDING_DIRNAME, SYNCED_DIRNAME  # noqa: E402
from safetensors_spark.publish._sync_pending import retry_failed, sync_pending  # noqa: E402
from safetensors_spark.publish._sync_report import SyncReport  # noqa: E402
from safetensors_spark.publish._sync_state import remaining_budget  # noqa: E402
from safetensors_spark.publish._write_shard import write_shard  # noqa: E402

__all__ = [
    "FAILED_DIRNAME",
    "PENDING_DIRNAME",
    "SYNCED_DIRNAME",
    "ShardSchema",
    "StagedShard",
    "SyncReport",
    "ensure_staging_layout",
    "list_pending",
    "move_to",
    "prune_orphans",
    "remaining_budget",
    "retry_failed",
    "stage_dataset",
    "sync_pending",
    "write_shard",
]
