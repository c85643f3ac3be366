"""`write_shard`: rows of any form become one shard, whole or not at all, whoever writes it and however often."""

import errno
import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from functools import partial
from hashlib import sha256
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd  # type: ignore[import-untyped]
import pyarrow as pa  # type: ignore[import-untyped]
import pyarrow.parquet as pq  # type: ignore[import-untyped]
import pytest

from forks import Fork
from killing import killed_at_each_step
from safetensors_spark import InvalidShardError
from safetensors_spark.publish import (
    FAILED_DIRNAME,
    SYNCED_DIRNAME,
    ShardSchema,
    StagedShard,
    _row_batches,
    list_pending,
    move_to,
    prune_orphans,
    write_shard,
)
from safetensors_spark.publish import _put_in_place as put_in_place
from safetensors_spark.publish._local_staging import LocalStaging, explained
from safetensors_spark.publish._staging import open_staging
from staging_samples import files

SCHEMA = ShardSchema(
    columns={"x": pa.int64(), "v": pa.list_(pa.float64())}, identity={"model": "m1"}, filled={"split": "a"}
)


def table(first: int = 0, rows: int = 3) -> pa.Table:
    numbers = list(range(first, first + rows))
    return pa.table({"x": numbers, "v": [[float(one), float("nan")] for one in numbers]})


def stage(folder: Path | str, rows: Any = None, run_id: str = "run", **options: Any) -> StagedShard:
    return write_shard(
        table() if rows is None else rows, staging_dir=folder, run_id=run_id, **({"schema": SCHEMA} | options)
    )


def read(shard: StagedShard) -> pa.Table:
    return pq.read_table(shard.parquet_path)


FORMS: dict[str, Callable[[], Any]] = {
    "pandas": lambda: table().to_pandas(),
    "table": table,
    "batch": lambda: table().to_batches()[0],
    "batches": lambda: iter(table().to_batches(1)),
    "reader": lambda: table().to_reader(2),
    "frames": lambda: iter([table().to_pandas()]),
}


@pytest.mark.parametrize("form", FORMS)
def test_rows_of_any_form_become_a_shard_with_its_sidecar(tmp_path: Path, form: str) -> None:
    shard = stage(tmp_path, FORMS[form](), provenance={"seed": np.int64(7)})
    written = read(shard)
    assert written.column_names == ["x", "v", "model", "run_id", "split", "created_at"]
    assert written["x"].to_pylist() == [0, 1, 2]
    assert set(written["run_id"].to_pylist()) == {"run"}
    assert set(written["model"].to_pylist()) == {"m1"}
    assert set(written["split"].to_pylist()) == {"a"}
    assert str(written.schema.field("created_at").type) == "timestamp[us, tz=UTC]"
    assert written.schema.metadata[b"schema_version"] == b"1"
    assert json.loads(written.schema.metadata[b"safetensors_spark.provenance"]) == {"seed": 7}
    body = Path(shard.parquet_path).read_bytes()
    sidecar = json.loads(Path(shard.sidecar_path).read_text())
    assert sidecar["created_at"].endswith("+00:00")
    assert {**sidecar, "created_at": None} == {
        "version": 1, "run_id": "run", "path_in_repo": shard.path_in_repo, "n_rows": 3, "bytes": len(body),
        "sha256": sha256(body).hexdigest(), "created_at": None, "provenance": {"seed": 7}, "schema_version": "1",
    }  # fmt: skip
    assert (shard.run_id, shard.n_rows) == ("run", 3)
    assert list_pending(tmp_path) == [shard]
    assert files(tmp_path)["pending"] == [shard.name, f"{shard.name}.meta.json"]


