"""The jar reaches Spark in every way in which people start it. Each test starts the real thing in a process of its own.

What works in a session is always shown by the same steps: encode and write, read and decode, the same by the catalog.
"""

import os
import socket
import subprocess
import sys
import time
import zipfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pyspark
import pytest

import quick_jvm
import safetensors_spark as sts

_PRELUDE = """
import os
from pyspark.sql import SparkSession
import safetensors_spark as sts
from safetensors_spark.functions import arr_to_st, st_to_array

def builder():
    settings = {"driver.memory": "512m", "ui.enabled": "false", "driver.host": "127.0.0.1"}
    settings |= {f"{of}.extraJavaOptions": os.environ["JVM_OPTIONS"] for of in ("driver", "executor")}
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
    by_catalog(spark)

def by_catalog(spark):
    table = f"safetensors.wide.`{os.path.abspath('dataset')}`"
    print(spark.sql(f"SELECT safetensors.st_to_array(v) FROM {table}").first()[0])

def driver_has(spark, resource):
    loader = spark._jvm.java.lang.Thread.currentThread().getContextClassLoader()
    print(resource, loader.getResource(resource) is not None)

def is_missing(spark):
    try:
        spark.read.format("safetensors").load("anywhere")
    except Exception as error:
        print("DATA_SOURCE_NOT_FOUND" in str(error))
"""
_BY_CATALOG = "[1.0, 2.0, 3.0, 4.0]\n"
_ROUND_TRIP = 2 * _BY_CATALOG
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
            env={**clean, "PYSPARK_PYTHON": sys.executable, "JVM_OPTIONS": quick_jvm.OPTIONS, **env},
        )
        assert done.returncode == 0, done.stderr
        return done

    return run


@pytest.fixture
def jar(tmp_path: Path) -> Callable[[str], str]:
    """Makes a jar of the user's own, which holds one file, and gives its path."""

    def jar(resource: str) -> str:
        path = tmp_path / f"{resource}.jar"
        with zipfile.ZipFile(path, "w") as archive:
            archive.writestr(resource, "")
        return str(path)

    return jar


def _submit(*options: str) -> list[str]:
    program = str(Path(pyspark.__file__).parent / "bin" / "spark-submit")
    return [program, "--driver-memory", "512m", "--driver-java-options", quick_jvm.OPTIONS, *options]


def test_configured_sessions_one_after_another_keep_the_jars_of_spark_defaults(
    run: Run, jar: Callable[[str], str], tmp_path: Path
) -> None:
    (tmp_path / "spark-defaults.conf").write_text(f"spark.jars {jar('defaults.txt')}\n")
    done = run(
        """
spark = sts.configure(classic()).getOrCreate()
driver_has(spark, "defaults.txt")
round_trip(spark)
before = spark.sql("LIST JARS").collect()
sts.attach(spark)
print(spark.sql("LIST JARS").collect() == before)
spark.stop()
round_trip(sts.configure(classic()).getOrCreate())
""",
        SPARK_CONF_DIR=str(tmp_path),
    )
    assert done.stdout == "defaults.txt True\n" + _ROUND_TRIP + "True\n" + _ROUND_TRIP
    assert _TOO_LATE not in done.stderr


@pytest.mark.short
def test_a_running_session_can_be_attached_again_configured_and_have_sessions_beside_it(run: Run) -> None:
    done = run("""
spark = classic().getOrCreate()
is_missing(spark)
for _ in range(2):
    sts.attach(spark)
    round_trip(spark)
print(len([jar for jar in spark.sql("LIST JARS").collect() if "safetensors" in jar[0]]))
round_trip(sts.configure(classic()).getOrCreate())
second = spark.newSession()
sts.attach(second)
round_trip(second)
""")
    assert done.stdout == "True\n" + 2 * _ROUND_TRIP + "1\n" + 2 * _ROUND_TRIP
    assert "Unable to load custom metric object" not in done.stderr
    assert _TOO_LATE not in done.stderr


def test_the_user_s_jars_stay_wherever_they_are_named(run: Run, jar: Callable[[str], str], tmp_path: Path) -> None:
    (tmp_path / "spark-defaults.conf").write_text(f"spark.jars {jar('defaults.txt')}\n")
    done = run(
        f"""
spark = sts.configure(classic().config("spark.jars", {jar("builder.txt")!r})).getOrCreate()
for resource in ("builder.txt", "submitted.txt", "defaults.txt"):
    driver_has(spark, resource)
round_trip(spark)
""",
        SPARK_CONF_DIR=str(tmp_path),
        PYSPARK_SUBMIT_ARGS=f"--jars {jar('submitted.txt')} pyspark-shell",
    )
    assert done.stdout == "builder.txt True\nsubmitted.txt True\ndefaults.txt True\n" + _ROUND_TRIP


