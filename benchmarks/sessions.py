"""Spark sessions in processes of their own, one for each jar, so that one run compares several."""

import multiprocessing
import traceback
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

from pyspark.sql import SparkSession

from benchmarks.harness import Options
from benchmarks.write import settings
from safetensors_spark import jar_path

PACKAGE = "io.github.semyonsinchenko.safetensors"

# Of one of several sessions: together they leave most of the memory to the page cache, which holds what they read.
MEMORY = "4g"

CATALOG = {"spark.sql.catalog.safetensors": f"{PACKAGE}.SafetensorsCatalog"}


OURS = "this version"


@dataclass(frozen=True)
class Jar:
    """A jar to measure.

    Attributes:
        name: As the tables show it.
        path: Where it is.
        reads_datasets: Whether it has all layouts, and writes; else it only reads files with `layout=wide`.
    """

    name: str
    path: str
    reads_datasets: bool = True


class Session:
    """A Spark session of another process. It runs functions of modules, which get the session and arguments."""

    def __init__(self, jar: Jar, folder: Path) -> None:
        self.jar = jar
        context = multiprocessing.get_context("spawn")
        self._pipe, theirs = context.Pipe()
        self._process = context.Process(target=_serve, args=(theirs, jar, folder), daemon=True)
        self._process.start()
        theirs.close()

    @property
    def is_ours(self) -> bool:
        return self.jar.name == OURS

    def named(self, what: str) -> str:
        """What the tables call work of this jar."""
        return what if self.is_ours else f"{self.jar.name}: {what}"

    def run(self, function: Callable[..., Any], *arguments: Any) -> Any:
        self._pipe.send((function, arguments))
        result, error = self._pipe.recv()
        if error:
            raise RuntimeError(f"{self.jar.name}: {error}")
        return result

    def job(self, function: Callable[..., Any], *arguments: Any) -> Callable[[Path], Any]:
        """The same as a contender's work."""
        return lambda _: self.run(function, *arguments)

    def close(self) -> None:
        self._pipe.send(None)
        self._process.join()


def run_once(jar: Jar, folder: Path, function: Callable[..., Any], *arguments: Any) -> None:
    """Runs a function in a session of its own, so that what it leaves on the heap slows no contender down."""
    session = Session(jar, folder)
    try:
        session.run(function, *arguments)
    finally:
        session.close()


def jars(options: Options) -> list[Jar]:
    found = [Jar(OURS, jar_path())]
    if options.baseline:
        found.append(Jar("baseline", str(options.baseline.resolve())))
    if options.peer:
        found.append(Jar("peer", str(options.peer.resolve()), reads_datasets=False))
    return found


@contextmanager
def sessions(jars: Sequence[Jar], folder: Path) -> Iterator[list[Session]]:
    with ExitStack() as stack:
        opened = []
        for number, jar in enumerate(jars):
            opened.append(Session(jar, folder / str(number)))
            stack.callback(opened[-1].close)
        yield opened


def _serve(pipe: Connection, jar: Jar, folder: Path) -> None:
    catalog = CATALOG if jar.reads_datasets else {}
    ours = {**catalog, "spark.driver.memory": MEMORY, "spark.jars": jar.path}
    spark = SparkSession.builder.config(map={**settings(folder), **ours}).getOrCreate()
    while (task := pipe.recv()) is not None:
        function, arguments = task
        try:
            pipe.send((function(spark, *arguments), None))
        except Exception:
            pipe.send((None, traceback.format_exc()))
    spark.stop()