@pytest.mark.parametrize("kind", ["url", "memory"])
def test_a_staging_directory_may_be_any_url(tmp_path: Path, kind: str) -> None:
    import fsspec

    folder = tmp_path.as_uri() if kind == "url" else "memory://shards"
    shard = stage(folder)
    assert list_pending(folder) == [shard]
    assert stage(folder) == shard
    with pytest.raises(InvalidShardError, match="has other rows"):
        stage(folder, table(5))
    open_staging(folder).delete(f"pending/{shard.name}.meta.json")
    assert list_pending(folder) == []
    assert stage(folder) == shard, "what a killed worker left is completed"
    assert list_pending(folder) == [shard]
    with open_staging(folder).open(f"pending/{shard.name}") as body:
        assert pq.read_table(pa.PythonFile(body))["x"].to_pylist() == [0, 1, 2]
    if kind == "memory":
        fsspec.filesystem("memory").rm("/shards", recursive=True)


def test_the_writer_sets_identity_and_fills_only_what_is_absent(tmp_path: Path) -> None:
    rows = table().append_column("model", pa.array(["x", "y", "z"])).append_column("split", pa.array(["b", "c", "d"]))
    written = read(stage(tmp_path, rows.append_column("run_id", pa.array([1, 2, 3]))))
    assert set(written["model"].to_pylist()) == {"m1"}
    assert set(written["run_id"].to_pylist()) == {"run"}
    assert written["split"].to_pylist() == ["b", "c", "d"]


def test_other_columns_are_kept_and_required_ones_get_their_type(tmp_path: Path) -> None:
    rows = pa.table({"note": ["a"], "x": pa.array([1], pa.int8()), "v": pa.array([[1]], pa.list_(pa.int32()))})
    written = read(stage(tmp_path, rows))
    assert written["note"].to_pylist() == ["a"]
    assert (written.schema.field("x").type, written.schema.field("v").type) == (pa.int64(), pa.list_(pa.float64()))


@pytest.mark.parametrize(
    ("rows", "what"),
    [
        (pa.table({"x": [1]}), "column `v` is missing, expected list<item: double>"),
        (pa.table({"x": ["a"], "v": [[1.0]]}), "column `x` is string, expected int64"),
        (pa.table({"x": [1.5], "v": [[1.0]]}), "column `x` is double, expected int64"),
        (pa.table([[1], [1], [[1.0]]], names=["x", "x", "v"]), "there are several columns `x`"),
        (pa.table({"x": [1], "v": [[1.0]], "split": pa.array([None], pa.string())}), "`split` has no value in 1 of 1"),
        (pa.table({"x": pa.array([], pa.int64())}), "there are no rows"),
        (iter([]), "there are no rows"),
        (pd.DataFrame({"x": [], "v": []}), "there are no rows"),
        ("rows.parquet", "the rows are a str, expected a DataFrame"),
        ([{"x": 1}], "an item of the rows is a dict, expected a DataFrame"),
        (7, "the rows are a int, expected"),
        (pd.DataFrame({"x": [1, "a"], "v": [[1.0], [2.0]]}), "the DataFrame cannot become Arrow's columns"),
    ],
)  # fmt: skip
def test_rows_that_are_wrong_are_refused_before_anything_is_written(tmp_path: Path, rows: Any, what: str) -> None:
    with pytest.raises(InvalidShardError) as error:
        stage(tmp_path / "staging", rows)
    assert isinstance(error.value, ValueError)
    assert what in str(error.value)
    assert not (tmp_path / "staging").exists()


def test_all_columns_that_are_wrong_are_named_at_once(tmp_path: Path) -> None:
    with pytest.raises(InvalidShardError, match=r"column `x` is missing.*column `v` is missing"):
        stage(tmp_path, pa.table({"a": [1]}))


def test_a_required_column_that_is_not_nullable_has_no_nulls(tmp_path: Path) -> None:
    schema = ShardSchema(columns=pa.schema([pa.field("x", pa.int64(), nullable=False)]))
    with pytest.raises(InvalidShardError, match="column `x` has no value in 1 of 2 rows"):
        stage(tmp_path, pa.table({"x": [1, None]}), schema=schema)


