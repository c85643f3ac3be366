"""A write that finds a disk full says which one and what to do, leaves nothing, and succeeds when there is room."""

import os
import subprocess
from functools import cache
from pathlib import Path

from application import answer_of
from spark_io import assert_says

MOUNT = 'for disk in "$0" "$1"; do mount -t tmpfs -o size=256m disk "$disk" || exit; done; shift; exec "$@"'


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


def test_a_full_disk_is_named_and_nothing_is_left_on_it(tmp_path: Path) -> None:
    disks = [tmp_path / "local", tmp_path / "dataset"]
    for disk in disks:
        disk.mkdir()
    local, path = disks[0] / "spark", disks[1] / "points"
    root, oneself = own_mounts()
    within = [*root, "sh", "-c", MOUNT, *map(str, disks), *oneself]
    answer = answer_of("full_disk_job.py", {"local": str(local), "path": str(path)}, within)
    assert_says(answer["local"]["error"], f"{local}/blockmgr-", "No space left on device", "`spark.local.dir`")
    assert_says(answer["path"]["error"], f"{path}/", "No space left on device", "another directory")
    assert answer["local"]["left"] == answer["path"]["left"] == []
    assert answer["samples"] == [25_000]
