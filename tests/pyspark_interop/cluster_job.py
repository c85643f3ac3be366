"""A write and a read where executors are processes of their own.

Run as `python cluster_job.py DIRECTORY`; prints a JSON object: the shards, the executor that ran each partition of the
write, the values as Spark reads and decodes them, the shards and the tensors of a key-value dataset beside it, the
error of an append to that, the values of a dataset that SQL creates and reads by path, and the columns that many files
have together, with the executors that looked.
"""

import json
import os
import sys
from pathlib import Path
from typing import Any

import numpy as np
from pyspark.sql import DataFrame, SparkSession
from safetensors.numpy import save_file

import quick_jvm
import safetensors_spark as sts
from safetensors_spark.functions import arr_to_st, st_to_array
from spark_io import error_of, read, write


def start() -> SparkSession:
    os.environ["PYSPARK_PYTHON"] = sys.executable
    return (
        sts.configure(SparkSession.builder)
        .master("local-cluster[2,1,1024]")
        .config("spark.driver.memory", "1g")
        .config("spark.executor.memory", "1g")
        .config("spark.ui.enabled", "false")
        .config(map=quick_jvm.CONF)
        # No task starts before both executors are there, so both get some.
        .config("spark.scheduler.minRegisteredResourcesRatio", "1.0")
        .config("spark.scheduler.maxRegisteredResourcesWaitingTime", "300s")
        .getOrCreate()
    )


def executors(spark: SparkSession, group: str) -> dict[int, str]:
    """The executor of each partition, in the jobs of a group."""
    context = spark.sparkContext
    context._jsc.sc().listenerBus().waitUntilEmpty()
    store = context._jsc.sc().statusStore()
    tracker = context.statusTracker()
    stages = [
        stage for job in tracker.getJobIdsForGroup(group) for stage in getattr(tracker.getJobInfo(job), "stageIds", ())
    ]
    tasks = [store.taskList(stage, 0, 1000) for stage in stages]
    return {
        task.index(): task.executorId() for listed in tasks for task in (listed.apply(i) for i in range(listed.size()))
    }


def tensors(spark: SparkSession, path: Path) -> DataFrame:
    long = spark.read.format("safetensors").option("layout", "long").load(str(path))
    found = long.where("tensor_key != 'absent' AND tensor.dtype = 'U8'")
    return found.select("tensor_key", st_to_array("tensor").alias("values"))


def by_path(spark: SparkSession, path: Path) -> list[list[float]]:
    """Creates, reads, encodes and decodes by the catalog alone."""
    tensor = "safetensors.arr_to_st(array(id), array(1), 'F16')"
    table = f"safetensors.`{path}`"
    spark.sql(f"CREATE TABLE {table} OPTIONS (batch_size 5) AS SELECT {tensor} AS x FROM range(0, 20, 1, 4)")
    found = spark.sql(f"SELECT safetensors.st_to_array(x) AS values FROM {table}")
    return [row["values"] for row in found.collect()]


def decoded_rows(spark: SparkSession, path: Path) -> dict[str, list[list[Any]]]:
    """Sequences and text, as they were written; the same in a table; and those appended to themselves as tensors."""
    source = spark.range(0, 20, 1, 4).selectExpr(
        "sequence(0, id) AS ids", "repeat('é', cast(id as int)) AS t", "id AS n"
    )
    write(source, path, batch_size=3, ragged="ids")
    reader = spark.read.format("safetensors").options(layout="rows", decode="true")
    source.write.format("safetensors").options(batch_size="3", ragged="ids").saveAsTable("of_the_cluster")
    found = {"path": reader.load(str(path)), "table": spark.table("of_the_cluster")}
    rows = {name: [list(row) for row in df.orderBy("n").collect()] for name, df in found.items()}
    spark.sql(f"INSERT INTO safetensors.rows.`{path}` SELECT * FROM safetensors.`{path}`")
    return rows | {"twice": [list(row) for row in reader.load(str(path)).orderBy("n").collect()]}


def merged(spark: SparkSession, folder: Path) -> dict[str, Any]:
    """Columns of more files than the driver looks at itself; and the error when one of them is broken."""
    folder.mkdir()
    for number in range(40):
        tensors: dict[str, np.ndarray[Any, Any]] = {
            "x": np.zeros(1, np.uint8),
            f"own {number}": np.zeros(2, np.float32),
        }
        save_file(tensors, folder / f"{number:02d}.safetensors")
    spark.sparkContext.setJobGroup("merge", "the headers")
    reader = spark.read.format("safetensors").option("mergeSchema", "true")
    nullable = {field.name: field.nullable for field in reader.load(str(folder)).schema}
    group = executors(spark, "merge")
    (folder / "31.safetensors").write_bytes(b"broken")
    return {"nullable": nullable, "executors": group, "error": error_of(lambda: reader.load(str(folder)))}


def run(spark: SparkSession, path: Path) -> dict[str, Any]:
    spark.sparkContext.setJobGroup("write", "the write")
    arrays = spark.range(0, 40, 1, 4).selectExpr("array(cast(id as float), 0.5F) as x")
    dataset = write(arrays.select(arr_to_st("x", [2], "BF16").alias("x")), path, batch_size=10)
    spark.sparkContext.setJobGroup("read", "the read")
    decoded = read(spark, path).select(st_to_array("x").alias("values"))
    keyed = path.with_name("keyed")
    options = {"name_col": "id", "dtype": "U8", "generate_index": "true"}
    first = write(spark.range(0, 40, 1, 4).selectExpr("id", "array(id, 7) as x"), keyed, **options)
    # Only the last row is wrong, so that it is the one which the error names.
    bad = spark.range(249, 257, 1, 4).selectExpr("id", "array(id, 7) as x")
    return {
        "keyed": [str(shard) for shard in first.shards],
        "error": error_of(lambda: write(bad, keyed, **options)),
        "shards": [str(shard) for shard in dataset.shards],
        "executors": executors(spark, "write"),
        "by_path": by_path(spark, path.with_name("by_path")),
        "decoded": decoded_rows(spark, path.with_name("decoded")),
        "tensors": {row["tensor_key"]: row["values"] for row in tensors(spark, keyed).collect()},
        "merged": merged(spark, path.with_name("many")),
        "values": [row["values"] for row in decoded.collect()],
    }


if __name__ == "__main__":
    session = start()
    try:
        print(json.dumps(run(session, Path(sys.argv[1]))))
    finally:
        session.stop()