@pytest.mark.parametrize(
    ("later", "what"),
    [
        (pa.table({"x": [1]}), "give all batches the same columns"),
        (pa.table({"x": ["a"], "v": [[1.0]]}), "batches have columns of different types"),
    ],
)
def test_a_later_batch_that_is_wrong_leaves_nothing(tmp_path: Path, later: pa.Table, what: str) -> None:
    with pytest.raises(InvalidShardError, match=f"(?i){what}"):
        stage(tmp_path, iter([table(), later]))
    assert list_pending(tmp_path) == []


def test_a_batch_that_is_wrong_after_a_row_group_leaves_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(_row_batches, "_GROUP_ROWS", 3)
    with pytest.raises(InvalidShardError, match="column `x` is string"):
        stage(tmp_path, iter([table(), pa.table({"x": ["a"] * 3, "v": [[1.0]] * 3})]))
    with pytest.raises(InvalidShardError, match="Give all batches the same columns"):
        stage(tmp_path, iter([table(), table().append_column("more", pa.array([1, 2, 3]))]))
    assert files(tmp_path)["pending"] == []


def test_an_iterator_that_fails_leaves_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_row_batches, "_GROUP_ROWS", 3)

    def broken() -> Iterator[pa.Table]:
        yield table()
        raise RuntimeError("no more")

    with pytest.raises(RuntimeError, match="no more"):
        stage(tmp_path, broken())
    assert files(tmp_path)["pending"] == []


def test_few_batches_of_an_iterator_are_in_memory_at_a_time(tmp_path: Path) -> None:
    rows, batches = 1 << 16, 60

    def given() -> Iterator[pa.RecordBatch]:
        for number in range(batches):
            yield pa.record_batch({"x": np.arange(rows) + number, "y": np.arange(rows * 1.0)})

    shard = stage(tmp_path, given(), schema=ShardSchema(columns={"x": pa.int64()}))
    assert shard.n_rows == rows * batches
    groups = pq.ParquetFile(shard.parquet_path).metadata
    assert groups.num_row_groups > 1
    assert max(groups.row_group(number).num_rows for number in range(groups.num_row_groups)) <= 1 << 20


@pytest.mark.parametrize("run_id", ["", "a/b", "..", ".hidden", "a b", "a\n", "é", "a" * 129, None, 7])
def test_run_ids_that_are_no_safe_names_are_refused(tmp_path: Path, run_id: Any) -> None:
    with pytest.raises(InvalidShardError, match="run_id is "):
        stage(tmp_path / "staging", run_id=run_id)
    assert not (tmp_path / "staging").exists()


@pytest.mark.parametrize("value", [float("nan"), object(), {1, 2}])
def test_provenance_that_json_does_not_have_is_refused(tmp_path: Path, value: object) -> None:
    with pytest.raises(InvalidShardError, match="the provenance cannot become JSON"):
        stage(tmp_path / "staging", provenance={"a": value})
    assert not (tmp_path / "staging").exists()


@pytest.mark.parametrize(
    ("options", "what"),
    [
        ({"columns": {"a": pa.int64()}, "identity": {"a": 1}}, "column `a` is in `columns` and in `identity`"),
        ({"bucket_bits": 33}, "bucket_bits is 33, expected a number from 0 to 32"),
        ({"path_in_repo": "data/all.parquet"}, "which all runs would write to"),
        ({"path_in_repo": "{run_id}/{other}.parquet"}, r"path_in_repo has \{other\}"),
        ({"path_in_repo": "{run_id"}, "path_in_repo is `{run_id`"),
    ],
)
def test_a_schema_that_contradicts_itself_is_refused(options: dict[str, Any], what: str) -> None:
    with pytest.raises(InvalidShardError, match=what):
        ShardSchema(**options)


