"""Reads all that Spark reads of a dataset, and holds it against the official library."""

from pathlib import Path
from typing import Any

from reliability.attacks.reading import expected_rows, official_tensors, row_text


def read_all(spark: Any, kind: str, path: Path) -> None:
    """Raises AssertionError as `reading.read_all` does; our errors pass."""
    from safetensors_spark.dataset import verify

    try:
        (_read_rows if kind == "batches" else _read_long)(spark, path)
    except AssertionError:
        if not verify(path).faults:
            raise


def _read_long(spark: Any, path: Path) -> None:
    found = spark.read.format("safetensors").option("layout", "long").load(str(path)).collect()
    official = [official_tensors(file) for file in path.glob("*.safetensors")]
    for row in found:
        tensor = (list(row.tensor.shape), bytes(row.tensor.data))
        same = [one[row.tensor_key] for one in official if one is not None and row.tensor_key in one]
        assert tensor in same, f"{row.tensor_key!r} is {tensor}, the official library has {same}"


def _read_rows(spark: Any, path: Path) -> None:
    frame = spark.read.format("safetensors").options(layout="rows", decode="true").load(str(path))
    rows = sorted((row.asDict() for row in frame.collect()), key=lambda row: row.get("n", 0) or 0)
    expected = expected_rows(path)
    if rows:
        expected = [{name: row[name] for name in rows[0] if name in row} for row in expected]
    assert sorted(map(row_text, rows)) == sorted(map(row_text, expected)), (rows, expected)