# What Python writes to standard error, `spark-submit` passes on to standard output.
def test_spark_submit_with_the_jar_of_jar_path(run: Run) -> None:
    jar = subprocess.run([sys.executable, "-m", "safetensors_spark", "jar-path"], capture_output=True, text=True)
    script = "round_trip(sts.configure(classic()).getOrCreate())"
    assert run(script, *_submit("--jars", jar.stdout.strip())).stdout == _ROUND_TRIP


def test_configuring_after_the_jvm_has_started_warns_and_attach_brings_the_jar(run: Run) -> None:
    done = run(
        """
spark = sts.configure(classic()).getOrCreate()
is_missing(spark)
sts.attach(spark)
round_trip(spark)
""",
        *_submit(),
    )
    assert f"UserWarning: {_TOO_LATE} Build the session and call `safetensors_spark.attach(spark)`." in done.stdout
    assert done.stdout.endswith("True\n" + _ROUND_TRIP)


# `test_cluster.py` has executors of a configured session.
def test_executors_in_processes_of_their_own_get_the_jar_from_attach(run: Run) -> None:
    done = run("""
spark = classic("local-cluster[2,1,1024]").getOrCreate()
sts.attach(spark)
round_trip(spark)
""")
    assert done.stdout == _ROUND_TRIP


# SPARK_TESTING gives the Connect server a free port, where 15002 is fixed otherwise.
@pytest.mark.short
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


def test_a_connect_server_in_another_process_gets_the_jar_from_attach(run: Run, tmp_path: Path) -> None:
    with _connect_server(tmp_path) as url:
        done = run(f"""
from safetensors_spark.arrow import stack
from safetensors_spark.functions import st_show
spark = sts.configure(SparkSession.builder.remote({url!r})).getOrCreate()
sts.attach(spark)
sts.attach(spark)
round_trip(spark)
type(spark.catalog).functionExists = None  # the helpers have asked, and do not ask again
rows = spark.sql("SELECT array(7) AS v").select(arr_to_st("v", [1], "BF16").alias("x"))
print(rows.select(st_to_array("x")).first()[0], stack(rows.toArrow()["x"]).tolist())
print(rows.select(st_show("x", 1)).first()[0])
""")
    assert done.stdout == _ROUND_TRIP + "[7.0] [[7.0]]\nBF16[1] 7\n"
    assert "UserWarning: A jar on the builder does not reach a Spark Connect server." in done.stderr


@pytest.mark.parametrize("kind", ["classic", "connect"])
def test_a_jar_of_another_version_is_named_with_both_versions(run: Run, tmp_path: Path, kind: str) -> None:
    old = _jar_of_version("0.0.9", tmp_path / "old.jar")
    session = "classic()" if kind == "classic" else 'builder().remote("local[1]")'
    done = run(
        f"""
spark = {session}.config("spark.jars", {str(old)!r}).getOrCreate()
try:
    sts.attach(spark)
except sts.IncompatibleVersionError as error:
    print(error)
""",
        **({} if kind == "classic" else {"SPARK_TESTING": "1"}),
    )
    where = f"file:{old}" if kind == "classic" else "that Spark has"
    assert done.stdout.startswith(
        f"The connector's jar {where} is 0.0.9, but the package safetensors-spark is {sts.__version__}. Take that jar"
    )
    assert done.stdout.endswith(
        '--jars "$(safetensors-spark jar-path)", or install the package that fits it: '
        'pip install "safetensors-spark==0.0.9"\n'
    )


@contextmanager
def _connect_server(folder: Path) -> Iterator[str]:
    """A server of Spark Connect in a process of its own, without the jar; gives the URL for clients."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    settings = {"ui.enabled": "false", "connect.grpc.binding.port": port, "connect.grpc.binding.address": "127.0.0.1"}
    confs = [argument for name, value in settings.items() for argument in ("--conf", f"spark.{name}={value}")]
    main = ["--class", "org.apache.spark.sql.connect.service.SparkConnectServer", "spark-internal"]
    log = folder / "server.log"
    command = _submit("--master", "local[1]", *confs, *main)
    env = {name: value for name, value in os.environ.items() if name not in _OURS}
    with (
        log.open("w") as output,
        subprocess.Popen(command, stdout=output, stderr=output, cwd=folder, env=env) as server,
    ):
        try:
            while not _listens(port):
                assert server.poll() is None, log.read_text()
                time.sleep(0.2)
            yield f"sc://127.0.0.1:{port}"
        finally:
            server.terminate()


def _listens(port: int) -> bool:
    with socket.socket() as client:
        return client.connect_ex(("127.0.0.1", port)) == 0


def _jar_of_version(version: str, path: Path) -> Path:
    """The connector's jar, under another version in its manifest."""
    with zipfile.ZipFile(sts.jar_path()) as ours, zipfile.ZipFile(path, "w") as other:
        for entry in ours.infolist():
            content = ours.read(entry)
            if entry.filename == "META-INF/MANIFEST.MF":
                content = content.replace(f"-Version: {sts.__version__}".encode(), f"-Version: {version}".encode())
            other.writestr(entry, content)
    return path
