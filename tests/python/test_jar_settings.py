"""Jars that users named survive, in every place where Spark takes them from."""

from pathlib import Path

import pytest

from safetensors_spark._spark import jar_settings as settings


def test_merging_keeps_order_and_drops_repetitions() -> None:
    assert settings.merge(["b.jar", "a.jar"], ["a.jar", "c.jar"]) == ["b.jar", "a.jar", "c.jar"]


@pytest.mark.parametrize("spelling", ["file:/lib/my%20own.jar", "file:///lib/my%20own.jar", "/lib/my own.jar"])
def test_one_file_in_another_spelling_is_a_repetition(spelling: str) -> None:
    assert settings.merge(["/lib/my own.jar"], [spelling]) == ["/lib/my own.jar"]


def test_remote_jars_that_share_a_path_are_different_jars() -> None:
    assert len(settings.merge(["s3a://one/x.jar"], ["s3a://two/x.jar"])) == 2


def test_splitting_ignores_blanks() -> None:
    assert settings.split(" a.jar, ,b.jar,") == ["a.jar", "b.jar"]
    assert settings.split(None) == []


@pytest.mark.parametrize(
    "args",
    [
        "--jars a.jar,b.jar pyspark-shell",
        "--jars=a.jar,b.jar pyspark-shell",
        "--conf spark.jars=a.jar,b.jar pyspark-shell",
        "--conf=spark.jars=a.jar,b.jar pyspark-shell",
        "-c spark.jars=a.jar,b.jar pyspark-shell",
        "--jars a.jar --conf 'spark.jars=b.jar' pyspark-shell",
    ],
)
def test_submit_args_name_jars_in_many_ways(args: str) -> None:
    assert settings.in_submit_args(args) == ["a.jar", "b.jar"]
    joined = settings.join_submit_args(args, ["a.jar", "b.jar", "c.jar"])
    assert joined == "--jars a.jar,b.jar,c.jar pyspark-shell"


def test_other_submit_args_stay_as_they_are() -> None:
    args = "--master 'local[2]' --conf spark.jars.packages=x:y:1 --conf 'spark.a=b c' --jars a.jar pyspark-shell"
    assert settings.in_submit_args(args) == ["a.jar"]
    assert settings.join_submit_args(args, ["z.jar"]) == (
        "--jars z.jar --master 'local[2]' --conf spark.jars.packages=x:y:1 --conf 'spark.a=b c' pyspark-shell"
    )


@pytest.mark.parametrize("line", ["spark.jars a.jar,b.jar", "spark.jars=a.jar,b.jar", "  spark.jars :  a.jar,b.jar  "])
def test_spark_defaults_name_jars(tmp_path: Path, line: str) -> None:
    conf = tmp_path / "spark-defaults.conf"
    conf.write_text(f"# spark.jars commented.jar\nspark.jars.packages x:y:1\n{line}\nspark.master local\n")
    assert settings.in_defaults(conf) == ["a.jar", "b.jar"]


def test_no_spark_defaults_name_no_jar(tmp_path: Path) -> None:
    assert settings.in_defaults(tmp_path / "spark-defaults.conf") == []
