"""Writes that meet a full disk, first Spark's own, then the dataset's; and the same write when there is room.

Run as `python full_disk_job.py SETTINGS`, a JSON object: `local` and `path`, Spark's local directory and the dataset,
each on a small file system of its own. Prints a JSON object: for each of them the `error` that the write ends in and
`left`, the files that it leaves; and `samples` of the last one's shards.
"""

import json
import shutil
import sys
from pathlib import Path
from typing import Any

import quick_jvm
from application import start
from spark_io import error_of, write

# The rows take 100 MB, and a task may keep so much of them outside the heap: 512 MB / 4 / 4.
CONF = {"spark.master": "local[1]", "spark.driver.memory": "512m", "spark.executor.cores": "4"} | quick_jvm.CONF
ROOM = 10 << 20


def left(local: Path, path: Path) -> list[str]:
    return [str(file) for folder in [path, *local.glob("blockmgr-*")] for file in folder.rglob("*") if file.is_file()]


def run(local: Path, path: Path) -> dict[str, Any]:
    spark = start(CONF | {"spark.local.dir": str(local)})
    numbers = spark.range(0, 25_000, 1, 1)
    rows = numbers.selectExpr("cast(id AS string) AS k", "array_repeat(cast(id AS float), 1024) AS x")
    answer: dict[str, Any] = {}
    for name, disk in {"local": local.parent, "path": path.parent}.items():
        filler = disk / "filler"
        filler.write_bytes(bytes(shutil.disk_usage(disk).free - ROOM))
        error = error_of(lambda: write(rows, path, name_col="k"))
        answer[name] = {"error": error, "left": left(local, path)}
        filler.unlink()
    answer["samples"] = write(rows, path, name_col="k").samples
    spark.stop()
    return answer


if __name__ == "__main__":
    print(json.dumps(run(**{name: Path(value) for name, value in json.loads(sys.argv[1]).items()})))