@pytest.mark.parametrize("value", ["../up", "/root", "a b", "a/../b"])
def test_a_path_that_leads_elsewhere_is_refused(tmp_path: Path, value: str) -> None:
    schema = ShardSchema(identity={"model": value}, path_in_repo="{model}/{run_id}.parquet")
    with pytest.raises(InvalidShardError, match="the shard would go to"):
        stage(tmp_path, schema=schema)


def test_the_bucket_is_a_part_of_the_identitys_hash(tmp_path: Path) -> None:
    paths = {ShardSchema(identity={"m": 1}).path(f"run-{number}") for number in range(200)}
    assert {path.split("/")[1] for path in paths} == set("0123456789abcdef")
    assert ShardSchema(bucket_bits=8).path("run").split("/")[1] == "ac"
    assert ShardSchema(bucket_bits=0).path("run").split("/")[1] == "0"


def test_the_same_rows_under_one_run_id_are_one_shard(tmp_path: Path) -> None:
    shard = stage(tmp_path)
    before = Path(shard.parquet_path).read_bytes()
    assert stage(tmp_path, iter(table().to_batches(1))) == shard
    assert Path(shard.parquet_path).read_bytes() == before
    synced = move_to(shard, tmp_path, SYNCED_DIRNAME)
    assert stage(tmp_path) == synced
    assert list_pending(tmp_path) == []


def test_other_rows_under_one_run_id_are_an_error_that_names_the_shard(tmp_path: Path) -> None:
    shard = stage(tmp_path)
    for rows in (table(1), table(0, 2), table().append_column("more", pa.array([1, 2, 3]))):
        with pytest.raises(InvalidShardError) as error:
            stage(tmp_path, rows)
        assert f"{shard.parquet_path} has other rows" in str(error.value)
        assert "with another run_id" in str(error.value)
    move_to(shard, tmp_path, SYNCED_DIRNAME)
    with pytest.raises(InvalidShardError, match=r"synced/.* has other rows"):
        stage(tmp_path, table(1))
    assert stage(tmp_path, table(1), run_id="run2").run_id == "run2"


def test_rows_that_were_refused_by_the_hub_are_an_error_that_says_how_to_go_on(tmp_path: Path) -> None:
    move_to(stage(tmp_path), tmp_path, FAILED_DIRNAME)
    with pytest.raises(InvalidShardError, match=r"was refused when it was synced.*`retry_failed`"):
        stage(tmp_path)


def test_one_run_id_of_two_identities_is_two_shards(tmp_path: Path) -> None:
    schemas = [ShardSchema(identity={"m": m}, path_in_repo="{m}/{run_id}.parquet") for m in "ab"]
    first, second = (stage(tmp_path, schema=schema) for schema in schemas)
    assert (first.path_in_repo, second.path_in_repo) == ("a/run.parquet", "b/run.parquet")
    assert len(list_pending(tmp_path)) == 2


@pytest.mark.parametrize("synced", [False, True], ids=["new", "a rerun"])
def test_a_write_killed_at_any_file_operation_is_completed_by_the_next(tmp_path: Path, synced: bool) -> None:
    def folder(step: int) -> Path:
        if synced:
            move_to(stage(tmp_path / str(step)), tmp_path / str(step), SYNCED_DIRNAME)
        return tmp_path / str(step)

    steps = 0
    for left in killed_at_each_step(stage, folder):
        steps += 1
        before = list_pending(left)
        shard = stage(left)
        assert before in ([], [shard])
        assert read(shard)["x"].to_pylist() == [0, 1, 2]
        sidecar = json.loads(Path(shard.sidecar_path).read_text())
        assert sidecar["sha256"] == sha256(Path(shard.parquet_path).read_bytes()).hexdigest()
        assert list_pending(left) == ([] if synced else [shard])
        prune_orphans(left, older_than_s=0)
        assert sorted(name for found in files(left).values() for name in found) == [
            shard.name,
            f"{shard.name}.meta.json",
        ]
    assert steps > 3


