"""A Spark application whose executors are processes of their own; it writes and reads where it is told to.

Run as `python filesystem_job.py CONF`, a JSON object of Spark's settings. Each line of standard input is a JSON object,
`do`, the name of a function of this file, and its arguments; each line of standard output is the answer to one.
"""

import json
import os
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from py4j.protocol import Py4JJavaError  # type: ignore[import-untyped]
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

import quick_jvm
import safetensors_spark as sts

ROWS = 24
# The third one has an executor to itself: when its task fails for the last time, no other one is under way.
PARTITIONS = 3


def start(conf: dict[str, str]) -> SparkSession:
    os.environ["PYSPARK_PYTHON"] = sys.executable
    fixed = {"driver.memory": "512m", "executor.memory": "512m", "ui.enabled": "false", "driver.host": "127.0.0.1"}
    settings: dict[str, Any] = {f"spark.{name}": value for name, value in fixed.items()} | quick_jvm.CONF | conf
    return sts.configure(SparkSession.builder.config(map=settings)).master("local-cluster[2,1,1024]").getOrCreate()


def write(
    spark: SparkSession, path: str, first: int, options: dict[str, Any], mode: str = "append", bad: int | None = None
) -> str | None:
    """Writes the numbers from `first` on, `bad` as a null, which fails. Gives the error's message."""
    number = f"if(id = {first + ROWS if bad is None else bad}, null, cast(id as float))"
    rows = spark.range(first, first + ROWS, 1, PARTITIONS).selectExpr("'k' || id as k", f"array({number}, 0.5F) as x")
    try:
        rows.write.format("safetensors").mode(mode).options(columns="x", **options).save(path)
    except (PySparkException, Py4JJavaError) as error:
        return str(error)
    return None


def appends(spark: SparkSession, path: str, firsts: list[int], options: dict[str, Any]) -> list[str | None]:
    """One append for each of `firsts`, all at once."""
    with ThreadPoolExecutor(len(firsts)) as threads:
        return list(threads.map(lambda first: write(spark, path, first, options), firsts))


def read(spark: SparkSession, path: str, names: list[str]) -> list[dict[str, Any]]:
    """Each file's tensors of these names: dtype, shape, and the bytes as hexadecimal digits."""
    tensor = "struct<data: binary, shape: array<int>, dtype: string>"
    schema = ", ".join(f"`{name}` {tensor}" for name in names)
    rows = spark.read.format("safetensors").schema(schema).load(path).collect()
    return [{name: [t["dtype"], t["shape"], t["data"].hex()] for name, t in row.asDict().items() if t} for row in rows]


def query(
    spark: SparkSession,
    path: str,
    columns: list[str],
    layout: str = "wide",
    schema: str | None = None,
    where: str = "true",
    meanwhile: dict[str, str] | None = None,
) -> list[Any] | str:
    """The rows, with bytes as hexadecimal digits, or the error's message.

    `meanwhile` names files that are replaced by ones of this machine, or deleted, between planning and reading.
    """
    reader = spark.read.format("safetensors").option("layout", layout)
    rows = (reader.schema(schema) if schema else reader).load(path).where(where).selectExpr(*columns)
    rows._jdf.queryExecution().executedPlan()
    for name, replacement in (meanwhile or {}).items():
        replace(spark, f"{path}/{name}", replacement)
    try:
        return [row.asDict(recursive=True) for row in rows.collect()]
    except (PySparkException, Py4JJavaError) as error:
        return str(error)


def replace(spark: SparkSession, path: str, replacement: str) -> None:
    store, hadoop = file_system(spark, path)
    store.delete(hadoop.Path(path), False)
    if replacement:
        # Not `copyFromLocalFile`: S3A's own takes the server's "100 Continue" for its last word.
        source = file_system(spark, f"file://{replacement}")[0]
        hadoop.FileUtil.copy(source, hadoop.Path(replacement), store, hadoop.Path(path), False, store.getConf())


def upload(spark: SparkSession, path: str, files: list[str]) -> None:
    """Copies files of this machine to a folder."""
    for file in files:
        replace(spark, f"{path}/{Path(file).name}", file)


def download(spark: SparkSession, path: str, to: str) -> None:
    """Copies what is in a folder to one of this machine."""
    store, hadoop = file_system(spark, path)
    for status in store.listStatus(hadoop.Path(path)):
        store.copyToLocalFile(False, status.getPath(), hadoop.Path(f"file://{to}"), True)


def file_system(spark: SparkSession, path: str) -> tuple[Any, Any]:
    """The one that a path is on, and the package of Hadoop's paths."""
    hadoop: Any = spark._jvm.org.apache.hadoop.fs  # type: ignore[union-attr]
    return hadoop.Path(path).getFileSystem(spark._jsparkSession.sessionState().newHadoopConf()), hadoop


def as_digits(value: Any) -> str:
    return bytes(value).hex()


if __name__ == "__main__":
    session = start(json.loads(sys.argv[1]))
    functions = [write, appends, read, query, upload, download]
    actions: dict[str, Any] = {function.__name__: function for function in functions}
    for line in sys.stdin:
        arguments = json.loads(line)
        print(json.dumps(actions[arguments.pop("do")](session, **arguments), default=as_digits), flush=True)
    session.stop()
