"""The examples of a document run, in one process."""

import os
import re
import subprocess
import sys
from pathlib import Path

from sbt import ROOT

# The command that was installed beside this Python, and a small heap.
ENVIRONMENT = {
    **os.environ,
    "PATH": os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]]),
    "PYSPARK_PYTHON": sys.executable,
    "MLFLOW_DISABLE_TELEMETRY": "true",
    "PYSPARK_SUBMIT_ARGS": "--driver-memory 1g --conf spark.ui.enabled=false pyspark-shell",
}


def script(page: Path) -> str:
    """All examples in one Python script; those for the shell are run by it where they stand."""
    blocks = re.findall(r"^```(python|bash)\n(.*?)^```$", page.read_text(), re.DOTALL | re.MULTILINE)
    shell = "import subprocess\nsubprocess.run(['bash', '-ec', {!r}], check=True)\n".format
    return "\n".join(shell(code) if language == "bash" else code for language, code in blocks)


def run(page: str, folder: Path) -> None:
    """Runs a page's examples in an empty folder; what fails is told with all that they printed."""
    code = script(ROOT / page)
    assert code
    done = subprocess.run([sys.executable, "-c", code], cwd=folder, env=ENVIRONMENT, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
