import io
import zipfile
from importlib.metadata import version
from pathlib import Path

from .conftest import Distributions
from .environment import ROOT, Environment, output, uv

VERSION = (ROOT / "VERSION").read_text().strip()
JAR = f"safetensors_spark/jars/safetensors-spark_2.13-{VERSION}.jar"

ROUND_TRIP = """
import sys
import safetensors_spark as sts
from pyspark.sql import SparkSession
spark = sts.configure(SparkSession.builder.master("local[1]").config("spark.ui.enabled", "false")).getOrCreate()
rows = spark.range(4).coalesce(1).selectExpr("array(float(id)) AS x")
rows.write.format("safetensors").option("batch_size", 4).mode("append").save(sys.argv[1])
back = spark.read.format("safetensors").option("inferSchema", True).load(sys.argv[1])
print(back.selectExpr("st_to_array(x) AS x").first().x)
"""


def names(wheel: Path) -> list[str]:
    return zipfile.ZipFile(wheel).namelist()


def test_wheel_is_for_every_python_and_platform(built: Distributions) -> None:
    assert built.wheel.name == f"safetensors_spark-{VERSION}-py3-none-any.whl"


def test_wheel_carries_one_jar_the_types_and_the_licence(built: Distributions) -> None:
    assert [name for name in names(built.wheel) if name.startswith("safetensors_spark/jars/")] == [JAR]
    assert "safetensors_spark/py.typed" in names(built.wheel)
    assert f"safetensors_spark-{VERSION}.dist-info/licenses/LICENSE" in names(built.wheel)


def test_jar_tells_its_version_and_bundles_nothing(built: Distributions) -> None:
    jar = zipfile.ZipFile(io.BytesIO(zipfile.ZipFile(built.wheel).read(JAR)))
    assert f"Implementation-Version: {VERSION}" in jar.read("META-INF/MANIFEST.MF").decode().splitlines()
    classes = [name for name in jar.namelist() if name.endswith(".class")]
    assert [name for name in classes if not name.startswith("io/github/semyonsinchenko/safetensors/")] == []
    assert classes


def test_wheel_installs_with_few_packages(built: Distributions, environment: Environment) -> None:
    before = environment.installed()
    environment.pip("install", built.wheel)
    added = {name.replace("_", "-") for name in environment.installed() - before}
    assert added == {"safetensors-spark", "crc32c", "ml-dtypes", "numpy"}
    jar = environment.jar_path()
    assert jar.is_relative_to(environment.folder)
    assert jar.read_bytes() == zipfile.ZipFile(built.wheel).read(JAR)


def test_installed_wheel_writes_and_reads_with_spark(
    built: Distributions, environment: Environment, tmp_path: Path
) -> None:
    python = environment.program("python")
    output(uv(), "pip", "install", "--python", python, built.wheel, f"pyspark=={version('pyspark')}")
    assert output(python, "-c", ROUND_TRIP, tmp_path / "dataset", cwd=tmp_path) == "[0.0, 1.0, 2.0, 3.0]"
