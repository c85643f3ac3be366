"""Expressions have one meaning: that of records, which Parquet's scans share wherever they are used."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import pyarrow as pa  # type: ignore[import-untyped]
import pyarrow.parquet as pq  # type: ignore[import-untyped]
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from safetensors_spark import PipelineError
from safetensors_spark.pipeline import Expr, col, lit, load_parquet
from safetensors_spark.pipeline._arrow_expression import in_arrow
from safetensors_spark.pipeline._expression import columns_of, of_rows
from safetensors_spark.pipeline._formats.readers import read
from safetensors_spark.pipeline._operations import Load

SCHEMA = pa.schema(
    [
        ("i", pa.int64()),
        ("small", pa.int8()),
        ("u", pa.uint32()),
        ("f", pa.float64()),
        ("single", pa.float32()),
        ("s", pa.string()),
        ("b", pa.bool_()),
        ("raw", pa.binary()),
        ("t", pa.timestamp("us")),
    ]
)
_NUMBERS = [0, 1, -1, 2, 127, -128, 2**53, 2**53 + 1, 2**63 - 1]
VALUES: dict[str, st.SearchStrategy[Any]] = {
    "i": st.sampled_from(_NUMBERS),
    "small": st.sampled_from([0, 1, -1, 127, -128]),
    "u": st.sampled_from([0, 1, 2**32 - 1]),
    "f": st.sampled_from([0.0, -0.0, 1.0, 0.1, math.nan, math.inf, -math.inf, 2.0**53]),
    "single": st.sampled_from([0.0, 1.0, 0.5, math.nan]),
    "s": st.sampled_from(["", "a", "b", "ab", "é", "\U0001f600", "\uffff"]),
    "b": st.booleans(),
    "raw": st.sampled_from([b"", b"a", b"\xff"]),
    "t": st.datetimes(),
}
ROWS = st.lists(st.fixed_dictionaries({name: st.none() | one for name, one in VALUES.items()}), min_size=1, max_size=12)
_COMPARED = ["__eq__", "__ne__", "__lt__", "__le__", "__gt__", "__ge__"]


@st.composite
def comparisons(draw: st.DrawFn) -> Expr:
    name = draw(st.sampled_from(sorted(VALUES)))
    is_number = name in ("i", "small", "u", "f", "single")
    literals = VALUES[name] | st.sampled_from([*_NUMBERS, 2**70, 0.5, 0.1]) if is_number else VALUES[name]
    kind = draw(st.sampled_from([*_COMPARED, "isin", "is_null"]))
    if kind == "is_null":
        return col(name).is_null()
    if kind == "isin":
        return col(name).isin(draw(st.lists(literals, max_size=3)))
    found: Expr = getattr(col(name), kind)(draw(literals))
    return found


EXPRESSIONS = st.recursive(
    comparisons(),
    lambda inner: st.one_of(
        st.builds(lambda left, right: left & right, inner, inner),
        st.builds(lambda left, right: left | right, inner, inner),
        st.builds(lambda one: ~one, inner),
    ),
    max_leaves=6,
)


@settings(max_examples=300, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(rows=ROWS, expression=EXPRESSIONS)
def test_a_filter_of_parquet_keeps_the_records_for_which_it_is_true(
    tmp_path: Path, rows: list[dict[str, Any]], expression: Expr
) -> None:
    # Row groups of two rows, so that statistics have something to prune.
    path = str(tmp_path / "rows.parquet")
    pq.write_table(pa.Table.from_pylist(rows, SCHEMA), path, row_group_size=2)
    written = list(load_parquet(path))
    expected = [row for row in written if of_rows(expression)(row)]
    assert repr(list(read(path, Load("parquet", filter=expression)))) == repr(expected)
    names = tuple(sorted(columns_of(expression)))[:1]
    narrow = read(path, Load("parquet", names, expression))
    assert repr(list(narrow)) == repr([{name: row[name] for name in names} for row in expected])


@pytest.mark.parametrize(
    ("expression", "is_pushed"),
    [
        (col("i") > 5, True),
        (col("s") == "a", True),
        ((col("i") > 5) & ~(col("s") == "a"), True),
        (col("i").isin([1, 2]), True),
        (col("t").is_null(), True),
        # A number of another kind, or one that the column cannot hold, is compared by Python.
        (col("i") > 0.5, False),
        (col("small") < 1000, False),
        (col("i") == 2**70, False),
        # Statistics leave NaN out.
        (col("f") > 0.5, True),
        (~(col("f") > 0.5), False),
        (col("f") != 0.5, False),
        # These are other objects in records.
        (col("t") == lit(None), False),
        (col("i") + 1 > 5, False),
        (col("missing") > 5, False),
    ],
)
def test_only_what_is_certain_is_pushed(expression: Expr, is_pushed: bool) -> None:
    assert (in_arrow(expression, SCHEMA) is not None) == is_pushed


def test_text_that_is_no_utf8_is_in_no_column(tmp_path: Path) -> None:
    pq.write_table(pa.table({"a": ["x", None]}), tmp_path / "a.parquet")
    for expression, expected in ((col("a") == "\udc80", []), (col("a").isin(["\udc80", "x"]), ["x"])):
        rows = read(str(tmp_path / "a.parquet"), Load("parquet", filter=expression))
        assert [row["a"] for row in rows] == expected


def test_row_groups_that_cannot_match_are_not_read(tmp_path: Path) -> None:
    path = str(tmp_path / "rows.parquet")
    table = pa.table({"i": range(1000), "s": ["x" * 1000] * 1000})
    pq.write_table(table, path, row_group_size=100, compression="none", use_dictionary=False)
    whole = Path(path).read_bytes()
    place = pq.ParquetFile(path).metadata.row_group(3).column(1).data_page_offset
    # What is not read may be damaged.
    Path(path).write_bytes(whole[:place] + bytes(50_000) + whole[place + 50_000 :])
    assert [row["i"] for row in read(path, Load("parquet", filter=col("i") >= 990))] == list(range(990, 1000))
    with pytest.raises(PipelineError, match="cannot be read"):
        list(read(path, Load("parquet")))


def test_null_is_neither_true_nor_false() -> None:
    null, yes, no = lit(None), lit(True), lit(False)
    table = {
        null & yes: None, null & no: False, null | yes: True, null | no: None, ~null: None,
        null == null: None, col("a") > 1: None, col("a").is_null(): True, col("a").isin([1]): None,
        lit(1) / 0: None, lit(7) / 2: 3.5, -lit(3) + 1: -2, 2 * lit(3) - 1: 5,
    }  # fmt: skip
    for expression, expected in table.items():
        assert expression.evaluate({}) is expected or expression.evaluate({}) == expected, expression


def test_fields_of_structs() -> None:
    expression = col("meta")["lang"] == "en"
    assert [expression.evaluate({"meta": one}) for one in ({"lang": "en"}, {"lang": "de"}, {}, None)] == [
        True,
        False,
        None,
        None,
    ]
    assert repr(expression & ~col("a b")) == "(meta['lang'] == 'en') & ~col('a b')"


def test_what_cannot_be_an_expression_is_an_error() -> None:
    with pytest.raises(TypeError, match="combine expressions by `&`"):
        bool(col("a") > 1 and col("b") > 1)
    with pytest.raises(TypeError, match="combine expressions by `&`"):
        bool(1 < col("a") < 3)
    with pytest.raises(ValueError, match="None is equal to nothing"):
        col("a").isin([1, None])
    with pytest.raises(TypeError, match="col takes a name"):
        col(1)  # type: ignore[arg-type]


def test_expressions_are_sent_to_workers() -> None:
    from pickle import dumps, loads

    expression = ((col("a") + 1) * 2 > 5) | col("b")["c"].is_null()
    assert repr(loads(dumps(expression))) == repr(expression)
