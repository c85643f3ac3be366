"""Reads a store of many tensors by their keys, and appends to it. Each jar has a store that it wrote itself."""

from collections.abc import Iterator, Sequence
from pathlib import Path

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.functions import broadcast

from benchmarks.harness import Contender, Options, measure, table
from benchmarks.results import Table
from benchmarks.sessions import Session
from benchmarks.write import CORES, ROW_BYTES

LOOK_UPS = (1, 100, 1_000, 10_000)
SMALL = 16


def look_ups(sessions: Sequence[Session], options: Options, folder: Path) -> Iterator[Table]:
    """Of `--keys` tensors of 4 KB. Ratios are to a full scan by this jar."""
    contenders = []
    for session in sessions:
        store, name, keys, ours = str(folder / session.jar.name), session.named, options.keys, session.is_ours
        session.run(write, store, keys, ROW_BYTES, True)
        contenders.append(Contender(name("all tensors"), session.job(scan, store), None, ours))
        contenders += [
            Contender(name(f"keys in a list: {count:,}"), session.job(listed, store, keys, count), 10, ours)
            for count in LOOK_UPS
        ]
        contenders += [
            Contender(name("a join with 100 keys"), session.job(joined, store, keys, 100), 10, ours),
            Contender(name("a range of 100 keys"), session.job(between, store, keys, 100), 10, ours),
            Contender(name("COUNT(*)"), session.job(counted, store, keys), None, ours),
        ]
    seconds = measure(contenders, options.rounds, folder)
    yield table("look-ups", f"Look-ups among {options.keys:,} keys", contenders, seconds)


def appends(sessions: Sequence[Session], options: Options, folder: Path) -> Iterator[Table]:
    """One row to `--append-keys` tensors of 16 bytes. An append with an index should cost at most twice one without."""
    contenders = []
    for session in sessions:
        for kind, index in ("without an index", False), ("with an index", True):
            store = str(folder / f"{session.jar.name} {kind}")
            session.run(write, store, options.append_keys, SMALL, index)
            aim = 0.5 if index else None
            work = session.job(appended, store, index)
            contenders.append(Contender(session.named(f"append, {kind}"), work, aim, session.is_ours))
    seconds = measure(contenders, options.rounds, folder)
    yield table("appends", f"Appends to {options.append_keys:,} keys", contenders, seconds)


def write(spark: SparkSession, store: str, keys: int, size: int, index: bool) -> None:
    _write(tensors(spark, 0, keys, size), store, index)


def _write(df: DataFrame, store: str, index: bool) -> None:
    options = {"name_col": "k", "generate_index": str(index).lower()}
    df.write.format("safetensors").options(**options).mode("append").save(store)


def tensors(spark: SparkSession, begin: int, count: int, size: int) -> DataFrame:
    data = f"cast(rpad(cast(id as string), {size}, '.') as binary)"
    tensor = f"named_struct('data', {data}, 'shape', array({size}), 'dtype', 'U8') tensor"
    return spark.range(begin, begin + count, 1, CORES).selectExpr(f"{key('id')} k", tensor)


def key(number: str) -> str:
    """In the order of the numbers."""
    return f"lpad(cast({number} as string), 12, '0')"


def scan(spark: SparkSession, store: str) -> None:
    made(read(spark, store))


def listed(spark: SparkSession, store: str, keys: int, count: int) -> None:
    """Keys that are far from each other."""
    wanted = [f"{number:012}" for number in range(0, keys, max(keys // count, 1))][:count]
    quoted = ", ".join(f"'{key}'" for key in wanted)
    made(read(spark, store).where(f"tensor_key in ({quoted})"))


def joined(spark: SparkSession, store: str, keys: int, count: int) -> None:
    """With half of the rows of a small table: Spark only looks up the keys of a table that has a condition."""
    others = spark.range(0, 2 * count, 1, 1).selectExpr(
        f"{key(f'id * {max(keys // (2 * count), 1)}')} tensor_key", "id % 2 half"
    )
    made(read(spark, store).join(broadcast(others.where("half = 0")), "tensor_key"))


def between(spark: SparkSession, store: str, keys: int, count: int) -> None:
    begin = keys // 2
    made(read(spark, store).where(f"tensor_key between '{begin:012}' and '{begin + count - 1:012}'"))


def counted(spark: SparkSession, store: str, keys: int) -> None:
    assert read(spark, store).count() == keys


def appended(spark: SparkSession, store: str, index: bool) -> None:
    _write(tensors(spark, read(spark, store).count(), 1, SMALL).coalesce(1), store, index)


def read(spark: SparkSession, store: str) -> DataFrame:
    return spark.read.format("safetensors").option("layout", "long").load(store)


def made(df: DataFrame) -> None:
    df.write.format("noop").mode("overwrite").save()
