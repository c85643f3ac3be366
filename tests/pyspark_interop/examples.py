"""The examples of documents run, page after page in one process, so that they share a session.

Run as `python examples.py PAGE ...` in the folder that the examples fill.
"""

import os
import re
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

from quick_jvm import OPTIONS
from sbt import ROOT

SUBMIT = f"--driver-memory 1g --driver-java-options '{OPTIONS}' --conf spark.ui.enabled=false pyspark-shell"

# The command that was installed beside this Python, and a small heap.
ENVIRONMENT = {
    **os.environ,
    "PATH": os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]]),
    "PYTHONPATH": str(ROOT / "project"),
    "PYSPARK_PYTHON": sys.executable,
    "MLFLOW_DISABLE_TELEMETRY": "true",
    "PYSPARK_SUBMIT_ARGS": SUBMIT,
}

BLOCK = re.compile(r"^```(python|bash|sql)\n(.*?)^```$", re.DOTALL | re.MULTILINE)
# What a test must not run: it would install something else, or run all tests again.
NOT_RUN = re.compile(r"^(pip install|make) .*\n", re.MULTILINE)
# The examples read their data here. The tests replace it by the current folder.
DATA = re.compile(r"(?<=[`\"])/(data|models)/")


def program(text: str) -> str:
    """A page as one Python program, each line of which is where it is on the page."""
    text = DATA.sub(f"{Path.cwd()}/", text)
    lines = [""] * (text.count("\n") + 1)
    for block in BLOCK.finditer(text):
        language, code = block.groups()
        begin = text.count("\n", 0, block.start(2))
        if language == "python":
            lines[begin : begin + code.count("\n")] = code.splitlines()
        elif language == "bash":
            lines[begin] = f"__import__('subprocess').run(['bash', '-ec', {NOT_RUN.sub('', code)!r}], check=True)"
        else:
            statements = [statement for statement in code.split(";") if statement.strip()]
            lines[begin] = f"for statement in {statements!r}: spark.sql(statement).collect()"
    return "\n".join(lines)


def run(folder: Path, *pages: str, more: Mapping[str, str] | None = None) -> None:
    """Runs the examples of the pages in a folder; what fails is told with all that they printed.

    `more` is for their environment.
    """
    env = ENVIRONMENT | {"SAFETENSORS_SPARK_CACHE": str(folder / "cache")} | dict(more or {})
    command = [sys.executable, __file__, *pages]
    done = subprocess.run(command, cwd=folder, env=env, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


if __name__ == "__main__":
    for page in sys.argv[1:]:
        text = (ROOT / page).read_text()
        assert BLOCK.search(text), page
        exec(compile(program(text), str(ROOT / page), "exec"), {"__name__": "__main__"})
