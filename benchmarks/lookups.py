"""Looks up random keys among 300,000 tensors of 4 KB: this project's store, and what else holds values by key."""

import shutil
import sqlite3
import sys
import time
import warnings
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import lance
import lmdb
import numpy as np
import pyarrow as pa  # type: ignore[import-untyped]
import pyarrow.dataset as pds  # type: ignore[import-untyped]
import pyarrow.parquet as pq  # type: ignore[import-untyped]

from benchmarks.harness import Options, turns
from benchmarks.processes import apart, warm
from benchmarks.results import Measure, Result, Table
from benchmarks.samples import Array
from safetensors_spark.dataset import open_store

# No more than imported before the processes fork, in which it then works.
warnings.filterwarnings("ignore", "lance is not fork-safe")

VALUE_BYTES = 4096
CALL = 2000
# Look-ups of one kind end after as many seconds.
SECONDS = 1.0

FIRST, SINGLE = Measure("open and first look-up, ms"), Measure("one by one, a second", "more")
MANY = Measure(f"in calls of {CALL:,}, a second", "more")

Opened = tuple[Callable[[str], Array], Callable[[Sequence[str]], Sequence[Array]]]


@dataclass(frozen=True)
class Contender:
    """A way to keep values by key.

    Attributes:
        name: As the table shows it.
        write: Makes its files in an empty folder, from the table of keys and values in a Parquet file.
        open: What looks up one key, and what looks up many; each value an array that the caller owns.
        aims: The least that its rates should be, as ratios to LMDB's, one by one and in calls of many; ours has some.
    """

    name: str
    write: Callable[[Path, Path], object]
    open: Callable[[Path], Opened]
    aims: tuple[float, float] | None = None


@dataclass(frozen=True)
class Speed:
    """Seconds from nothing opened to the first value; and look-ups a second, one by one and many in a call."""

    first: float
    single: float
    many: float


def run(options: Options, folder: Path) -> Iterator[Table]:
    """Of 300,000 keys, or as many as there are rows."""
    count = min(options.rows, 300_000)
    source = folder / "source.parquet"
    apart(partial(write_source, count, source))
    for contender in CONTENDERS:
        print(f"look-ups: writing for {contender.name}", file=sys.stderr)
        place(folder, contender).mkdir()
        apart(partial(contender.write, source, place(folder, contender)))
    measured: dict[str, list[Speed]] = {contender.name: [] for contender in CONTENDERS}
    for number, contender in turns(CONTENDERS, options.rounds):
        print(f"round {number} of {options.rounds}: {contender.name}", file=sys.stderr)
        warm(place(folder, contender))
        done = apart(partial(speed, contender, place(folder, contender), count, number)).result
        if number > 0:
            measured[contender.name].append(done)
    yield table(measured)


def place(folder: Path, contender: Contender) -> Path:
    return folder / contender.name.strip("`").split()[0]


def speed(contender: Contender, folder: Path, count: int, seed: int) -> Speed:
    random = np.random.default_rng(seed)
    numbers = [int(number) for number in random.integers(0, count, 100_000)]
    keys = [key(number) for number in numbers]
    start = time.perf_counter()
    one, many = contender.open(folder)
    value = one(keys[0])
    first = time.perf_counter() - start
    check(contender, value, numbers[0])
    for value, number in zip(many(keys[:CALL]), numbers[:CALL], strict=True):
        check(contender, value, number)
    single = rate(lambda at: one(keys[at]), range(len(keys)), 1)
    return Speed(first, single, rate(lambda at: many(keys[at : at + CALL]), range(0, len(keys), CALL), CALL))


def rate(look_up: Callable[[int], object], places: range, size: int) -> float:
    """Look-ups a second; `size` of them are a call's."""
    done, start = 0, time.perf_counter()
    for at in places:
        look_up(at)
        done += size
        if time.perf_counter() - start > SECONDS:
            break
    return done / (time.perf_counter() - start)


def key(number: int) -> str:
    return f"key-{number:08d}"


def value(number: int) -> Array:
    """Random bytes of the key's own."""
    return np.frombuffer(np.random.default_rng(number).bytes(VALUE_BYTES), np.uint8)


def check(contender: Contender, found: Array, number: int) -> None:
    if not np.array_equal(found, value(number)):
        raise ValueError(f"{contender.name}: key {key(number)} has another value")


def table(measured: dict[str, list[Speed]]) -> Table:
    results = []
    for contender in CONTENDERS:
        own = measured[contender.name]
        values = {
            FIRST.name: [each.first * 1000 for each in own],
            SINGLE.name: [each.single for each in own],
            MANY.name: [each.many for each in own],
        }
        aims = dict(zip((SINGLE.name, MANY.name), contender.aims or (), strict=False))
        results.append(Result(contender.name, values, contender.aims is not None, aims))
    return Table("stores", "Look-ups", [FIRST, SINGLE, MANY], results, "LMDB")


# --- what is looked up in ---


