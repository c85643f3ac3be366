"""A write that meets a full disk, and the same write when there is room.

Run as `python full_disk_job.py SETTINGS`, a JSON object: `disk`, the directory of a small file system; `local` and
`path`, Spark's local directory and the dataset, one of them on that disk. Prints a JSON object: the `error` that the
first write ends in, `left`, the files that it leaves, and `samples` of the second one's shards.
"""

import json
import shutil
import sys
from pathlib import Path
from typing import Any

from application import start
from spark_io import error_of, write

# The rows take 100 MB, and a task may keep so much of them outside the heap: 512 MB / 4 / 4.
CONF = {"spark.master": "local[1]", "spark.driver.memory": "512m", "spark.executor.cores": "4"}
ROOM = 10 << 20


def left(local: Path, path: Path) -> list[str]:
    return [str(file) for folder in [path, *local.glob("blockmgr-*")] for file in folder.rglob("*") if file.is_file()]


def run(disk: Path, local: Path, path: Path) -> dict[str, Any]:
    spark = start(CONF | {"spark.local.dir": str(local)})
    numbers = spark.range(0, 25_000, 1, 1)
    rows = numbers.selectExpr("cast(id AS string) AS k", "array_repeat(cast(id AS float), 1024) AS x")
    filler = disk / "filler"
    filler.write_bytes(bytes(shutil.disk_usage(disk).free - ROOM))
    error = error_of(lambda: write(rows, path, name_col="k"))
    answer = {"error": error, "left": left(local, path)}
    filler.unlink()
    answer["samples"] = write(rows, path, name_col="k").samples
    spark.stop()
    return answer


if __name__ == "__main__":
    print(json.dumps(run(**{name: Path(value) for name, value in json.loads(sys.argv[1]).items()})))
