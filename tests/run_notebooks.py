"""Runs tutorials as notebooks, from top to bottom: `PYTHONPATH=... python tests/run_notebooks.py images tokens`.

Each runs in a folder of its own, target/notebooks/NAME, and stays there with its outputs. `make notebooks` runs each
in the environment that has its packages.
"""

import socket
import sys
import tempfile
from contextlib import ExitStack
from pathlib import Path

import nbformat  # type: ignore[import-not-found]
from nbclient import NotebookClient  # type: ignore[import-not-found]

import examples
import hub
from notebooks import FOLDER, TUTORIALS, notebook

# Of a page.
_TIMEOUT_S = 600


def run(name: str) -> int:
    """Run a tutorial. Returns how many cells were run; a cell that fails is an error that shows it."""
    text, env = (TUTORIALS / f"{name}.md").read_text(), examples.ENVIRONMENT
    folder = FOLDER / name
    folder.mkdir(parents=True, exist_ok=True)
    with ExitStack() as stack:
        temporary = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        env = env | {"SAFETENSORS_SPARK_CACHE": str(temporary / "cache"), "XDG_CACHE_HOME": str(temporary / "cache")}
        if name == "hub":
            env |= stack.enter_context(hub.running(temporary / "hub")).environment()
        if name == "s3":
            env["PYSPARK_SUBMIT_ARGS"] = f"--jars {_jars_of_s3()} {examples.SUBMIT}"
        if name == "connect":
            text = text.replace("15002", str(_free_port()))
        book = nbformat.from_dict(notebook(text))
        nbformat.validate(book)
        try:
            NotebookClient(book, timeout=_TIMEOUT_S, resources={"metadata": {"path": str(folder)}}).execute(env=env)
        finally:
            nbformat.write(book, folder / f"{name}.ipynb")
    return sum(cell.cell_type == "code" for cell in book.cells)


def _jars_of_s3() -> str:
    from filesystem_jars import filesystem_jars

    return ",".join(str(jar) for jar in filesystem_jars() if "minicluster" not in jar.name)


def _free_port() -> int:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return int(free.getsockname()[1])


if __name__ == "__main__":
    for name in sys.argv[1:]:
        print(f"{name}: {run(name)} cells", flush=True)
