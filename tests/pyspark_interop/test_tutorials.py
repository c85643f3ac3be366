"""Tutorials whose servers and executors are processes of their own, from top to bottom."""

import socket
from pathlib import Path

import examples
from filesystem_jars import filesystem_jars


def test_clusters_and_s3(tmp_path: Path) -> None:
    jars = ",".join(str(jar) for jar in filesystem_jars() if "minicluster" not in jar.name)
    examples.run(tmp_path, "docs/tutorials/s3.md", more={"PYSPARK_SUBMIT_ARGS": f"--jars {jars} {examples.SUBMIT}"})


def test_connect(tmp_path: Path) -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = str(free.getsockname()[1])
    examples.run(tmp_path, "docs/tutorials/connect.md", instead={"15002": port})
