"""Errors of the factory."""

from __future__ import annotations

from safetensors_spark._errors import PipelineError


class ConfigError(PipelineError):
    """A configuration that describes no pipeline. It names the line, where it comes from a file."""


class ContractError(PipelineError):
    """An operator did what its kind may not do."""


class ChangedStageError(PipelineError):
    """A stage was made by another configuration or by other code."""
