"""Spark reads what the official library loads, and refuses what it refuses, by the same rule."""

import re
from pathlib import Path

import pytest
from pyspark.sql import DataFrame, SparkSession

from header_cases import CASES, HUGE_SHAPES, Case, file
from official import Tensor, Verdict, verdicts
from spark_io import assert_says, error_of, read

Answers = dict[str, tuple[Path, Verdict]]


@pytest.fixture(scope="module")
def answers(tmp_path_factory: pytest.TempPathFactory) -> Answers:
    """Every case as a file, with what the official library says of it: one process answers for all."""
    folder = tmp_path_factory.mktemp("headers")
    paths = [folder / f"case-{number}.safetensors" for number in range(len(CASES) + len(HUGE_SHAPES))]
    for path, (_, content) in zip(paths, CASES + HUGE_SHAPES, strict=True):
        path.write_bytes(content)
    names = [name for name, _ in CASES + HUGE_SHAPES]
    return dict(zip(names, zip(paths, verdicts(paths), strict=True), strict=True))


def name_of(case: Case) -> str:
    return case[0]


def tensors(df: DataFrame) -> dict[str, Tensor]:
    [row] = df.collect()
    return {
        name: Tensor(value.dtype, tuple(value.shape), bytes(value.data))
        for name, value in zip(df.columns, row, strict=True)
    }


@pytest.mark.parametrize("case", CASES, ids=name_of)
def test_verdict_is_the_official_library_s(spark: SparkSession, answers: Answers, case: Case) -> None:
    path, official = answers[name_of(case)]
    if official.refused is None:
        assert tensors(read(spark, path)) == official.tensors
    else:
        message = error_of(lambda: read(spark, path).collect())
        assert path.name in message
        # A whole word: the name of one error begins the names of others.
        assert re.search(rf"\b{official.refused}\b", message), official.message


@pytest.mark.parametrize("case", HUGE_SHAPES, ids=name_of)
def test_dimension_past_int_fails_only_where_shape_is_selected(
    spark: SparkSession, answers: Answers, case: Case
) -> None:
    path, official = answers[name_of(case)]
    assert official.refused is None
    [row] = read(spark, path).select("a.dtype", "a.data").collect()
    assert (row.dtype, bytes(row.data)) == ("U8", b"")
    message = error_of(lambda: read(spark, path).select("a.shape").collect())
    assert_says(message, path.name, "`a`")


def test_both_verdicts_occur_for_every_rule(answers: Answers) -> None:
    found = {official.refused for _, official in answers.values()}
    assert found == {
        None,
        "HeaderTooSmall",
        "HeaderTooLarge",
        "InvalidHeaderLength",
        "InvalidHeader",
        "InvalidHeaderDeserialization",
        "InvalidOffset",
        "ValidationOverflow",
        "MisalignedSlice",
        "TensorInvalidInfo",
        "MetadataIncompleteBuffer",
    }


def test_header_of_the_greatest_length_is_read(spark: SparkSession, tmp_path: Path) -> None:
    path = tmp_path / "greatest.safetensors"
    header = b'{"a":{"dtype":"U8","shape":[1],"data_offsets":[0,1]}}'
    path.write_bytes(file(header.ljust(100_000_000), b"x"))
    [official] = verdicts([path])
    assert tensors(read(spark, path)) == official.tensors
