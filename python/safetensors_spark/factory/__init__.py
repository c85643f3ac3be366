"""Curates datasets of the Hugging Face library: `run(pipeline, dataset, out)`."""

from safetensors_spark._extras import require

require("factory", ("PIL", "daft", "datasets", "pyarrow", "pydantic", "yaml"))

from safetensors_spark.dataset import Curriculum  # noqa: E402
from safetensors_spark.factory._caps import Caps  # noqa: E402
from safetensors_spark.factory._config import PipelineConfig, load_config, load_pipeline  # noqa: E402
from safetensors_spark.factory._errors import ChangedStageError, ConfigError, ContractError  # noqa: E402
from safetensors_spark.factory._hook import Hook, PartitionEnd, StageEnd, StageFiles, StageStart  # noqa: E402
from safetensors_spark.factory._mixture import mix  # noqa: E402
from safetensors_spark.factory._operator import (  # noqa: E402
    Deduplicator,
    Evaluator,
    Filter,
    Generator,
    Keys,
    NewRows,
    Operator,
    Refiner,
    Score,
)
from safetensors_spark.factory._pipeline import Pipeline, Stage  # noqa: E402
from safetensors_spark.factory._plan import plan  # noqa: E402
from safetensors_spark.factory._registry import register  # noqa: E402
from safetensors_spark.factory._report import Report, report  # noqa: E402
from safetensors_spark.factory._run import run  # noqa: E402
from safetensors_spark.factory._sinks import from_safetensors, to_safetensors  # noqa: E402

__all__ = [
    "Caps",
    "ChangedStageError",
    "ConfigError",
    "ContractError",
    "Curriculum",
    "Deduplicator",
    "Evaluator",
    "Filter",
    "Generator",
    "Hook",
    "Keys",
    "NewRows",
    "Operator",
    "PartitionEnd",
    "Pipeline",
    "PipelineConfig",
    "Refiner",
    "Report",
    "Score",
    "Stage",
    "StageEnd",
    "StageFiles",
    "StageStart",
    "from_safetensors",
    "load_config",
    "load_pipeline",
    "mix",
    "plan",
    "register",
    "report",
    "run",
    "to_safetensors",
]
