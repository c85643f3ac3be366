"""Spark reads what the official library loads, and refuses what it refuses, by the same rule."""

import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from pyspark.sql import DataFrame, Row, SparkSession

from header_cases import CASES, HUGE_SHAPES, Case, file, shaped
from official import DTYPES, Tensor, Verdict, verdicts
from spark_io import assert_says, error_of, read

Answers = dict[str, tuple[Path, Verdict]]


@pytest.fixture(scope="module", autouse=True)
def _case_sensitive(spark: SparkSession) -> Iterator[None]:
    """Some files have names that differ only in case."""
    spark.conf.set("spark.sql.caseSensitive", "true")
    yield
    spark.conf.unset("spark.sql.caseSensitive")


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
    return {name: as_tensor(value) for name, value in zip(df.columns, row, strict=True)}


def as_tensor(value: Row) -> Tensor:
    return Tensor(value.dtype, tuple(value.shape), bytes(value.data))


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


def test_the_layout_long_reads_the_same_tensors_of_all_dtypes(spark: SparkSession, answers: Answers) -> None:
    huge = {name_of(case) for case in HUGE_SHAPES}
    accepted = [answer for name, answer in answers.items() if answer[1].refused is None and name not in huge]
    df = spark.read.format("safetensors").option("layout", "long").load([str(path) for path, _ in accepted])
    found = [(row.tensor_key, as_tensor(row.tensor)) for row in df.collect()]
    expected = [tensor for _, official in accepted for tensor in official.tensors.items()]
    assert sorted(found, key=str) == sorted(expected, key=str)
    assert {tensor.dtype for _, tensor in found} == set(DTYPES)


REFUSED_TENSORS = {
    "InvalidHeaderDeserialization": shaped("[-1]"),
    "InvalidOffset": shaped("[1]", "[1,2]", buffer=b"xy"),
    "ValidationOverflow": shaped("[9223372036854775808,4,0]", "[0,0]", buffer=b""),
    "MisalignedSlice": shaped("[3]", "[0,2]", "F4", b"xy"),
    "TensorInvalidInfo": shaped("[3]", "[0,2]", buffer=b"xy"),
}


@pytest.mark.parametrize("layout", ["wide", "long"])
@pytest.mark.parametrize("rule", REFUSED_TENSORS)
def test_a_refusal_names_file_rule_and_tensor(spark: SparkSession, tmp_path: Path, layout: str, rule: str) -> None:
    path = tmp_path / "refused.safetensors"
    path.write_bytes(REFUSED_TENSORS[rule])
    [official] = verdicts([path])
    assert official.refused == rule
    reader = spark.read.format("safetensors").option("layout", layout).option("inferSchema", "true")
    assert_says(error_of(lambda: reader.load(str(path)).collect()), path.name, f"({rule})", "tensor `a`")


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
