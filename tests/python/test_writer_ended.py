"""A `DatasetWriter` that has ended, or commits for others: no row of its own is lost without a word."""

from collections.abc import Callable
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd  # type: ignore[import-untyped, unused-ignore]
import pyarrow as pa  # type: ignore[import-untyped]
import pytest

from safetensors_spark import InvalidWriteError, SafetensorsSparkError
from safetensors_spark.dataset import DatasetWriter, WriteRecord, open_dataset, write_dataset


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "dataset"


def batch(*values: int) -> dict[str, Any]:
    return {"x": np.array(values)}


def record_of(path: Path, *values: int) -> WriteRecord:
    writer = DatasetWriter(path, batch_size=4)
    writer.write(batch(*values))
    return writer.finish()


def rows(path: Path) -> list[int]:
    return [int(row["x"]) for row in open_dataset(path)]


def finished(path: Path) -> DatasetWriter:
    writer = DatasetWriter(path, batch_size=4)
    writer.write(batch(1))
    writer.finish()
    return writer


def after_the_block(path: Path) -> DatasetWriter:
    with DatasetWriter(path, batch_size=4) as writer:
        writer.write(batch(1))
    return writer


def after_a_commit(path: Path) -> DatasetWriter:
    writer = DatasetWriter(path, batch_size=4)
    writer.commit([record_of(path, 1)])
    return writer


def after_a_failed_block(path: Path) -> DatasetWriter:
    writer = DatasetWriter(path, batch_size=4)
    with suppress(ZeroDivisionError), writer:
        writer.write(batch(1))
        raise ZeroDivisionError
    return writer


@pytest.mark.parametrize("ended", [finished, after_the_block, after_a_commit, after_a_failed_block])
def test_a_writer_that_has_ended_takes_no_more_rows(path: Path, ended: Callable[[Path], DatasetWriter]) -> None:
    writer = ended(path)
    for call in (lambda: writer.write(batch(2)), writer.finish):
        with pytest.raises(InvalidWriteError, match=r"This writer has finished.*Make another DatasetWriter"):
            call()


def test_a_writer_begins_again_after_abort(path: Path) -> None:
    writer = finished(path)
    writer.abort()
    writer.write(batch(2))
    writer.commit(writer.finish())
    assert rows(path) == [2]


@pytest.mark.parametrize("others", [0, 1])
def test_a_commit_does_not_leave_out_rows_of_the_writer(path: Path, others: int) -> None:
    writer = DatasetWriter(path, batch_size=4)
    writer.write(batch(1))
    records = [record_of(path, 2)][:others]
    with pytest.raises(InvalidWriteError, match=r"rows of its own, which no record has yet.*`finish`.*`abort`"):
        writer.commit(records)
    writer.commit([*records, writer.finish()])
    assert rows(path) == [*[2][:others], 1]


@pytest.mark.parametrize("mode", ["append", "overwrite", "error"])
def test_a_commit_of_others_in_a_block_is_the_only_one(path: Path, mode: Any) -> None:
    with DatasetWriter(path, batch_size=4, mode=mode) as writer:
        writer.commit([record_of(path, 1, 2)])
    assert rows(path) == [1, 2]


@pytest.mark.parametrize("mode", ["append", "overwrite"])
def test_a_block_whose_rows_were_committed_ends_well(path: Path, mode: Any) -> None:
    with DatasetWriter(path, batch_size=4, mode=mode) as writer:
        writer.write(batch(1))
        writer.commit([writer.finish()])
    assert rows(path) == [1]


def test_a_block_whose_record_nobody_committed_is_refused(path: Path) -> None:
    def write() -> None:
        with DatasetWriter(path, batch_size=4) as writer:
            writer.write(batch(1))
            records.append(writer.finish())

    records: list[WriteRecord] = []
    with pytest.raises(InvalidWriteError, match=r"`finish` was called in the block.*leave out `finish`"):
        write()
    # It is not lost.
    DatasetWriter(path, batch_size=4).commit(records)
    assert rows(path) == [1]


