"""`safetensors-spark pipeline --cluster=ray`: the same command as a job of a cluster."""

from __future__ import annotations

import asyncio
import shlex
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from safetensors_spark._errors import PipelineError
from safetensors_spark._extras import require


def submit(address: str | None, folder: Path, command: Sequence[str]) -> int:
    """Run a command on the cluster's head, in a copy of the folder, and print what it prints.

    Args:
        address: of the cluster's dashboard, such as `http://head:8265`. None for that of `RAY_ADDRESS`.

    Raises `PipelineError` if it fails. Ctrl-C stops the job.
    """
    require("ray", ("ray",))
    from ray.job_submission import JobStatus, JobSubmissionClient

    client = JobSubmissionClient(address)
    job = client.submit_job(entrypoint=shlex.join(command), runtime_env={"working_dir": str(folder)})
    try:
        asyncio.run(_print(client, job))
    except KeyboardInterrupt:
        client.stop_job(job)
        raise
    found = client.get_job_info(job)
    if found.status != JobStatus.SUCCEEDED:
        raise PipelineError(f"the job {job} on Ray ended as {found.status}: {found.message}")
    return 0


async def _print(client: Any, job: str) -> None:
    async for lines in client.tail_job_logs(job):
        sys.stdout.write(lines)
        sys.stdout.flush()
