"""`configure` adds one jar and one catalog to what the user has, and nothing else. No JVM starts here."""

import os
import re
import shlex
import warnings
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import cast

import pyspark
import pytest
from pyspark.sql import SparkSession

import safetensors_spark as sts


@pytest.fixture(autouse=True)
def _plain_environment(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[None]:
    for name in ("PYSPARK_SUBMIT_ARGS", "SPARK_REMOTE", "PYSPARK_GATEWAY_PORT"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("SPARK_CONF_DIR", str(tmp_path))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        yield


CATALOG = "spark.sql.catalog.safetensors"


def test_only_the_jar_and_the_catalog_are_set() -> None:
    builder = sts.configure(SparkSession.builder)
    catalog = "io.github.semyonsinchenko.safetensors.SafetensorsCatalog"
    assert builder._options == {"spark.jars": sts.jar_path(), CATALOG: catalog}
    assert "PYSPARK_SUBMIT_ARGS" not in os.environ


def test_it_returns_the_builder_it_was_given() -> None:
    builder = SparkSession.builder.master("local[3]").config("spark.driver.memory", "7g")
    assert sts.configure(builder) is builder
    assert builder._options["spark.master"] == "local[3]"
    assert builder._options["spark.driver.memory"] == "7g"


def test_jars_on_the_builder_stay() -> None:
    builder = sts.configure(SparkSession.builder.config("spark.jars", "a.jar,b.jar"))
    assert builder._options["spark.jars"] == f"a.jar,b.jar,{sts.jar_path()}"


def test_jars_in_spark_defaults_stay(tmp_path: Path) -> None:
    (tmp_path / "spark-defaults.conf").write_text("spark.jars default.jar\n")
    assert sts.configure(SparkSession.builder)._options["spark.jars"] == f"default.jar,{sts.jar_path()}"


def test_spark_defaults_are_found_in_spark_home(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    (tmp_path / "conf").mkdir()
    (tmp_path / "conf" / "spark-defaults.conf").write_text("spark.jars home.jar\n")
    monkeypatch.delenv("SPARK_CONF_DIR")
    monkeypatch.setenv("SPARK_HOME", str(tmp_path))
    assert sts.configure(SparkSession.builder)._options["spark.jars"] == f"home.jar,{sts.jar_path()}"


def test_jars_in_submit_args_stay_and_are_joined_there(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYSPARK_SUBMIT_ARGS", "--jars args.jar pyspark-shell")
    builder = sts.configure(SparkSession.builder.config("spark.jars", "mine.jar"))
    expected = f"mine.jar,args.jar,{sts.jar_path()}"
    assert builder._options["spark.jars"] == expected
    assert shlex.split(os.environ["PYSPARK_SUBMIT_ARGS"]) == ["--jars", expected, "pyspark-shell"]


def test_submit_args_without_jars_are_left_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYSPARK_SUBMIT_ARGS", "--master local[2]   pyspark-shell")
    sts.configure(SparkSession.builder)
    assert os.environ["PYSPARK_SUBMIT_ARGS"] == "--master local[2]   pyspark-shell"


def test_a_catalog_of_the_user_s_stays(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    assert sts.configure(SparkSession.builder.config(CATALOG, "mine"))._options[CATALOG] == "mine"
    (tmp_path / "spark-defaults.conf").write_text(f"{CATALOG}=mine\n")
    assert CATALOG not in sts.configure(SparkSession.builder)._options
    (tmp_path / "spark-defaults.conf").unlink()
    for option in ("--conf ", "--conf=", "-c "):
        monkeypatch.setenv("PYSPARK_SUBMIT_ARGS", f"{option}{CATALOG}=mine pyspark-shell")
        assert CATALOG not in sts.configure(SparkSession.builder)._options


def test_the_connector_s_jar_of_another_version_is_refused_with_both(monkeypatch: pytest.MonkeyPatch) -> None:
    old = "hdfs:/jars/safetensors-spark_2.13-0.0.9.jar"
    monkeypatch.setenv("PYSPARK_SUBMIT_ARGS", f"--jars {old} pyspark-shell")
    message = f"jar {old} is 0.0.9, but the package safetensors-spark is {sts.__version__}. Take that jar away"
    with pytest.raises(sts.IncompatibleVersionError, match=re.escape(message)):
        sts.configure(SparkSession.builder)
    same = old.replace("0.0.9", sts.__version__)
    monkeypatch.setenv("PYSPARK_SUBMIT_ARGS", f"--jars {same} pyspark-shell")
    assert sts.configure(SparkSession.builder)._options["spark.jars"] == f"{same},{sts.jar_path()}"


def test_a_spark_before_4_is_refused_with_both_versions(monkeypatch: pytest.MonkeyPatch) -> None:
    message = (
        f"This is Spark 3.5.6, but safetensors-spark {sts.__version__} is for Spark 4.0 to 4.3, which has Scala 2.13."
    )
    builder = SparkSession.builder
    monkeypatch.setattr(pyspark, "__version__", "3.5.6")
    with pytest.raises(sts.IncompatibleVersionError, match=re.escape(message)):
        sts.configure(builder)
    session = cast(SparkSession, SimpleNamespace(version="3.5.6"))  # as much of one as is looked at
    with pytest.raises(sts.IncompatibleVersionError, match=re.escape(message)):
        sts.attach(session)


def test_twice_is_the_same_as_once(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("PYSPARK_SUBMIT_ARGS", "--conf spark.jars=args.jar pyspark-shell")
    (tmp_path / "spark-defaults.conf").write_text("spark.jars default.jar\n")
    builder = sts.configure(SparkSession.builder.config("spark.jars", "mine.jar"))
    once = dict(builder._options), os.environ["PYSPARK_SUBMIT_ARGS"]
    sts.configure(builder)
    assert (builder._options, os.environ["PYSPARK_SUBMIT_ARGS"]) == once


def test_a_remote_builder_is_left_alone_with_a_warning_that_names_attach() -> None:
    builder = SparkSession.builder.remote("sc://host")
    with pytest.warns(UserWarning, match=r"does not reach a Spark Connect server.*attach\(spark\)"):
        sts.configure(builder)
    assert "spark.jars" not in builder._options


def test_a_remote_in_the_environment_counts_too(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SPARK_REMOTE", "sc://host")
    with pytest.warns(UserWarning, match="Spark Connect server"):
        sts.configure(SparkSession.builder)


def test_a_local_connect_server_is_configured_as_any_session() -> None:
    builder = sts.configure(SparkSession.builder.remote("local[1]"))
    assert builder._options["spark.jars"] == sts.jar_path()