def test_other_rows_beside_a_body_of_a_killed_worker(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    shard = stage(tmp_path)
    Path(shard.sidecar_path).unlink()
    with pytest.raises(InvalidShardError, match=r"has other rows and no sidecar.*`prune_orphans`"):
        stage(tmp_path, table(1))
    monkeypatch.setattr(put_in_place, "ORPHAN_S", 0)
    assert read(stage(tmp_path, table(1)))["x"].to_pylist() == [1, 2, 3]


def test_a_sidecar_that_lost_its_body_is_told(tmp_path: Path) -> None:
    shard = stage(tmp_path)
    Path(shard.parquet_path).unlink()
    with pytest.raises(InvalidShardError, match=r"meta\.json has no body.*`prune_orphans`"):
        stage(tmp_path)
    prune_orphans(tmp_path, older_than_s=0)
    assert stage(tmp_path) == shard


def test_a_shard_that_is_synced_between_look_and_write_is_not_doubled(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    look = put_in_place._already

    def staged_after_the_look(*arguments: Any) -> StagedShard | None:
        found = look(*arguments)
        monkeypatch.setattr(put_in_place, "_already", look)
        move_to(stage(tmp_path), tmp_path, SYNCED_DIRNAME)
        return found

    monkeypatch.setattr(put_in_place, "_already", staged_after_the_look)
    shard = stage(tmp_path)
    assert Path(shard.parquet_path).parent.name == "synced"
    assert files(tmp_path)["pending"] == []


def test_threads_with_one_run_id_and_the_same_rows_write_one_shard(tmp_path: Path) -> None:
    with ThreadPoolExecutor(8) as threads:
        shards = set(threads.map(lambda _: stage(tmp_path), range(40)))
    assert len(shards) == 1
    assert list_pending(tmp_path) == list(shards)
    sidecar = json.loads((tmp_path / "pending" / f"{next(iter(shards)).name}.meta.json").read_text())
    assert sidecar["sha256"] == sha256((tmp_path / "pending" / next(iter(shards)).name).read_bytes()).hexdigest()
    assert len(files(tmp_path)["pending"]) == 2


def test_threads_with_one_run_id_and_different_rows_write_those_of_one(tmp_path: Path) -> None:
    def attempt(number: int) -> int | None:
        try:
            stage(tmp_path, table(number))
        except InvalidShardError:
            return None
        return number

    with ThreadPoolExecutor(8) as threads:
        (winner,) = {number for number in threads.map(attempt, range(16)) if number is not None}
    (shard,) = list_pending(tmp_path)
    assert read(shard)["x"].to_pylist()[0] == winner


def test_processes_stage_side_by_side(tmp_path: Path) -> None:
    def stage(job: int) -> None:
        for number in range(20):
            for run_id in (f"own-{job}-{number}", f"shared-{number}"):
                write_shard(pa.table({"x": [number]}), staging_dir=tmp_path, run_id=run_id, schema=ShardSchema())

    with ExitStack() as forks:
        jobs = [forks.enter_context(Fork(partial(stage, job), dict(os.environ))) for job in range(4)]
        for job in jobs:
            done = job.done()
            assert done.returncode == 0, done.stderr
    shards = list_pending(tmp_path)
    assert len(shards) == 100
    for shard in shards:
        sidecar = json.loads(Path(shard.sidecar_path).read_text())
        assert sidecar["sha256"] == sha256(Path(shard.parquet_path).read_bytes()).hexdigest()
    assert len(files(tmp_path)["pending"]) == 200


def test_a_mount_that_asks_again_after_a_lost_answer(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    link = os.link

    def twice(source: Any, place: Any) -> None:
        link(source, place)
        link(source, place)

    monkeypatch.setattr(os, "link", twice)
    shard = stage(tmp_path)
    assert list_pending(tmp_path) == [shard]


def test_a_mount_without_hard_links(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refused(source: Any, place: Any) -> None:
        raise PermissionError(1, "Operation not permitted")

    monkeypatch.setattr(os, "link", refused)
    shard = stage(tmp_path)
    assert list_pending(tmp_path) == [shard]
    assert stage(tmp_path) == shard
    with pytest.raises(InvalidShardError, match="has other rows"):
        stage(tmp_path, table(1))


def test_a_mount_whose_handles_get_stale(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    shard = stage(tmp_path)
    staging = open_staging(tmp_path)
    opened = Path.open
    stale = iter([True, True])

    def sometimes(self: Path, *arguments: Any, **options: Any) -> Any:
        if self.name.endswith(".meta.json") and next(stale, False):
            raise OSError(116, "Stale file handle")
        return opened(self, *arguments, **options)

    monkeypatch.setattr(Path, "open", sometimes)
    assert staging.read(f"pending/{shard.name}.meta.json") is not None
    assert list_pending(tmp_path) == [shard]


def test_a_listing_that_still_shows_what_was_moved_away(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    kept, gone = stage(tmp_path, run_id="a"), stage(tmp_path, run_id="b")
    names = LocalStaging.names
    before = {folder: names(open_staging(tmp_path), folder) for folder in ("pending", "synced", "failed")}  # type: ignore[arg-type]
    move_to(gone, tmp_path, SYNCED_DIRNAME)
    monkeypatch.setattr(LocalStaging, "names", lambda self, folder: before[folder])
    assert list_pending(tmp_path) == [kept]


def test_a_full_disk_is_told_and_leaves_no_half_pair(tmp_path: Path) -> None:
    """A limit of a file's size stands for the disk's: the system refuses further bytes just the same."""
    script = """
import resource, signal, sys, os, errno
import numpy as np, pyarrow as pa
from safetensors_spark.publish import ShardSchema, write_shard
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
resource.setrlimit(resource.RLIMIT_FSIZE, (1 << 20, 1 << 20))
rows = pa.table({"x": np.random.default_rng(0).random(1 << 20)})
try:
    write_shard(rows, staging_dir=sys.argv[1], run_id="run", schema=ShardSchema())
except OSError as error:
    print(error)
"""
    said = subprocess.run([sys.executable, "-c", script, str(tmp_path)], capture_output=True, text=True, check=True)
    assert "cannot be written" in said.stdout
    assert files(tmp_path)["pending"] == []


def test_a_disk_that_is_full_when_the_sidecar_is_written_leaves_no_half_pair(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(self: LocalStaging, name: str, content: bytes) -> bool:
        with explained(self.path(name)):
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    with monkeypatch.context() as patched:
        patched.setattr(LocalStaging, "create", full)
        with pytest.raises(OSError, match=r"meta\.json cannot be written: No space left.*Make room"):
            stage(tmp_path)
    assert files(tmp_path)["pending"] == []
    stage(tmp_path)
    assert len(list_pending(tmp_path)) == 1


@pytest.mark.parametrize("kind", [pa.float32(), pa.list_(pa.float32())])
def test_floats_may_be_rounded_and_do_not_become_infinite(tmp_path: Path, kind: pa.DataType) -> None:
    def write(run_id: str, *numbers: float) -> list[Any]:
        rows = pa.table({"x": list(numbers) if kind == pa.float32() else [list(numbers)]})
        shard = write_shard(rows, staging_dir=tmp_path, run_id=run_id, schema=ShardSchema(columns={"x": kind}))
        found: list[Any] = pq.read_table(shard.parquet_path)["x"].to_pylist()
        return found

    inf = float("inf")
    assert write("a", 0.1, inf) in ([np.float32(0.1), inf], [[np.float32(0.1), inf]])
    with pytest.raises(
        InvalidShardError, match=r"column `x` is .*double.*, and has numbers that are infinite as .*float"
    ):
        write("b", inf, 1e300)
