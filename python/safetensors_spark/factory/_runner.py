"""Daft's runner, which is one for a process."""

from __future__ import annotations

from safetensors_spark._errors import PipelineError


def run_here() -> None:
    """Let Daft compute in this process. In a worker of Ray it would start plans of its own there.

    Raises `PipelineError` where the caller has chosen Ray for Daft, which is final for a process.
    """
    import daft

    if daft.get_or_infer_runner_type() == "native":
        return
    try:
        daft.set_runner_native()
    except Exception as error:
        raise PipelineError(
            "Daft's runner of this process is that of Ray, but the factory computes windows of rows where they are. "
            "Take the backend `processes`, or `ray`, or a process that has not set it."
        ) from error
