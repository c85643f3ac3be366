"""The examples of documents run, page after page in one process, so that they share a session.

Run as `python examples.py [--but TEXT] [--instead TEXT=OTHER] PAGE ...` in the folder that the examples fill.
"""

import argparse
import doctest
import io
import os
import re
import subprocess
import sys
import textwrap
from collections.abc import Mapping, Sequence
from pathlib import Path

from blocks import BLOCK, NOT_RUN
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

# The examples read their data here. The tests replace it by the current folder.
DATA = re.compile(r"(?<=[`\"])/(data|models|mnt)/")


def block(page: str, text: str) -> str:
    """The one block of Python on a page that has this text, which may be part of a list."""
    blocks = re.findall(r"^( *)```python\n(.*?)^\1```$", (ROOT / page).read_text(), re.DOTALL | re.MULTILINE)
    (found,) = [code for _, code in blocks if text in code]
    return textwrap.dedent(found)


def program(text: str, but: Sequence[str] = ()) -> str:
    """A page as one Python program, whose lines keep their numbers, without blocks that have one of the texts `but`."""
    text = DATA.sub(f"{Path.cwd()}/", text)
    lines = [""] * (text.count("\n") + 1)
    for found in BLOCK.finditer(text):
        language, code, printed = found.groups()
        if any(one in code for one in but):
            continue
        begin = text.count("\n", 0, found.start(2))
        if printed is not None:
            lines[begin - 1], lines[begin + code.count("\n")] = "_printed.begin()", f"_printed.end({printed!r})"
        if language == "python":
            lines[begin : begin + code.count("\n")] = code.splitlines()
        elif language == "bash":
            lines[begin] = f"_shell({NOT_RUN.sub('', code)!r}, told={printed is not None})"
        else:
            statements = [statement for statement in code.split(";") if statement.strip()]
            lines[begin] = f"for statement in {statements!r}: spark.sql(statement).collect()"
    return "\n".join(lines)


class Printed:
    """What blocks print, held against what the page says; `...` there stands for anything."""

    def begin(self) -> None:
        self._stdout, sys.stdout = sys.stdout, io.StringIO()

    def end(self, expected: str) -> None:
        assert isinstance(sys.stdout, io.StringIO)
        printed, sys.stdout = sys.stdout.getvalue(), self._stdout
        print(printed, end="")
        if not doctest.OutputChecker().check_output(expected, printed, _AS_THE_PAGE_SAYS):
            raise AssertionError(f"The page says:\n{expected}\nThe block printed:\n{printed}")


_AS_THE_PAGE_SAYS = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE


def shell(code: str, told: bool) -> None:
    """Run a block of bash, whose output goes where Python's does if the page tells it."""
    done = subprocess.run(["bash", "-ec", code], check=True, stdout=subprocess.PIPE if told else None, text=True)
    if told:
        print(done.stdout, end="")


def run(
    folder: Path,
    *pages: str,
    more: Mapping[str, str] | None = None,
    but: Sequence[str] = (),
    instead: Mapping[str, str] | None = None,
) -> None:
    """Runs the examples of the pages in a folder; what fails is told with all that they printed.

    `more` is for their environment. Blocks that have one of the texts `but` are not run. `instead` has texts of the
    pages, and what to run in their place.
    """
    env = ENVIRONMENT | {"SAFETENSORS_SPARK_CACHE": str(folder / "cache")} | dict(more or {})
    command = [sys.executable, __file__, *(f"--but={one}" for one in but), *pages]
    command[2:2] = [f"--instead={one}={other}" for one, other in (instead or {}).items()]
    done = subprocess.run(command, cwd=folder, env=env, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


def run_file(folder: Path, name: str, more: Mapping[str, str] | None = None) -> str:
    """Runs a file of `examples/` in a folder. Returns what it printed."""
    env = ENVIRONMENT | {"SAFETENSORS_SPARK_CACHE": str(folder / "cache")} | dict(more or {})
    command = [sys.executable, str(ROOT / "examples" / name)]
    done = subprocess.run(command, cwd=folder, env=env, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--but", action="append", default=[])
    parser.add_argument("--instead", action="append", default=[])
    parser.add_argument("pages", nargs="+")
    args = parser.parse_args()
    for page in args.pages:
        text = (ROOT / page).read_text()
        assert BLOCK.search(text), page
        for one, other in (pair.split("=", 1) for pair in args.instead):
            assert one in text, one
            text = text.replace(one, other)
        names = {"__name__": "__main__", "_printed": Printed(), "_shell": shell}
        exec(compile(program(text, args.but), str(ROOT / page), "exec"), names)