def test_what_is_no_record_is_refused(path: Path) -> None:
    text: Any = record_of(path, 1).to_json()
    with pytest.raises(
        InvalidWriteError, match=r"`commit` was given '\{.*expected what each writer's `finish` returned"
    ):
        DatasetWriter(path, batch_size=4).commit([text])


@pytest.mark.parametrize("url", ["tar://x.tar", "zip://x.zip", "tar://", "github://x", "reference://x"])
@pytest.mark.parametrize("open_it", [partial(DatasetWriter, batch_size=4), open_dataset], ids=["writer", "reader"])
def test_urls_that_lack_something(url: str, open_it: Callable[[str], Any]) -> None:
    words = "names no archive: it comes after `::`" if url[0] in "tz" else "cannot be opened: "
    with pytest.raises(SafetensorsSparkError, match=f"^{url} {words}"):
        open_it(url)


@pytest.mark.parametrize(
    "one",
    [
        {"x": np.arange(3)},
        pd.DataFrame({"x": np.arange(3)}),
        pa.table({"x": np.arange(3)}),
        pa.RecordBatch.from_pydict({"x": np.arange(3)}),
    ],
    ids=["dict", "pandas", "Table", "RecordBatch"],
)
def test_a_single_batch_is_a_dataset(path: Path, one: Any) -> None:
    write_dataset(one, path, batch_size=2)
    assert rows(path) == [0, 1, 2]


@pytest.mark.parametrize("batches", [None, 5, np.int64(5)])
def test_no_batches(path: Path, batches: Any) -> None:
    with pytest.raises(InvalidWriteError, match=r"The batches are a \w+, expected a batch, or an iterable of them"):
        write_dataset(batches, path, batch_size=2)


EMPTY = {
    "list": {"x": [[]]},
    "array": {"x": [np.array([])]},
    "arrow": pa.table({"x": [[]]}),
}


@pytest.mark.parametrize("first", EMPTY.values(), ids=EMPTY)
def test_empty_rows_before_others_ask_for_a_dtype(path: Path, first: Any) -> None:
    full = {"x": [np.array([1, 2])]}
    with pytest.raises(InvalidWriteError, match=r"dtype=\{'x': 'I64'\}"):
        write_dataset([first, full], path, batch_size=2, ragged=["x"])
    write_dataset([first, full], path, batch_size=2, ragged=["x"], dtype={"x": "I64"})
    assert [row["x"].tolist() for row in open_dataset(path)] == [[], [1, 2]]


def test_an_append_of_another_dtype_says_how_to_convert(path: Path) -> None:
    write_dataset({"x": [1.5]}, path, batch_size=2)
    with pytest.raises(InvalidWriteError, match=r"`dtype=\{'x': 'F64'\}`"):
        write_dataset({"x": [1]}, path, batch_size=2)
    write_dataset({"x": [1]}, path, batch_size=2, dtype={"x": "F64"})
    assert open_dataset(path)["x"].tolist() == [1.5, 1.0]
    write_dataset({"k": ["a"], "x": [1.5]}, path / "keys", name_col="k")
    with pytest.raises(InvalidWriteError, match=r"`dtype=\{'x': 'F64'\}`"):
        write_dataset({"k": ["b"], "x": [1]}, path / "keys", name_col="k")


@pytest.mark.parametrize(
    "longer",
    [{"x": [[1, 2, 3]]}, {"x": [[1, 2], [1, 2, 3]]}, pa.table({"x": [[1, 2], [1, 2, 3]]})],
    ids=["batch", "rows", "arrow"],
)
def test_longer_rows_for_rows_of_one_shape_are_not_sent_to_ragged_alone(path: Path, longer: Any) -> None:
    write_dataset({"x": [[1, 2]]}, path, batch_size=2)
    with pytest.raises(InvalidWriteError, match=r"(overwrite it: with the column in `ragged`|must be overwritten for)"):
        write_dataset(longer, path, batch_size=2)
    write_dataset(longer, path, batch_size=2, ragged=["x"], mode="overwrite")
    assert len(open_dataset(path)) == len(longer["x"])
