"""Writes to a small disk without Spark; prints what `test_python_writer` asks for."""

import json
import sys
from pathlib import Path

import numpy as np

from safetensors_spark.dataset import DatasetWriter, open_dataset

path = Path(json.loads(sys.argv[1])["path"])


def write(rows: int) -> None:
    with DatasetWriter(path, batch_size=rows // 10) as writer:
        writer.write({"x": np.arange(rows, dtype=np.float32)})


write(1000)
before = sorted(str(one) for one in path.rglob("*"))
try:
    write(100_000_000)
    error = ""
except OSError as failure:
    error = str(failure)
left = sorted({str(one) for one in path.rglob("*")} - set(before))
write(1000)
print(json.dumps({"error": error, "left": left, "rows": len(open_dataset(path))}))
