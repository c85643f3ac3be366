"""The columns of a dataset after a commit: those of batches agree; what tensors by key do not agree in is none."""

from typing import Any

import pytest

from safetensors_spark import InvalidWriteError
from safetensors_spark._files.commit.columns import merged_columns
from safetensors_spark._files.commit.written import WriteRecord
from safetensors_spark._files.manifest import Column, Manifest, Mode, Shard

FIXED = Column("x", "F32", (2, 3))
UNKNOWN = Column("x", None, None)


def record(number: int, *columns: Column, shards: int = 1, mode: Mode = "batch") -> WriteRecord:
    names = tuple(Shard(f"{number}-{shard}", 1, 1) for shard in range(shards))
    return WriteRecord(f"_temporary/00000000-0000-0000-0000-00000000000{number}", mode, columns, names)


def dataset(*columns: Column, shards: int = 1) -> Manifest:
    return Manifest("c", "batch", {}, columns, tuple(Shard(f"old-{number}", 1, 1) for number in range(shards)))


def merged(*columns: Column, kept: Manifest | None = None, mode: Mode = "batch") -> Any:
    found = merged_columns(mode, kept, [record(number, one, mode=mode) for number, one in enumerate(columns)])
    return found[0]


def test_writers_without_rows_do_not_count() -> None:
    empty = record(0, Column("y", None, None), shards=0)
    assert merged_columns("batch", None, [empty, record(1, FIXED)]) == (FIXED,)
    assert merged_columns("batch", None, [empty]) == (Column("y", None, None),)
    assert merged_columns("batch", None, []) == ()
    assert merged_columns("batch", dataset(FIXED), [empty]) == (FIXED,)
    # A dataset without shards is what a first write begins with.
    assert merged_columns("batch", dataset(FIXED, shards=0), [record(1, Column("y", "U8", ()))]) == (
        Column("y", "U8", ()),
    )


def test_the_order_of_columns_is_that_of_the_first_part() -> None:
    y = Column("y", "U8", ())
    assert merged_columns("batch", None, [record(0, y, FIXED), record(1, FIXED, y)]) == (y, FIXED)


def test_a_part_that_knows_tells_shape_and_type() -> None:
    typed = Column("x", "F32", (2, 3), type="array<float>")
    assert merged(Column("x", "F32", None), FIXED, typed) == typed
    assert merged(typed, FIXED) == typed
    assert merged(FIXED, kept=dataset(typed)) == typed
    assert merged(UNKNOWN, UNKNOWN) == UNKNOWN


def test_parts_of_other_names_are_refused() -> None:
    y = Column("y", "U8", ())
    with pytest.raises(InvalidWriteError, match=r"^1-0 has the columns x, y, but 0-0 has x\. All writers of a dataset"):
        merged_columns("batch", None, [record(0, FIXED), record(1, y, FIXED)])
    with pytest.raises(InvalidWriteError, match=r"^0-0 has the columns y, but the dataset has x\. All writers"):
        merged(y, kept=dataset(FIXED))


@pytest.mark.parametrize(
    ("columns", "said"),
    [
        (
            (FIXED, Column("x", "F32", (4, 3))),
            "Column `x`: F32 [4, 3] in 1-0, but F32 [2, 3] in 0-0. Make the rows alike, or write all of them with the "
            "column in `ragged`, which lets their first dimension differ.",
        ),
        (
            (FIXED, Column("x", "F32", (2, 4))),
            "F32 [2, 4] in 1-0, but F32 [2, 3] in 0-0. Make the rows alike, or write with `name_col`.",
        ),
        (
            (FIXED, Column("x", "F64", (2, 3))),
            "F64 [2, 3] in 1-0, but F32 [2, 3] in 0-0. Cast them, or have them converted by `dtype={'x': 'F32'}`.",
        ),
        (
            (UNKNOWN, FIXED, Column("x", "F64", None)),
            "F64 [...] in 2-0, but F32 [2, 3] in 1-0. Cast them, or have them converted by `dtype={'x': 'F32'}`.",
        ),
        (
            (Column("x", "F32", None), Column("x", "F64", None)),
            "F64 [...] in 1-0, but F32 [...] in 0-0. Cast them, or have them converted by `dtype={'x': 'F64'}`.",
        ),
        (
            (Column("x", "F32", (2,), "ragged"), Column("x", "F32", (3,), "ragged")),
            "ragged F32 [?, 3] in 1-0, but ragged F32 [?, 2] in 0-0. Rows of a ragged column differ in their first "
            "dimension alone. Make them alike.",
        ),
        (
            (FIXED, Column("x", "U8", (), "text")),
            "text U8 [?] in 1-0, but F32 [2, 3] in 0-0. Make the rows alike.",
        ),
        (
            (Column("x", "F32", ()), Column("x", "F32", (1,))),
            "F32 [1] in 1-0, but F32 [] in 0-0. Make the rows alike, or",
        ),
    ],
)
def test_batches_whose_rows_differ_are_refused(columns: tuple[Column, ...], said: str) -> None:
    with pytest.raises(InvalidWriteError) as raised:
        merged(*columns)
    assert said in str(raised.value)


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        (
            FIXED,
            Column("x", "F32", (4, 3)),
            "F32 [4, 3] in 0-0, but F32 [2, 3] in the dataset. Make the rows alike, write to another directory, or "
            "overwrite it: with the column in `ragged`, their first dimension may differ.",
        ),
        (
            Column("x", "F32", (), "ragged"),
            Column("x", "F64", (), "ragged"),
            "Cast them, or have them converted by `dtype={'x': 'F32'}`, write to another directory, or overwrite it.",
        ),
        (FIXED, Column("x", "F32", (2, 4)), "Make the rows alike, write to another directory, or overwrite it."),
        (FIXED, Column("x", "U8", (), "text"), "Make the rows alike, write to another directory, or overwrite it."),
    ],
)
def test_an_append_says_what_may_be_done_about_the_dataset(old: Column, new: Column, said: str) -> None:
    with pytest.raises(InvalidWriteError) as raised:
        merged(new, kept=dataset(old))
    assert str(raised.value).endswith(said)


def test_what_tensors_by_key_do_not_agree_in_is_none() -> None:
    other = Column("x", "F64", (2, 3), type="tensor")
    assert merged(FIXED, FIXED, mode="key_value") == FIXED
    assert merged(FIXED, other, mode="key_value") == Column("x", None, (2, 3), type="tensor")
    assert merged(FIXED, Column("x", "F32", (1,)), mode="key_value") == Column("x", "F32", None)
    assert merged(FIXED, UNKNOWN, mode="key_value") == UNKNOWN
