"""A write that finds a disk full says which one and what to do, leaves nothing, and succeeds when there is room."""

import os
import subprocess
from functools import cache
from pathlib import Path
from typing import Any

from application import answer_of
from spark_io import assert_says

MOUNT = 'mount -t tmpfs -o size=256m disk "$0" && exec "$@"'


@cache
def own_mounts() -> tuple[list[str], list[str]]:
    """The command to be root in a mount namespace of its own, and the command to be oneself there again.

    A user namespace does it, and sudo where the system keeps those for root, as Ubuntu does.
    """
    namespace = ["unshare", "--mount", "--map-root-user"]
    if subprocess.run([*namespace, "mount", "-t", "tmpfs", "disk", "/mnt"], check=False).returncode == 0:
        return namespace, []
    oneself = ["setpriv", "--reuid", str(os.getuid()), "--regid", str(os.getgid()), "--clear-groups"]
    return ["sudo", "-n", "unshare", "--mount"], [*oneself, "env", *(f"{k}={v}" for k, v in os.environ.items())]


def write_to_a_small_disk(tmp_path: Path, local: str, path: str) -> dict[str, Any]:
    disk = tmp_path / "disk"
    disk.mkdir()
    root, oneself = own_mounts()
    settings = {"disk": str(disk), "local": str(tmp_path / local), "path": str(tmp_path / path)}
    within = [*root, "sh", "-c", MOUNT, str(disk), *oneself]
    answer: dict[str, Any] = answer_of("full_disk_job.py", settings, within)
    return answer


def test_full_local_disk_is_named_and_nothing_is_left_on_it(tmp_path: Path) -> None:
    answer = write_to_a_small_disk(tmp_path, local="disk", path="dataset")
    assert_says(answer["error"], f"{tmp_path}/disk/blockmgr-", "No space left on device", "`spark.local.dir`")
    assert answer["left"] == []
    assert answer["samples"] == [25_000]


def test_full_disk_of_the_dataset_is_named_and_nothing_is_left_on_it(tmp_path: Path) -> None:
    answer = write_to_a_small_disk(tmp_path, local="local", path="disk/dataset")
    assert_says(answer["error"], f"{tmp_path}/disk/dataset/", "No space left on device", "another directory")
    assert answer["left"] == []
    assert answer["samples"] == [25_000]
