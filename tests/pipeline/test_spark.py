"""What Spark does with lost executors, and with errors of functions, on a cluster of two executors."""

from __future__ import annotations

import os
import signal
import time
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest

pytest.importorskip("pyspark")

from pipeline.conftest import MakeBackend
from safetensors_spark import LostShardError, PipelineError
from safetensors_spark.pipeline import Backend, Dataset, col, create_backend, get_shared

pytestmark = pytest.mark.usefixtures("spark_cluster")


def on_spark(**options: Any) -> Backend:
    return create_backend("spark", max_parallelism=2, progress=False, **options)


def once(folder: Path, name: str) -> bool:
    """Whether nobody was here before."""
    try:
        (folder / name).touch(exist_ok=False)
    except FileExistsError:
        return False
    return True


def executor() -> int:
    """The process of the JVM that the Python worker belongs to."""
    process = os.getppid()
    while "java" not in Path(f"/proc/{process}/comm").read_text():
        process = int(Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[1])
    return process


def test_files_are_equal_to_those_of_one_process(files: Path, tmp_path: Path, sync: MakeBackend) -> None:
    def of_kind(kind: str, rows: Any) -> dict[str, Any]:
        return {"kind": kind, "ids": [row["id"] for row in rows]}

    def pipeline(folder: str) -> Dataset[str]:
        rows = Dataset.from_files(files, "**/*.jsonl.gz").load_jsonl().filter(col("score") > 0.25)
        found = rows.group_by(lambda row: row["kind"], of_kind, sort_by=lambda row: -row["id"], num_output_shards=3)
        return found.write_jsonl(f"{tmp_path}/{folder}/{{shard}}-of-{{total}}.jsonl.gz")

    written = list(on_spark().execute(pipeline("spark")))
    expected = list(sync().execute(pipeline("sync")))
    assert len(written) == 3
    assert [Path(path).read_bytes() for path in written] == [Path(path).read_bytes() for path in expected]


@pytest.mark.parametrize("lost", ["worker", "executor"])
def test_a_shard_that_was_lost_is_made_again(lost: str, tmp_path: Path) -> None:
    def dies_once(row: int) -> int:
        if row == 2 and once(tmp_path, "died"):
            os.kill(executor() if lost == "executor" else os.getpid(), signal.SIGKILL)
            time.sleep(60)
        return row * 10

    assert list(on_spark().execute(Dataset.from_list(range(4)).map(dies_once))) == [0, 10, 20, 30]
    assert (tmp_path / "died").exists()


def test_a_connection_that_is_always_lost_is_named(tmp_path: Path) -> None:
    def loses(row: int) -> int:
        (tmp_path / uuid4().hex).touch()
        raise ConnectionRefusedError("nobody is there")

    with pytest.raises(LostShardError, match=r"shard 0 of 1 .* 3 attempts.*ConnectionRefusedError: nobody is there"):
        on_spark().execute(Dataset.from_list([1]).map(loses))
    assert len(list(tmp_path.iterdir())) == 3


class BadRecordError(Exception):
    def __init__(self, record: int, what: str) -> None:
        super().__init__(record, what)


def test_an_error_of_a_function_ends_what_else_runs_and_is_not_tried_again(tmp_path: Path, spark_cluster: Any) -> None:
    def waits_or_fails(row: str) -> str:
        if row == "waits":
            (tmp_path / "waits").touch()
            while True:
                time.sleep(0.1)
        while not (tmp_path / "waits").exists():
            time.sleep(0.05)
        (tmp_path / uuid4().hex).touch()
        raise BadRecordError(1, "no text")

    with pytest.raises(BadRecordError, match="no text") as error:
        on_spark().execute(Dataset.from_list(["waits", "fails"]).map(waits_or_fails))
    assert type(error.value) is BadRecordError
    assert any("shard 1 of 2" in note for note in error.value.__notes__)
    assert len(list(tmp_path.iterdir())) == 2
    while spark_cluster.sparkContext.statusTracker().getActiveJobsIds():
        time.sleep(0.05)


def test_shared_objects() -> None:
    backend = on_spark().having(shared={"name": "of all"})
    assert list(backend.execute(Dataset.from_list([1]).map(lambda row: get_shared("name")))) == ["of all"]


def test_a_dataframe_is_a_source(tmp_path: Path, spark_cluster: Any, sync: MakeBackend) -> None:
    numbers = spark_cluster.range(0, 1000, 1, 5)
    frame = numbers.selectExpr("id", "array(id, id) AS pair", "struct(id % 7 AS rest) AS part", "NULL AS nothing")

    def attempted(row: dict[str, Any]) -> dict[str, Any]:
        if row["id"] == 300 and once(tmp_path, "died"):
            os.kill(os.getpid(), signal.SIGKILL)
        return row

    rows = Dataset.from_dataframe(frame).map(attempted).filter(col("part")["rest"] != 3)
    assert "DataFrame of id, pair, part, nothing: 5 shards" in str(on_spark().plan(rows))
    found = list(on_spark().execute(rows))
    assert found == [
        {"id": number, "pair": [number, number], "part": {"rest": number % 7}, "nothing": None}
        for number in range(1000)
        if number % 7 != 3
    ]
    assert (tmp_path / "died").exists()
    # Also behind a shuffle of Spark's, with one of ours after it, and never taken for made.
    grouped = Dataset.from_dataframe(frame.groupBy("part").count())
    for _ in range(2):
        counts = grouped.group_by(lambda row: row["count"], lambda key, rows: [key, len(list(rows))])
        assert sorted(on_spark().execute(counts)) == [[142, 1], [143, 6]]
    with pytest.raises(PipelineError, match="rows of a Spark DataFrame are on Spark: execute the pipeline with"):
        sync().execute(rows)
    with pytest.raises(TypeError, match="takes a DataFrame of Spark, not list"):
        Dataset.from_dataframe([1])
