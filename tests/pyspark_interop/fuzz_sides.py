"""The sides of the fuzz, each in a process that may crash or hang: the official library, and our reader."""

import json
import os
import queue
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import safetensors_spark as sts
from filesystem_jars import SPARK_JARS
from official import JUDGE
from sbt import ROOT, java

READER = "io.github.semyonsinchenko.safetensors.fuzz.FuzzReader"
# No header's claims fit in it.
HEAP = "-Xmx64m"
# A JVM may take minutes to start where dozens of processes share two cores.
SECONDS_FOR_A_CASE = 300.0

Answer = dict[str, Any]


class Side:
    """A process that answers a path in each line with a line of JSON; it is started again when it ends."""

    def __init__(self, command: list[str]) -> None:
        self._command = command
        self._process: subprocess.Popen[bytes] | None = None
        self._lines: queue.Queue[bytes] = queue.Queue()
        self._works = False

    def answers(self, paths: list[Path]) -> list[Answer]:
        """An answer for each file. `{"fault": what}` stands for a crash, or for no answer in time."""
        found: list[Answer] = []
        while len(found) < len(paths):
            found.extend(self._until_a_fault(paths[len(found) :]))
        return found

    def _until_a_fault(self, paths: list[Path]) -> list[Answer]:
        process = self._running()
        assert process.stdin is not None
        found: list[Answer] = []
        try:
            process.stdin.write("".join(json.dumps(str(path)) + "\n" for path in paths).encode())
            process.stdin.flush()
            for _ in paths:
                line = self._lines.get(timeout=SECONDS_FOR_A_CASE)
                if not line:
                    return [*found, self._ended("the process ended")]
                found.append(json.loads(line))
                self._works = True
        except queue.Empty:
            return [*found, self._ended(f"no answer within {SECONDS_FOR_A_CASE:.0f} seconds")]
        except BrokenPipeError:
            return [self._ended("the process ended")]
        return found

    def _running(self) -> subprocess.Popen[bytes]:
        if self._process is None:
            self._process = subprocess.Popen(self._command, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
            self._lines = queue.Queue()
            threading.Thread(target=_copy, args=(self._process.stdout, self._lines), daemon=True).start()
        return self._process

    def _ended(self, why: str) -> Answer:
        self.close()
        if not self._works:
            raise RuntimeError(f"{why} before it answered anything: {self._command}")
        return {"fault": why}

    def close(self) -> None:
        if self._process is not None:
            self._process.kill()
            self._process.wait()
            self._process = None


def _copy(stream: Any, lines: "queue.Queue[bytes]") -> None:
    """Every line, and an empty one at the end."""
    for line in stream:
        lines.put(line)
    lines.put(b"")


def official_side() -> Side:
    return Side([sys.executable, str(JUDGE)])


def our_side() -> Side:
    """The reader of the package's jar."""
    paths = os.pathsep.join([str(_compiled()), sts.jar_path(), str(SPARK_JARS / "*")])
    return Side([java(), HEAP, "-XX:+UseSerialGC", "-cp", paths, READER])


def _compiled() -> Path:
    """The folder where sbt has compiled the reader's main class last."""
    place = f"{READER.replace('.', '/')}.class"
    found = list(ROOT.glob(f"scala/target/tests-*/scala-2.13/test-classes/{place}"))
    if not found:
        raise FileNotFoundError(f"{READER} is not compiled: run `python project/sbt.py tests/Test/compile` first.")
    return max(found, key=lambda file: file.stat().st_mtime).parents[place.count("/")]
