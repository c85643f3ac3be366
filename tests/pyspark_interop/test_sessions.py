"""The jar reaches Spark in every way in which people start it. Each test starts the real thing in a process of its own.

What works in a session is always shown by the same three steps: encode and write, read, decode.
"""

import os
import subprocess
import sys
import zipfile
from collections.abc import Callable
from pathlib import Path

import pyspark
import pytest

_PRELUDE = """
import os
from pyspark.sql import SparkSession
import safetensors_spark as sts
from safetensors_spark.functions import arr_to_st, st_to_array

def builder():
    settings = {"driver.memory": "512m", "ui.enabled": "false", "driver.host": "127.0.0.1"}
    return SparkSession.builder.config(map={f"spark.{key}": value for key, value in settings.items()})

def classic(master="local[1]"):
    return builder().master(master)

def round_trip(spark):
    path = os.path.abspath("dataset")
    rows = spark.createDataFrame([([1.0, 2.0],), ([3.0, 4.0],)], "v array<float>").coalesce(1)
    tensors = rows.select(arr_to_st("v", [2], "F32").alias("v"))
    tensors.write.format("safetensors").option("batch_size", 2).mode("overwrite").save(path)
    back = spark.read.format("safetensors").option("inferSchema", "true").load(path)
    print(back.select(st_to_array("v")).first()[0])

def driver_has(spark, resource):
    loader = spark._jvm.java.lang.Thread.currentThread().getContextClassLoader()
    print(resource, loader.getResource(resource) is not None)

def is_missing(spark):
    try:
        spark.read.format("safetensors").load("anywhere")
    except Exception as error:
        print("DATA_SOURCE_NOT_FOUND" in str(error))
"""
_ROUND_TRIP = "[1.0, 2.0, 3.0, 4.0]\n"
_TOO_LATE = "A JVM runs already, and Spark ignores jars that come after its start."
_OURS = ("PYSPARK_SUBMIT_ARGS", "SPARK_CONF_DIR", "SPARK_REMOTE", "SPARK_HOME")

Run = Callable[..., subprocess.CompletedProcess[str]]


@pytest.fixture
def run(tmp_path: Path) -> Run:
    """Runs a script with the prelude before it, in an empty folder: with Python, or with another launcher."""

    def run(script: str, *launcher: str, **env: str) -> subprocess.CompletedProcess[str]:
        file = tmp_path / "script.py"
        file.write_text(_PRELUDE + script)
        clean = {name: value for name, value in os.environ.items() if name not in _OURS}
        done = subprocess.run(
            [*(launcher or [sys.executable]), str(file)],
            capture_output=True,
            text=True,
            cwd=tmp_path,
            env={**clean, "PYSPARK_PYTHON": sys.executable, **env},
        )
        assert done.returncode == 0, done.stderr
        return done

    return run


@pytest.fixture
def other_jar(tmp_path: Path) -> str:
    """A jar of the user's own, which holds one file, `mine.txt`."""
    jar = tmp_path / "mine.jar"
    with zipfile.ZipFile(jar, "w") as archive:
        archive.writestr("mine.txt", "")
    return str(jar)


def _submit(*options: str) -> list[str]:
    return [str(Path(pyspark.__file__).parent / "bin" / "spark-submit"), "--driver-memory", "512m", *options]


def test_a_configured_builder_in_a_fresh_process(run: Run) -> None:
    done = run("round_trip(sts.configure(classic()).getOrCreate())")
    assert done.stdout == _ROUND_TRIP
    assert _TOO_LATE not in done.stderr


def test_a_running_session_is_attached_and_attaching_again_changes_nothing(run: Run) -> None:
    done = run("""
spark = classic().getOrCreate()
is_missing(spark)
sts.attach(spark)
round_trip(spark)
sts.attach(spark)
round_trip(spark)
print(len([jar for jar in spark.sql("LIST JARS").collect() if "safetensors" in jar[0]]))
""")
    assert done.stdout == "True\n" + 2 * _ROUND_TRIP + "1\n"


def test_attaching_a_configured_session_changes_nothing(run: Run) -> None:
    done = run("""
spark = sts.configure(classic()).getOrCreate()
before = spark.sql("LIST JARS").collect()
sts.attach(spark)
print(spark.sql("LIST JARS").collect() == before)
round_trip(spark)
""")
    assert done.stdout == "True\n" + _ROUND_TRIP


def test_a_second_session_beside_an_attached_one_can_be_attached_too(run: Run) -> None:
    done = run("""
spark = classic().getOrCreate()
sts.attach(spark)
second = spark.newSession()
sts.attach(second)
round_trip(second)
""")
    assert done.stdout == _ROUND_TRIP


def test_configuring_after_the_jvm_has_started_warns_and_attach_mends_it(run: Run) -> None:
    done = run("""
classic().getOrCreate().stop()
spark = sts.configure(classic()).getOrCreate()
is_missing(spark)
sts.attach(spark)
round_trip(spark)
""")
    assert done.stdout == "True\n" + _ROUND_TRIP
    assert f"UserWarning: {_TOO_LATE} Build the session and call `safetensors_spark.attach(spark)`." in done.stderr


