"""Operators with models: loaded once in each process, or in actors of Ray, with the same rows."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import datasets
import pytest

from factory.conftest import Longer, Upper
from factory.loads import Doubles, LoadedDedup, Twins, told
from safetensors_spark import LostShardError, PipelineError
from safetensors_spark.factory import Pipeline, Stage, load_pipeline, plan, register, run
from safetensors_spark.factory._placement import counts_of
from safetensors_spark.factory._stage_manifest import read_manifest
from safetensors_spark.pipeline import Backend, create_backend

SIZES: dict[str, Any] = {"shard_bytes": 4000, "window_bytes": 1500, "file_bytes": 2000}


@pytest.fixture(scope="module")
def cluster() -> Iterator[Any]:
    """Ray on this machine, which takes it that there are two GPUs."""
    ray = pytest.importorskip("ray")
    ray.init("local", num_cpus=2, num_gpus=2, include_dashboard=False, object_store_memory=80 << 20)
    yield ray
    ray.shutdown()


@pytest.fixture
def marks(tmp_path: Path) -> str:
    folder = tmp_path / "marks"
    folder.mkdir()
    return str(folder)


def _backend(name: str, workers: int = 2) -> Backend:
    return create_backend(name, workers, progress=False)


def _files(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*.parquet")}


def _of(*operators: Any, **options: Any) -> Pipeline:
    return Pipeline("p", (Stage("s", operators, **options),))


def _have_ended(marks: str) -> bool:
    """Whether all processes have ended that have loaded something; Ray has some seconds for that."""
    end = time.monotonic() + 20
    while any(Path(f"/proc/{process}").exists() for process in told(marks)):
        if time.monotonic() > end:
            return False
        time.sleep(0.1)
    return True


@pytest.mark.parametrize(("backend", "workers"), [("sync", 1), ("threads", 3), ("processes", 1), ("processes", 3)])
def test_an_operator_is_loaded_once_in_each_process(
    rows: Any, tmp_path: Path, marks: str, backend: str, workers: int
) -> None:
    operator = Doubles(folder=marks)
    found = run(_of(operator), rows, tmp_path / "out", backend=_backend(backend, workers), **SIZES)
    assert found["double"][:] == [2 * n for n in range(1000)]
    processes = told(marks)
    assert len(processes) == len(set(processes))
    assert len(processes) <= workers
    assert (str(os.getpid()) in processes) == (backend in ("sync", "threads"))
    # The caller's own stays as it is, so that it can be sent.
    assert operator._factor is None


def test_another_stage_lets_models_go(rows: Any, tmp_path: Path, marks: str, sync: Backend) -> None:
    for name in ("a", "b", "a"):
        run(_of(Doubles(folder=marks, output=name)), rows, tmp_path / name, backend=sync, mode="overwrite")
    assert len(told(marks)) == 3


def test_a_file_of_a_model_that_changes_is_loaded_again(rows: Any, tmp_path: Path, marks: str, sync: Backend) -> None:
    class Model(Doubles):
        type = "model"

        @property
        def files(self) -> tuple[str, ...]:
            return (str(tmp_path / "weights"),)

    for content in ("1", "23"):
        (tmp_path / "weights").write_text(content)
        run(_of(Model(folder=marks)), rows, tmp_path / "out", backend=sync, mode="overwrite")
    assert len(told(marks)) == 2


@pytest.mark.parametrize("where", ["processes", "ray"])
def test_what_load_raises_names_the_operator(cluster: Any, rows: Any, tmp_path: Path, marks: str, where: str) -> None:
    operator = Doubles(folder=marks, breaks=True, concurrency=2)
    with pytest.raises(OSError, match="there are no weights") as error:
        run(_of(operator), rows, tmp_path / "out", backend=_backend(where), **SIZES)
    assert "In `load` of operator `doubles_1`" in error.value.__notes__
    assert _have_ended(marks)


def test_files_are_the_same_for_any_number_of_actors(
    cluster: Any, rows: Any, tmp_path: Path, marks: str, sync: Backend
) -> None:
    def recipe(**resources: Any) -> Pipeline:
        operators = [LoadedDedup(**resources), Doubles(folder=marks, **resources), Longer(limit=100), Upper()]
        return _of(*operators, Doubles(folder=marks, output="again"), Twins(**resources), Longer(limit=200, id="last"))

    rows = datasets.concatenate_datasets([rows, rows.select(range(300))])
    run(recipe(), rows, tmp_path / "one", backend=sync, **SIZES)
    expected = _files(tmp_path / "one")
    assert len(expected) > 10
    placed: list[dict[str, Any]] = [{"concurrency": 1}, {"gpus": 0.5}]
    for number, resources in enumerate(placed):
        folder = tmp_path / str(number)
        run(recipe(**resources), rows, folder, backend=_backend("ray", 4), **SIZES)
        assert _files(folder) == expected
        manifests = [read_manifest(f"{place}/s") for place in (folder, tmp_path / "one")]
        assert [one and one["operators"] for one in manifests] == [manifests[0] and manifests[0]["operators"]] * 2


def test_actors_are_as_many_as_asked_and_load_once(cluster: Any, rows: Any, tmp_path: Path, marks: str) -> None:
    operator = Doubles(folder=marks, concurrency=3, waits_for=3)
    found = run(_of(operator), rows, tmp_path / "out", backend=_backend("ray", 6), **SIZES)
    assert found["double"][:] == [2 * n for n in range(1000)]
    processes = told(marks)
    assert len(processes) == len(set(processes)) == 3
    # Each of them has worked.
    assert {path.name.partition("-")[0] for path in Path(marks).glob("*-batch")} == set(processes)


def test_without_a_number_there_are_actors_for_all_gpus(cluster: Any, rows: Any, tmp_path: Path, marks: str) -> None:
    operator = Doubles(folder=marks, gpus=0.5, waits_for=4)
    run(_of(operator), rows, tmp_path / "out", backend=_backend("ray", 8), **SIZES)
    assert len(told(marks)) == 4


def test_another_run_goes_on_with_other_resources(
    cluster: Any, rows: Any, tmp_path: Path, marks: str, sync: Backend
) -> None:
    def recipe(**resources: Any) -> Pipeline:
        return _of(Doubles(folder=marks, **resources))

    out = tmp_path / "out"
    run(recipe(), rows, out, backend=sync, **SIZES)
    for resources in ({"concurrency": 2}, {"gpus": 1, "concurrency": 1}):
        Path(marks, "deaths").unlink(missing_ok=True)
        before = len(told(marks))
        assert len(run(recipe(**resources), rows, out, backend=_backend("ray"), **SIZES)) == 1000
        assert len(told(marks)) == before


def test_shards_of_a_broken_run_are_kept_when_another_has_other_resources(
    cluster: Any, rows: Any, tmp_path: Path, marks: str, sync: Backend
) -> None:
    wrong = _of(Doubles(folder=marks, dies_at=-2, wrong_at=990))
    with pytest.raises(ValueError, match="a number that is wrong"):
        run(wrong, rows, tmp_path, backend=sync, **SIZES)
    made = set(_files(tmp_path))
    assert made
    times = {name: (tmp_path / name).stat().st_mtime_ns for name in made}
    again = _of(Doubles(folder=marks, dies_at=-2, wrong_at=990, concurrency=1, gpus=1))
    with pytest.raises(ValueError, match="a number that is wrong"):
        run(again, rows, tmp_path, backend=_backend("ray"), **SIZES)
    assert {name: (tmp_path / name).stat().st_mtime_ns for name in made} == times


@pytest.mark.parametrize("deaths", [1, 2])
def test_an_actor_that_dies_is_replaced(cluster: Any, rows: Any, tmp_path: Path, marks: str, deaths: int) -> None:
    operator = Doubles(folder=marks, dies_at=500, deaths=deaths, concurrency=1)
    found = run(_of(operator), rows, tmp_path / "out", backend=_backend("ray"), **SIZES)
    assert found["double"][:] == [2 * n for n in range(1000)]
    assert len(told(marks)) == 1 + deaths


def test_a_batch_whose_actors_die_each_time_is_named(cluster: Any, rows: Any, tmp_path: Path, marks: str) -> None:
    operator = Doubles(folder=marks, dies_at=500, deaths=99, concurrency=2)
    with pytest.raises(LostShardError, match=r"the actor of `doubles_1` died in 3 attempts at a batch of") as error:
        run(_of(operator), rows, tmp_path / "out", backend=_backend("ray"), **SIZES)
    notes = "\n".join(error.value.__notes__)
    assert "In operator `doubles_1`" in notes
    assert "of stage `s`" in notes
    assert len(Path(marks, "deaths").read_text()) == 3
    assert _have_ended(marks)


def test_an_exception_in_an_actor_is_raised_at_once(cluster: Any, rows: Any, tmp_path: Path, marks: str) -> None:
    operator = Doubles(folder=marks, wrong_at=700, concurrency=2)
    with pytest.raises(ValueError, match="a number that is wrong") as error:
        run(_of(operator), rows, tmp_path / "out", backend=_backend("ray"), **SIZES)
    notes = "\n".join(error.value.__notes__)
    assert notes.count("In operator `doubles_1`") == 1
    assert "In rows " in notes
    assert "of stage `s`" in notes
    # None was started in place of another one.
    assert len(told(marks)) <= 2
    assert _have_ended(marks)


def test_rows_that_raise_in_an_actor_are_dropped_where_the_stage_says_so(
    cluster: Any, rows: Any, tmp_path: Path, marks: str, sync: Backend
) -> None:
    for name, backend in (("one", sync), ("ray", _backend("ray"))):
        operator = Doubles(folder=marks, wrong_at=700, concurrency=2)
        found = run(_of(operator, on_error="quarantine"), rows, tmp_path / name, backend=backend, **SIZES)
        assert 700 not in found["n"][:]
        assert len(found) == 999
    assert _files(tmp_path / "one") == _files(tmp_path / "ray")


def test_gpus_that_are_not_there_are_an_error(cluster: Any, rows: Any, tmp_path: Path, marks: str) -> None:
    with pytest.raises(PipelineError, match=r"`doubles_1` asks for 3 GPU, and the nodes of Ray's cluster have 2\."):
        run(_of(Doubles(folder=marks, gpus=3)), rows, tmp_path / "ray", backend=_backend("ray"))
    with pytest.raises(PipelineError, match=r"`doubles_1` asks for 1 GPU, but PyTorch.*Set `gpus` to 0"):
        run(_of(Doubles(folder=marks, gpus=1)), rows, tmp_path / "processes", backend=_backend("processes"))
    assert told(marks) == []


@pytest.mark.parametrize(
    ("asked", "nodes", "expected"),
    [
        ([(0, 3)], [0], [3]),
        ([(1, None)], [2, 4], [6]),
        ([(0.3, None)], [2], [6]),
        ([(2, None)], [3, 5], [3]),
        ([(1, None), (1, None)], [4], [2, 2]),
        ([(1, 1), (0.5, None)], [2], [1, 2]),
        # The others wait until there is a GPU for them.
        ([(1, 5)], [2], [5]),
        ([(0.1, None)], [8], [20]),
        ([(1, None)], [0, 0], None),
        ([(1, 1), (1, 1)], [1], None),
        ([(2, 1)], [1, 1], None),
    ],
)
def test_how_many_actors_there_are(
    asked: list[tuple[float, int | None]], nodes: list[float], expected: list[int] | None
) -> None:
    operators = [
        Doubles(folder="", id=f"d{number}", gpus=gpus, concurrency=count) for number, (gpus, count) in enumerate(asked)
    ]
    if expected is None:
        with pytest.raises(PipelineError, match=r"asks for . GPU, and the nodes of Ray's cluster have"):
            counts_of(operators, nodes, 20)
    else:
        assert list(counts_of(operators, nodes, 20).values()) == expected


@pytest.mark.parametrize(
    ("backend", "places"),
    [
        ("sync", ["CPU", "CPU, in each worker", "0.5 GPU, in each worker", "CPU, in each worker"]),
        ("ray", ["CPU", "CPU, in each worker", "0.5 GPU, 2 actors", "CPU, 1 actor"]),
    ],
)
def test_a_plan_tells_where_operators_run(rows: Any, tmp_path: Path, backend: str, places: list[str]) -> None:
    operators = [
        Upper(),
        Doubles(folder="", output="a"),
        Doubles(folder="", output="b", gpus=0.5, concurrency=2),
        Doubles(folder="", output="c", concurrency=1),
    ]
    found = plan(_of(*operators), rows, tmp_path, backend=_backend(backend))
    assert found.stages[0].placements == places
    for operator, place in zip(found.stages[0].operators, places, strict=True):
        (line,) = [line for line in str(found).splitlines() if f" {operator.id} " in line]
        assert f"  {place} " in line


def test_resources_stand_beside_an_id_in_yaml(tmp_path: Path) -> None:
    register(Doubles)
    file = tmp_path / "p.yaml"
    text = (
        "name: p\nstages:\n  - name: s\n    operators:\n      - {type: doubles, folder: x, gpus: %s, concurrency: 2}\n"
    )
    file.write_text(text % "0.5")
    (operator,) = load_pipeline(file).stages[0].operators
    assert (operator.gpus, operator.concurrency) == (0.5, 2)
    assert load_pipeline(file).stages[0].config == [Doubles(folder="x", id="doubles_1").config]
    file.write_text(text % "1.5")
    with pytest.raises(PipelineError, match=r"line 5: .*1\.5 is neither a part of a GPU nor a number of whole ones"):
        load_pipeline(file)
