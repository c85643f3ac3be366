"""What a `DatasetWriter` must not take, or lose."""

import datetime
import pickle
import sys
from collections.abc import Callable
from pathlib import Path
from threading import Thread
from typing import Any

import numpy as np
import pandas as pd  # type: ignore[import-untyped, unused-ignore]
import pyarrow as pa  # type: ignore[import-untyped]
import pytest

from safetensors_spark import DuplicateKeyError, InvalidWriteError
from safetensors_spark.dataset import Dataset, DatasetWriter, open_dataset, open_store, write_dataset

LISTS = pa.list_(pa.list_(pa.int64()))
NESTED = [np.array([[1, 2]]), np.array([[3, 4], [5, 6]])]


def written(path: Path, *batches: Any, **options: Any) -> Dataset:
    write_dataset(batches, path, **{"batch_size": 4, **options})
    return open_dataset(path)


@pytest.mark.parametrize(
    "empty",
    [
        pa.table({"x": pa.array([[], []], LISTS)}),
        {"x": [[], []]},
        {"x": [np.zeros(0, np.int64), np.zeros(0, np.int64)]},
        {"x": np.zeros((2, 0), np.int64)},
    ],
    ids=["arrow", "lists", "arrays", "array"],
)
def test_empty_rows_before_nested_ones_do_not_tell_their_shape(tmp_path: Path, empty: Any) -> None:
    full = pa.table({"x": pa.array([row.tolist() for row in NESTED], LISTS)})
    for number, full_batch in enumerate((full, {"x": NESTED})):
        path = tmp_path / str(number)
        dataset = written(path, empty, full_batch, ragged=["x"], dtype={"x": "I64"})
        assert [row.tolist() for row in dataset["x"]] == [[], [], *(row.tolist() for row in NESTED)]
        assert dataset.columns[0].shape == (2,)
        assert dataset.verify().faults == []


def test_a_write_that_has_failed_halfway_is_not_continued(tmp_path: Path) -> None:
    writer = DatasetWriter(tmp_path / "keys", name_col="k")
    writer.write({"k": ["z"], "x": [9]})
    with pytest.raises(InvalidWriteError, match="`z`"):
        writer.write({"k": ["a", "z", "q"], "x": [1, 2, 3]})
    for call in (lambda: writer.write({"k": ["b"], "x": [5]}), writer.finish):
        with pytest.raises(InvalidWriteError, match=r"An earlier call has failed.*Call `abort`"):
            call()
    writer.abort()
    writer.write({"k": ["a"], "x": [1]})
    writer.commit([writer.finish()])
    assert list(open_store(tmp_path / "keys")) == ["a"]


def test_a_finish_that_has_failed_is_not_repeated_without_its_rows(tmp_path: Path) -> None:
    writer = DatasetWriter(tmp_path / "keys", name_col="k", key_buckets=2)
    writer.write({"k": ["a", "b", "a"], "x": [1, 2, 3]})
    with pytest.raises((InvalidWriteError, DuplicateKeyError), match="`a`"):
        writer.finish()
    with pytest.raises(InvalidWriteError, match="An earlier call has failed"):
        writer.finish()


def test_a_batch_that_is_refused_leaves_the_writer_as_it_was(tmp_path: Path) -> None:
    with DatasetWriter(tmp_path / "points", batch_size=2) as writer:
        writer.write({"x": [1, 2, 3]})
        with pytest.raises(InvalidWriteError):
            writer.write({"x": ["text"]})
        writer.write({"x": [4]})
    assert open_dataset(tmp_path / "points")["x"].tolist() == [1, 2, 3, 4]


def test_threads_write_by_one_writer(tmp_path: Path) -> None:
    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-5)
    try:
        with DatasetWriter(tmp_path / "points", batch_size=7, ragged=["t"]) as writer:

            def write(first: int) -> None:
                for number in range(first, first + 100):
                    writer.write({"x": [number], "t": [np.arange(number % 5)], "s": [f"row {number}"]})

            threads = [Thread(target=write, args=(first,)) for first in (0, 100, 200, 300)]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()
    finally:
        sys.setswitchinterval(interval)
    dataset = open_dataset(tmp_path / "points")
    assert sorted(dataset["x"].tolist()) == list(range(400))
    assert all(sample["s"] == f"row {sample['x']}" and len(sample["t"]) == sample["x"] % 5 for sample in dataset)
    assert dataset.verify().faults == []


def test_a_writer_stays_in_its_process(tmp_path: Path) -> None:
    with pytest.raises(TypeError, match="make one in each, and send what `finish` returns"):
        pickle.dumps(DatasetWriter(tmp_path / "points", batch_size=7))


