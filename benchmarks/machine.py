"""What a run ran on, and with what."""

import os
import platform
import re
import shlex
import subprocess
from collections.abc import Sequence
from datetime import datetime, timezone
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

# Of what is compared, and what is below it; those that are not in the environment are left out.
PACKAGES = (
    "safetensors-spark",
    "safetensors",
    "numpy",
    "pyarrow",
    "pyspark",
    "torch",
    "mosaicml-streaming",
    "webdataset",
    "litdata",
    "datasets",
    "grain",
    "spdl",
    "megatron-energon",
    "lmdb",
    "pylance",
    "huggingface-hub",
    "datatrove",
    "ray",
    "daft",
    "isal",
)


def run(arguments: Sequence[str], target: str = "make bench", name: str = "BENCH") -> dict[str, Any]:
    """What tables tell of their run."""
    given = f' {name}="{shlex.join(arguments)}"' if arguments else ""
    return {
        "command": f"{target}{given}",
        "date": datetime.now(timezone.utc).strftime("%Y-%m-%d"),
        "commit": _output("git", "rev-parse", "--short=7", "HEAD").strip(),
        "machine": {
            "cpu": _cpu(),
            "cores": os.cpu_count(),
            "memory": f"{os.sysconf('SC_PAGE_SIZE') * os.sysconf('SC_PHYS_PAGES') / (1 << 30):.0f} GiB",
            "system": f"{platform.system()} {platform.release()}",
            # Others' work at the beginning, as the average of processes that wanted a core.
            "load": round(os.getloadavg()[0], 1),
        },
        "versions": _versions(),
    }


def _versions() -> dict[str, str]:
    found = {"Python": platform.python_version()}
    if java := re.search(r'version "([^"]+)"', _output("java", "-version")):
        found["Java"] = java[1]
    for name in PACKAGES:
        try:
            found[name] = version(name)
        except PackageNotFoundError:
            continue
    return found


def _cpu() -> str:
    models = re.findall(r"model name\s*: (.*)", Path("/proc/cpuinfo").read_text())
    return models[0] if models else platform.machine()


def _output(*command: str) -> str:
    try:
        done = subprocess.run(command, capture_output=True, text=True, check=False)
    except FileNotFoundError:
        return ""
    # Java says its version as an error.
    return "" if done.returncode else done.stdout + done.stderr
