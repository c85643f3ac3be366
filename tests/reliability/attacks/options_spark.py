"""Options of Spark's reader and writer, and names of columns, that nobody should give."""

import random
import tempfile
from collections import Counter
from functools import partial
from pathlib import Path
from typing import Any

from reliability.attacks.errors import told
from reliability.attacks.spark_session import outcome, session
from reliability.check import Check, Outcome

TRIES = 1500
READING = ["layout", "inferSchema", "mergeSchema", "decode", "pathGlobFilter", "recursiveFileLookup", "basePath",
           "ignoreCorruptFiles", "ignoreMissingFiles", "refuseRepeatedNames"]  # fmt: skip
WRITING = ["batch_size", "tail_strategy", "name_col", "kv_separator", "duplicatesStrategy", "target_shard_size_mb",
           "generate_index", "key_buckets", "columns", "ragged", "shapes", "dtype", "rounding", "metadata"]  # fmt: skip


def run(scale: float) -> Outcome:
    from reliability.attacks.odd import NAMES, PATHS, TEXTS
    from reliability.attacks.victims import build

    seen: Counter[str] = Counter()
    with tempfile.TemporaryDirectory() as folder, session() as spark:
        victims = build(Path(folder))
        for number in range(int(TRIES * scale)):
            chance = random.Random(number)
            value = chance.choice([chance.choice(TEXTS), chance.choice(NAMES), chance.choice(PATHS)])
            if chance.random() < 0.4:
                name, action = chance.choice(READING), _read
            else:
                name, action = chance.choice([*WRITING, ""]), _write
            try:
                seen[outcome(partial(action, spark, Path(folder), victims["batches"], name, value))] += 1
            except AssertionError as error:
                raise AssertionError(f"try {number}: {name or 'a column'} {value[:300]!r}") from error
        assert sorted(one.name for one in Path(folder, "secret").iterdir()) == ["a.safetensors"]
    return Outcome(seen.total(), told(seen))


def _read(spark: Any, folder: Path, batches: Path, name: str, value: str) -> None:
    options = {"layout": "rows", "decode": "true", name: value}
    spark.read.format("safetensors").options(**options).load(str(batches)).collect()


def _write(spark: Any, folder: Path, batches: Path, name: str, value: str) -> None:
    column = value[:1000] if not name else "v"
    frame = spark.createDataFrame([("a", [1.0, 2.0]), ("b", [3.0, 4.0])], ["k", "x"]).withColumnRenamed("x", column)
    if name in ("name_col", "kv_separator", "duplicatesStrategy", "key_buckets"):
        options = {"name_col": "k", name: value}
    else:
        options = {"batch_size": "2", name or "rounding": value if name else "truncate"}
    frame.write.format("safetensors").options(**options).mode("overwrite").save(str(folder / "made"))


CHECK = Check(
    name="options-spark",
    kind="attack",
    environment="spark",
    what="each option of reading and writing with texts of every plane, absurd numbers, deep JSON and paths, and "
    "columns of such names",
    holds="Spark reads or writes, or an error of ours or of its analysis says what is wrong.",
    run=run,
)
