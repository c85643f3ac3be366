"""Servers of HDFS and of S3 on this machine, and a Spark application that writes to them."""

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import boto3  # type: ignore[import-untyped]

import quick_jvm
from failures import wait_for
from filesystem_jars import SPARK_JARS, filesystem_jars
from sbt import java

BUCKET = "datasets"


@dataclass(frozen=True)
class Request:
    """What S3 was asked of an object; `range` is the first byte and the last, none for all of it."""

    method: str
    range: tuple[int, int] | None

    @staticmethod
    def of(entry: dict[str, Any]) -> "Request":
        if entry["range"] is None:
            return Request(entry["method"], None)
        first, last = entry["range"].removeprefix("bytes=").split("-")
        return Request(entry["method"], (int(first), int(last)))


class S3:
    """A bucket of a server of S3, with Hadoop's magic committer."""

    def __init__(self, endpoint: str, log: Path) -> None:
        self.uri = f"s3a://{BUCKET}"
        self.endpoint = endpoint
        self._log = log
        s3a = {
            "endpoint": endpoint,
            "endpoint.region": "us-east-1",
            "path.style.access": "true",
            "connection.ssl.enabled": "false",
            "access.key": "test",
            "secret.key": "test",
            "committer.name": "magic",
            # What is asked for is what is fetched; the default of Hadoop 3.5 fetches more.
            "input.stream.type": "classic",
        }
        self.conf = {f"spark.hadoop.fs.s3a.{name}": value for name, value in s3a.items()}
        self.conf["spark.hadoop.mapreduce.outputcommitter.factory.scheme.s3a"] = (
            "org.apache.hadoop.fs.s3a.commit.S3ACommitterFactory"
        )
        self._client = boto3.client(
            "s3",
            endpoint_url=endpoint,
            region_name="us-east-1",
            aws_access_key_id="test",
            aws_secret_access_key="test",
        )
        self._client.create_bucket(Bucket=BUCKET)

    def etags(self, uri: str) -> dict[str, str]:
        """The ETag of each object below a folder, by name; it has a `-` if the object was uploaded in parts."""
        prefix = uri.removeprefix(f"{self.uri}/") + "/"
        pages = self._client.get_paginator("list_objects_v2").paginate(Bucket=BUCKET, Prefix=prefix)
        objects = {found["Key"].removeprefix(prefix): found["ETag"] for page in pages for found in page["Contents"]}
        # The folder's own marker is no file of it.
        return {name: etag for name, etag in objects.items() if name}

    def download(self, uri: str, to: Path) -> None:
        """Copies a folder. Hadoop's client would not do: that of 3.5 remembers what it once read."""
        for name in self.etags(uri):
            file = to / name
            file.parent.mkdir(parents=True, exist_ok=True)
            self._client.download_file(BUCKET, f"{uri.removeprefix(self.uri + '/')}/{name}", str(file))

    def requests(self, uri: str) -> dict[str, list[Request]]:
        """What was asked so far of each safetensors file of a folder, by name, in that order."""
        prefix = f"/{BUCKET}/{uri.removeprefix(f'{self.uri}/')}/"
        found: dict[str, list[Request]] = {}
        for line in self._log.read_text().splitlines():
            entry = json.loads(line)
            path: str = entry["path"]
            if path.startswith(prefix) and path.endswith(".safetensors"):
                found.setdefault(path.removeprefix(prefix), []).append(Request.of(entry))
        return found

    def put_conditions(self, uri: str) -> list[tuple[str | None, str | None]]:
        """`If-Match` and `If-None-Match` of each request that wrote an object, in that order."""
        entries = map(json.loads, self._log.read_text().splitlines())
        path = f"/{BUCKET}/{uri.removeprefix(f'{self.uri}/')}"
        return [(e["if_match"], e["if_none_match"]) for e in entries if (e["method"], e["path"]) == ("PUT", path)]

    def pending_uploads(self) -> list[str]:
        return [upload["Key"] for upload in self._client.list_multipart_uploads(Bucket=BUCKET).get("Uploads", [])]


@contextmanager
def process(command: list[str], folder: Path, log: str) -> Iterator[subprocess.Popen[bytes]]:
    """A server, as long as the block runs."""
    with (folder / log).open("wb") as output:
        server = subprocess.Popen(command, cwd=folder, stdout=output, stderr=output, stdin=subprocess.DEVNULL)
    try:
        yield server
    finally:
        server.kill()
        server.wait(60)


@contextmanager
def hdfs(folder: Path) -> Iterator[str]:
    """The address of a name node with two data nodes, in a process of their own; what they store is in `folder`."""
    jars = os.pathsep.join([str(SPARK_JARS / "*"), *map(str, filesystem_jars())])
    options = ["-nnport", "0", "-httpport", "0", "-datanodes", "2", "-format", "-writeDetails", "details.json"]
    jvm = [java(), "-Xmx256m", *quick_jvm.OPTIONS.split(), "-cp", jars]
    command = [*jvm, "org.apache.hadoop.test.MiniDFSClusterManager", *options]
    details = folder / "details.json"
    with process(command, folder, "hdfs.log") as server:
        wait_for(lambda: _runs(server, folder / "hdfs.log") and details.exists() and details.read_text().endswith("}"))
        yield f"hdfs://127.0.0.1:{json.loads(details.read_text())['namenode_port']}"


@contextmanager
def s3(folder: Path) -> Iterator[S3]:
    requests, log = folder / "requests.json", folder / "s3.log"
    command = [sys.executable, str(Path(__file__).with_name("s3_server.py")), str(requests)]
    with process(command, folder, log.name) as server:
        wait_for(lambda: _runs(server, log) and log.read_text().startswith("port ") and "\n" in log.read_text())
        yield S3(f"http://127.0.0.1:{log.read_text().split()[1]}", requests)


def _runs(server: "subprocess.Popen[bytes]", log: Path) -> bool:
    assert server.poll() is None, log.read_text()
    return True


class Cluster:
    """A Spark application of `filesystem_job.py`, which does what it is asked to."""

    def __init__(self, server: "subprocess.Popen[str]", log: Path) -> None:
        self._server = server
        self._log = log

    def ask(self, action: str, path: str, **arguments: Any) -> Any:
        assert self._server.stdin is not None
        assert self._server.stdout is not None
        print(json.dumps({"do": action, "path": path, **arguments}), file=self._server.stdin, flush=True)
        answer = self._server.stdout.readline()
        assert answer, self._log.read_text()
        return json.loads(answer)


@contextmanager
def cluster(folder: Path, conf: dict[str, str]) -> Iterator[Cluster]:
    """Spark with two executors, and S3A among its jars."""
    jars = [str(jar) for jar in filesystem_jars() if "minicluster" not in jar.name]
    job = str(Path(__file__).with_name("filesystem_job.py"))
    command = [sys.executable, job, json.dumps(conf | {"spark.jars": ",".join(jars)})]
    log = folder / "spark.log"
    with log.open("w") as output:
        server = subprocess.Popen(
            command, cwd=folder, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=output, text=True
        )
    try:
        yield Cluster(server, log)
    finally:
        server.communicate(timeout=60)