def write_source(count: int, file: Path) -> None:
    """In the order of the keys, a row group of four megabytes each."""
    schema = pa.schema({"key": pa.string(), "value": pa.binary()})
    with pq.ParquetWriter(file, schema, compression="none", use_dictionary=False) as out:
        for begin in range(0, count, 1000):
            numbers = range(begin, min(begin + 1000, count))
            columns = [[key(number) for number in numbers], [value(number).tobytes() for number in numbers]]
            out.write_table(pa.table(columns, schema=schema))


def pairs(source: Path) -> Iterator[tuple[str, bytes]]:
    for batch in pq.ParquetFile(source).iter_batches(1000):
        yield from zip(batch["key"].to_pylist(), batch["value"].to_pylist(), strict=True)


def write_lmdb(source: Path, folder: Path) -> None:
    with lmdb.open(str(folder), map_size=16 << 30) as environment, environment.begin(write=True) as transaction:
        transaction.cursor().putmulti((each.encode(), value) for each, value in pairs(source))


def open_lmdb(folder: Path) -> Opened:
    transaction = lmdb.open(str(folder), readonly=True, lock=False).begin()
    cursor = transaction.cursor()

    def many(keys: Sequence[str]) -> list[Array]:
        found = cursor.getmulti([each.encode() for each in keys])
        return [np.frombuffer(value, np.uint8) for _, value in found]

    return lambda each: np.frombuffer(transaction.get(each.encode()), np.uint8), many


def write_store(source: Path, folder: Path) -> None:
    """By Spark, which alone writes an index."""
    from benchmarks.write import session

    spark = session(folder)
    tensor = f"named_struct('data', value, 'shape', array({VALUE_BYTES}), 'dtype', 'U8') tensor"
    tensors = spark.read.parquet(str(source)).selectExpr("key", tensor)
    options = {"name_col": "key", "generate_index": "true"}
    tensors.write.format("safetensors").options(**options).mode("overwrite").save(str(folder / "dataset"))
    spark.stop()
    shutil.rmtree(folder / "local", ignore_errors=True)


def open_safetensors(folder: Path) -> Opened:
    store = open_store(folder / "dataset")
    # Arrays of a store are views of its files.
    return lambda each: np.array(store[each]), lambda keys: list(store.stack(keys))


def write_sqlite(source: Path, folder: Path) -> None:
    with sqlite3.connect(folder / "data") as connection:
        connection.execute("CREATE TABLE tensors (key TEXT PRIMARY KEY, value BLOB)")
        connection.executemany("INSERT INTO tensors VALUES (?, ?)", pairs(source))
    connection.close()


def open_sqlite(folder: Path) -> Opened:
    connection = sqlite3.connect(f"file:{folder / 'data'}?mode=ro&immutable=1", uri=True)
    connection.execute(f"PRAGMA mmap_size = {16 << 30}")
    query = "SELECT value FROM tensors WHERE key = ?"

    def one(each: str) -> Array:
        return np.frombuffer(connection.execute(query, (each,)).fetchone()[0], np.uint8)

    def many(keys: Sequence[str]) -> list[Array]:
        places = ", ".join("?" * len(keys))
        rows = dict(connection.execute(f"SELECT key, value FROM tensors WHERE key IN ({places})", keys))
        return [np.frombuffer(rows[each], np.uint8) for each in keys]

    return one, many


def write_lance(source: Path, folder: Path) -> None:
    table = pq.read_table(source)
    dataset = lance.write_dataset(table, str(folder / "data"))
    dataset.create_scalar_index("key", "BTREE")


def open_lance(folder: Path) -> Opened:
    dataset = lance.dataset(str(folder / "data"))

    def many(keys: Sequence[str]) -> list[Array]:
        quoted = ", ".join(f"'{each}'" for each in keys)
        return in_order(dataset.to_table(columns=["key", "value"], filter=f"key IN ({quoted})"), keys)

    return lambda each: values(dataset.to_table(columns=["value"], filter=f"key = '{each}'"))[0], many


def write_parquet(source: Path, folder: Path) -> None:
    """As it is."""
    shutil.copy(source, folder / "data.parquet")


def open_parquet(folder: Path) -> Opened:
    dataset = pds.dataset(folder / "data.parquet")
    # Statistics of the row groups, read once.
    next(dataset.get_fragments()).ensure_complete_metadata()

    def many(keys: Sequence[str]) -> list[Array]:
        return in_order(dataset.to_table(["key", "value"], filter=pds.field("key").isin(keys)), keys)

    return lambda each: values(dataset.to_table(["value"], filter=pds.field("key") == each))[0], many


def values(table: pa.Table) -> list[Array]:
    return [np.frombuffer(each.as_py(), np.uint8) for each in table["value"]]


def in_order(table: pa.Table, keys: Sequence[str]) -> list[Array]:
    found = dict(zip(table["key"].to_pylist(), values(table), strict=True))
    return [found[each] for each in keys]


CONTENDERS = [
    Contender("LMDB", write_lmdb, open_lmdb),
    Contender("`open_store`", write_store, open_safetensors, (0.5, 1.0)),
    Contender("SQLite", write_sqlite, open_sqlite),
    Contender("Lance, BTREE index", write_lance, open_lance),
    Contender("Parquet, sorted by key", write_parquet, open_parquet),
]
