"""Errors of the factory."""

from __future__ import annotations

from safetensors_spark._errors import PipelineError


class ConfigError(PipelineError):
    """A configuration that describes no pipeline. It names the line, where it comes from a file.

    Attributes:
        place: the keys and numbers that lead to what is wrong, within what was configured.
    """

    def __init__(self, message: str, place: tuple[str | int, ...] = ()) -> None:
        super().__init__(message)
        self.place = place


class ContractError(PipelineError):
    """An operator did what its kind may not do."""


class ChangedStageError(PipelineError):
    """A stage was made by another configuration or by other code."""
