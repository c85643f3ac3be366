"""Vortex files: what their scans drop is what records would drop."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa  # type: ignore[import-untyped]
import pytest
from hypothesis import HealthCheck, given, settings

from pipeline.conftest import MakeBackend
from pipeline.test_expressions import EXPRESSIONS, ROWS, SCHEMA
from safetensors_spark.pipeline import Dataset, Expr, col, load_vortex
from safetensors_spark.pipeline._expression import columns_of, of_rows
from safetensors_spark.pipeline._formats.readers import read
from safetensors_spark.pipeline._operations import Load

vortex = pytest.importorskip("vortex")
NESTED = pa.schema([*SCHEMA, ("list", pa.list_(pa.int64())), ("struct", pa.struct([("i", pa.int64())]))])


@settings(max_examples=200, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(rows=ROWS, expression=EXPRESSIONS)
def test_a_filter_keeps_the_records_for_which_it_is_true(
    tmp_path: Path, rows: list[dict[str, Any]], expression: Expr
) -> None:
    path = str(tmp_path / "rows.vortex")
    nested = [row | {"list": [row["i"], None], "struct": {"i": row["i"]} if row["b"] else None} for row in rows]
    vortex.io.write(pa.Table.from_pylist(nested, NESTED).to_reader(), path)
    written = list(load_vortex(path))
    expected = [row for row in written if of_rows(expression)(row)]
    assert repr(list(read(path, Load("vortex", filter=expression)))) == repr(expected)
    names = ("struct", *sorted(columns_of(expression))[:1])
    narrow = list(read(path, Load("vortex", names, expression)))
    assert repr(narrow) == repr([{name: row[name] for name in names} for row in expected])


@pytest.mark.parametrize(
    ("expression", "is_pushed"),
    [
        ((col("i") > 5) & ~(col("s") == "a"), True),
        (col("small") > 1, True),
        (col("u").isin([1, 2]) | col("t").is_null(), True),
        (col("raw") != b"a", True),
        # Vortex has another order of NaN and of zeros.
        (col("f") > 0.5, False),
        # Vortex compares values of one type.
        (col("i") > 0.5, False),
        (col("small") < 1000, False),
        (col("i") == 2**70, False),
        (col("list") == 1, False),
        (col("missing") > 5, False),
    ],
)
def test_only_what_is_certain_is_pushed(expression: Expr, is_pushed: bool) -> None:
    from safetensors_spark.pipeline._vortex_expression import in_vortex

    assert (in_vortex(expression, NESTED) is not None) == is_pushed


def test_what_is_written_is_read_again(tmp_path: Path, backend: MakeBackend) -> None:
    rows = [{"id": number, "text": f"é{number}" if number % 3 else None} for number in range(5000)]
    written = Dataset.from_list([rows, rows[:1]]).flat_map(list).write_vortex(f"{tmp_path}/{{shard}}.vortex")
    assert list(backend().execute(written)) == [f"{tmp_path}/{shard}.vortex" for shard in range(2)]
    loaded = Dataset.from_files(tmp_path, "0.vortex").load_vortex()
    assert list(backend().execute(loaded)) == rows
    found = backend().execute(loaded.filter((col("id") >= 4000) & (col("id") * 2 < 9000)).select("text"))
    assert list(found) == [{"text": row["text"]} for row in rows[4000:4500]]


def test_files_are_divided_by_their_splits(tmp_path: Path, backend: MakeBackend) -> None:
    rows = pa.table({"n": range(200_000), "text": [f"row {n}" for n in range(200_000)]})
    for number, (begin, end) in enumerate(((0, 120_000), (120_000, 120_001), (120_001, 200_000))):
        vortex.io.write(rows[begin:end], f"{tmp_path}/{number}.vortex")
    read = Dataset.from_files(tmp_path, "*.vortex").load_vortex()
    parts = read.reshard(3).filter(col("n") >= 7).select("n")
    assert "3 files in parts: 3 shards" in str(backend().plan(parts))
    sizes = parts.map_shard(lambda some, _: iter([[row["n"] for row in some]]))
    found = list(backend().execute(sizes))
    assert len(found) == 3
    assert min(map(len, found)) > 20_000
    assert [n for some in found for n in some] == list(range(7, 200_000))