TIME = datetime.datetime(2020, 1, 2, 13, 5)
DAY = datetime.date(2020, 1, 1)

REFUSED: dict[str, tuple[Callable[[], Any], str]] = {
    "two columns of Arrow": (lambda: pa.table([[1], [2]], names=["a", "a"]), "two columns `a`"),
    "two columns of a dictionary": (lambda: {"1": [1], 1: [2]}, "two columns `1`"),
    "two columns of pandas": (lambda: pd.DataFrame([[1, 2]], columns=["a", "a"]), "two columns `a`"),
    "masked": (lambda: {"x": np.ma.array([1, 2, 3], mask=[False, True, False])}, "row 1: null"),
    "masked rows": (lambda: {"x": [np.ma.array([1, 2]), np.ma.array([1, 2], mask=[False, True])]}, "row 1: null"),
    "masked number": (lambda: {"x": [2.0, np.ma.masked]}, "row 1: null"),
    "time among dates": (lambda: {"x": [DAY, TIME]}, "row 1: .*expected a date as in the first row"),
    "number among dates": (lambda: {"x": [DAY, 5]}, "row 1: 5, expected a date"),
    "text among dates": (lambda: {"x": [DAY, "2021-01-01"]}, "row 1: '2021-01-01', expected a date"),
    "number among times": (lambda: {"x": [TIME, 5]}, "row 1: 5, expected a time"),
    "nanoseconds": (lambda: {"x": [TIME, pd.Timestamp(123)]}, "row 1: .* finer than the microseconds"),
    "days beyond 32 bits": (lambda: {"x": np.array([0, 2**31 + 5], "M8[D]")}, "row 1: .* beyond the days"),
    "null of pandas": (lambda: pd.DataFrame({"x": pd.array([1.5, None], "Float64")}), "row 1: null"),
    "null of Arrow in pandas": (lambda: pd.DataFrame({"x": pd.array([1.5, None], "double[pyarrow]")}), "row 1: null"),
}


@pytest.mark.parametrize(("batch", "words"), REFUSED.values(), ids=REFUSED)
def test_what_would_be_lost_or_changed_is_refused(tmp_path: Path, batch: Callable[[], Any], words: str) -> None:
    with pytest.raises(InvalidWriteError, match=words):
        written(tmp_path / "points", batch())
    assert not (tmp_path / "points" / "dataset_manifest.json").exists()


def test_masked_arrays_without_masked_values_are_written(tmp_path: Path) -> None:
    assert written(tmp_path / "points", {"x": np.ma.array([1, 2], mask=False)})["x"].tolist() == [1, 2]


@pytest.mark.skipif(not hasattr(np.dtypes, "StringDType"), reason="NumPy 1 has no such type")
def test_strings_of_numpy_s_own_type_are_text(tmp_path: Path) -> None:
    values = np.array(["a", "bc"], np.dtypes.StringDType())  # type: ignore[attr-defined, unused-ignore]
    assert list(written(tmp_path / "points", {"x": values})["x"]) == ["a", "bc"]


def test_columns_of_arrow_in_pandas_are_what_they_are_in_arrow(tmp_path: Path) -> None:
    table = pa.table({
        "time": pa.array([TIME], pa.timestamp("us", "UTC")),
        "day": pa.array([DAY], pa.date32()),
        "text": ["a"],
        "x": pa.array([[1.0, 2.0]]),
    })  # fmt: skip
    frame = table.to_pandas(types_mapper=pd.ArrowDtype)
    found = written(tmp_path / "pandas", frame)
    assert found.columns == written(tmp_path / "arrow", table).columns
    assert [column.kind for column in found.columns] == ["timestamp", "date", "text", "fixed"]


def test_arrow_s_tensors_keep_their_shape_and_order(tmp_path: Path) -> None:
    tensors = np.arange(12).reshape(2, 2, 3)
    plain = pa.FixedShapeTensorArray.from_numpy_ndarray(tensors)
    assert written(tmp_path / "plain", pa.table({"x": plain}))["x"].tolist() == tensors.tolist()
    turned = pa.ExtensionArray.from_storage(
        pa.fixed_shape_tensor(pa.int64(), [3, 2], permutation=[1, 0]),
        pa.FixedSizeListArray.from_arrays(pa.array(range(12)), 6),
    )
    found = written(tmp_path / "turned", pa.table({"x": turned}))["x"]
    assert found.tolist() == turned.to_numpy_ndarray().tolist()