def test_a_new_session_after_a_configured_one_was_stopped(run: Run) -> None:
    done = run("""
sts.configure(classic()).getOrCreate().stop()
round_trip(sts.configure(classic()).getOrCreate())
""")
    assert done.stdout == _ROUND_TRIP
    assert _TOO_LATE not in done.stderr


def test_configuring_beside_an_attached_session_does_not_warn(run: Run) -> None:
    done = run("""
spark = classic().getOrCreate()
sts.attach(spark)
round_trip(sts.configure(classic()).getOrCreate())
""")
    assert done.stdout == _ROUND_TRIP
    assert _TOO_LATE not in done.stderr


_CONFIGURED_WITH_MINE = """
spark = sts.configure({builder}).getOrCreate()
driver_has(spark, "mine.txt")
round_trip(spark)
"""


def test_jars_of_the_builder_stay(run: Run, other_jar: str) -> None:
    builder = f'classic().config("spark.jars", {other_jar!r})'
    assert run(_CONFIGURED_WITH_MINE.format(builder=builder)).stdout == "mine.txt True\n" + _ROUND_TRIP


@pytest.mark.parametrize("option", ["--jars {jar}", "--conf spark.jars={jar}"])
def test_jars_of_the_submit_arguments_stay(run: Run, other_jar: str, option: str) -> None:
    args = f"{option.format(jar=other_jar)} pyspark-shell"
    done = run(_CONFIGURED_WITH_MINE.format(builder="classic()"), PYSPARK_SUBMIT_ARGS=args)
    assert done.stdout == "mine.txt True\n" + _ROUND_TRIP


def test_jars_of_spark_defaults_stay(run: Run, other_jar: str, tmp_path: Path) -> None:
    (tmp_path / "spark-defaults.conf").write_text(f"spark.jars {other_jar}\n")
    done = run(_CONFIGURED_WITH_MINE.format(builder="classic()"), SPARK_CONF_DIR=str(tmp_path))
    assert done.stdout == "mine.txt True\n" + _ROUND_TRIP


def test_spark_submit_with_the_jar_of_jar_path(run: Run) -> None:
    jar = subprocess.run([sys.executable, "-m", "safetensors_spark", "jar-path"], capture_output=True, text=True)
    script = "round_trip(sts.configure(classic()).getOrCreate())"
    done = run(script, *_submit("--jars", jar.stdout.strip()))
    assert done.stdout == _ROUND_TRIP
    assert _TOO_LATE not in done.stderr


def test_spark_submit_without_the_jar_warns_and_attach_mends_it(run: Run) -> None:
    done = run(
        """
spark = sts.configure(classic()).getOrCreate()
sts.attach(spark)
round_trip(spark)
""",
        *_submit(),
    )
    assert done.stdout == _ROUND_TRIP
    assert _TOO_LATE in done.stderr


@pytest.mark.parametrize("session", ["sts.configure({}).getOrCreate()", "{}.getOrCreate()"])
def test_executors_in_processes_of_their_own(run: Run, session: str) -> None:
    spark = session.format('classic("local-cluster[2,1,1024]")')
    done = run(f"spark = {spark}\nsts.attach(spark)\nround_trip(spark)")
    assert done.stdout == _ROUND_TRIP


# SPARK_TESTING gives the Connect server a free port, where 15002 is fixed otherwise.
def test_a_connect_server_with_the_jar(run: Run) -> None:
    done = run(
        """
spark = sts.configure(builder().remote("local[1]")).getOrCreate()
sts.attach(spark)
round_trip(spark)
""",
        SPARK_TESTING="1",
    )
    assert done.stdout == _ROUND_TRIP


def test_a_connect_server_without_the_jar_gets_the_data_source_and_an_error_about_functions(run: Run) -> None:
    done = run(
        """
spark = builder().remote("local[1]").getOrCreate()
for attempt in range(2):
    try:
        sts.attach(spark)
    except sts.FunctionsUnavailableError as error:
        print(error)
path = os.path.abspath("dataset")
rows = spark.createDataFrame([([1.0, 2.0],)], "v array<float>")
rows.write.format("safetensors").option("batch_size", 1).mode("overwrite").save(path)
print(spark.read.format("safetensors").option("inferSchema", "true").load(path).first().v.shape)
""",
        SPARK_TESTING="1",
    )
    error = (
        "The data source `safetensors` is attached and works. The functions arr_to_st and st_to_array are missing: "
        "this Spark Connect server was started without the connector's jar, and a client cannot add functions. "
        'To have them, start the server with\n    --jars "$(safetensors-spark jar-path)"\n'
    )
    assert done.stdout == 2 * error + "[1, 2]\n"


def test_a_remote_connect_session_is_not_told_to_load_jars(run: Run) -> None:
    done = run('print("spark.jars" in sts.configure(SparkSession.builder.remote("sc://nowhere"))._options)')
    assert done.stdout == "False\n"
    assert "A jar on the builder does not reach a Spark Connect server." in done.stderr
