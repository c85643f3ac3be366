"""Vulcan's writer: each sentence of its specification is a test, named after it."""

import inspect
import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd  # type: ignore[import-untyped]
import pyarrow.parquet as pq  # type: ignore[import-untyped]
import pytest

from killing import killed_at_each_step
from safetensors_spark.publish import FAILED_DIRNAME, SYNCED_DIRNAME, vulcan
from safetensors_spark.publish.vulcan import GEOMETRY_KEY_SENTINEL, StagedShard, list_pending, move_to
from staging_samples import files


def vacua(rows: int = 3, **columns: Any) -> pd.DataFrame:
    return pd.DataFrame(
        {
            "fluxes": [[1, 2, number] for number in range(rows)],
            "moduli_re": [[0.5]] * rows,
            "moduli_im": [[2.5]] * rows,
            "tau_re": np.zeros(rows),
            "tau_im": np.arange(rows) + 1.0,
        }
        | columns
    )


def write(folder: Path, df: Any = None, **options: Any) -> StagedShard:
    given: dict[str, Any] = {"run_id": "run-1", "geometry": {"h11": 2, "ks_id": 15}, "tadpole_charge": 24} | options
    return vulcan.write_shard(vacua() if df is None else df, staging_dir=folder, **given)


def read(shard: StagedShard) -> dict[str, list[Any]]:
    found: dict[str, list[Any]] = pq.read_table(shard.parquet_path).to_pydict()
    return found


def test_the_signature_is_the_specifications() -> None:
    assert (vulcan.PENDING_DIRNAME, vulcan.SYNCED_DIRNAME, vulcan.FAILED_DIRNAME) == ("pending", "synced", "failed")
    signature = inspect.signature(vulcan.write_shard)
    assert [(one.name, one.kind.name, one.default) for one in signature.parameters.values()] == [
        ("df", "POSITIONAL_OR_KEYWORD", inspect.Parameter.empty),
        ("staging_dir", "KEYWORD_ONLY", inspect.Parameter.empty),
        ("run_id", "KEYWORD_ONLY", inspect.Parameter.empty),
        ("geometry", "KEYWORD_ONLY", inspect.Parameter.empty),
        ("tadpole_charge", "KEYWORD_ONLY", None),
        ("solver", "KEYWORD_ONLY", None),
        ("provenance", "KEYWORD_ONLY", None),
        ("bucket_bits", "KEYWORD_ONLY", 4),
    ]
    fields = list(inspect.signature(vulcan.StagedShard).parameters)
    assert fields == ["run_id", "parquet_path", "sidecar_path", "path_in_repo", "n_rows"]
    assert list(inspect.signature(vulcan.move_to).parameters) == ["shard", "staging_dir", "target"]


def test_write_shard_lands_a_parquet_file_in_pending_with_a_sidecar_of_geometry_solver_and_provenance(
    tmp_path: Path,
) -> None:
    shard = write(tmp_path, solver={"name": "newton"}, provenance={"seed": np.int64(3)})
    assert Path(shard.parquet_path).parent == tmp_path / "pending"
    assert shard.sidecar_path == Path(f"{shard.parquet_path}.meta.json")
    sidecar = json.loads(Path(shard.sidecar_path).read_text())
    keys = {"h11": 2, "h12": -1, "ks_id": 15, "triang_id": -1, "conifold_id": -1, "cicy_id": -1}
    assert [sidecar[name] for name in ("geometry", "solver", "provenance")] == [keys, {"name": "newton"}, {"seed": 3}]


def test_neither_file_is_ever_observed_half_written(tmp_path: Path) -> None:
    for folder in killed_at_each_step(write, lambda step: tmp_path / str(step)):
        for path in (folder / "pending").glob("*.parquet"):
            assert pq.read_metadata(path).num_rows == 3
        for path in (folder / "pending").glob("*.meta.json"):
            assert json.loads(path.read_text())["n_rows"] == 3


def test_a_crash_between_the_two_leaves_a_parquet_that_list_pending_skips_and_a_rerun_completes(tmp_path: Path) -> None:
    shard = write(tmp_path)
    Path(shard.sidecar_path).unlink()
    body = Path(shard.parquet_path).read_bytes()
    assert list_pending(tmp_path) == []
    assert write(tmp_path) == shard
    assert list_pending(tmp_path) == [shard]
    assert Path(shard.parquet_path).read_bytes() == body


def test_provenance_metadata_key_holds_the_full_blob(tmp_path: Path) -> None:
    assert vulcan.PROVENANCE_METADATA_KEY == b"stringforge.vulcan.provenance"
    shard = write(tmp_path, solver={"name": "newton", "config_hash": "ab"}, provenance={"git_sha": "c0", "seed": 1})
    blob = json.loads(pq.read_metadata(shard.parquet_path).metadata[vulcan.PROVENANCE_METADATA_KEY])
    assert blob["solver"] == {"name": "newton", "config_hash": "ab"}
    assert blob["provenance"] == {"git_sha": "c0", "seed": 1}
    assert blob["geometry"]["ks_id"] == 15


def test_schema_version_metadata_key_holds_the_version(tmp_path: Path) -> None:
    assert vulcan.SCHEMA_VERSION_METADATA_KEY == b"schema_version"
    assert pq.read_metadata(write(tmp_path).parquet_path).metadata[b"schema_version"] == b"1"


def test_staged_shard_is_a_reference_to_what_is_on_disk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    shard = write(Path("here"))
    assert Path(shard.parquet_path).is_absolute()
    assert Path(shard.sidecar_path).is_absolute()
    assert Path(shard.parquet_path).is_file()
    assert Path(shard.sidecar_path).is_file()
    assert set(read(shard)["run_id"]) == {shard.run_id} == {"run-1"}
    assert shard.n_rows == len(read(shard)["run_id"]) == 3
    assert not shard.path_in_repo.startswith("/")
    assert shard.path_in_repo.endswith("/run-1.parquet")


def test_ensure_staging_layout_is_idempotent_and_write_shard_makes_it_on_demand(tmp_path: Path) -> None:
    write(tmp_path / "staging")
    vulcan.ensure_staging_layout(tmp_path / "staging")
    vulcan.ensure_staging_layout(tmp_path / "staging")
    assert {one.name for one in (tmp_path / "staging").iterdir()} == {"pending", "synced", "failed"}
    assert len(list_pending(tmp_path / "staging")) == 1


def test_list_pending_finds_all_complete_shards_sorted_by_filename(tmp_path: Path) -> None:
    for run_id in ("b", "a", "c"):
        write(tmp_path, run_id=run_id)
    found = list_pending(tmp_path)
    assert [shard.run_id for shard in found] == ["a", "b", "c"]
    assert [Path(shard.parquet_path).name for shard in found] == sorted(Path(one.parquet_path).name for one in found)


@pytest.mark.parametrize("target", [SYNCED_DIRNAME, FAILED_DIRNAME])
def test_move_to_moves_the_pair_and_returns_a_new_record_of_it(tmp_path: Path, target: str) -> None:
    shard = write(tmp_path)
    moved = move_to(shard, tmp_path, target)
    assert Path(moved.parquet_path) == tmp_path / target / Path(shard.parquet_path).name
    assert Path(moved.sidecar_path) == tmp_path / target / Path(shard.sidecar_path).name
    assert Path(moved.parquet_path).is_file()
    assert Path(moved.sidecar_path).is_file()
    assert files(tmp_path)["pending"] == []
    assert (moved.run_id, moved.path_in_repo, moved.n_rows) == (shard.run_id, shard.path_in_repo, shard.n_rows)


def test_run_id_geometry_id_and_geometry_keys_are_overwritten_whatever_the_rows_have(tmp_path: Path) -> None:
    df = vacua(run_id="mine", geometry_id="mine", h11=[7, 8, 9], cicy_id="x")
    rows = read(write(tmp_path, df))
    assert set(rows["run_id"]) == {"run-1"}
    assert len(set(rows["geometry_id"])) == 1
    assert set(rows["geometry_id"]) != {"mine"}
    assert set(rows["h11"]) == {2}
    assert set(rows["ks_id"]) == {15}
    for name in ("h12", "triang_id", "conifold_id", "cicy_id"):
        assert set(rows[name]) == {GEOMETRY_KEY_SENTINEL}


def test_geometry_id_is_one_for_each_geometry(tmp_path: Path) -> None:
    def identity(run_id: str, geometry: dict[str, Any]) -> str:
        return str(read(write(tmp_path, run_id=run_id, geometry=geometry))["geometry_id"][0])

    assert identity("a", {"h11": 2, "ks_id": 15}) == identity("b", {"ks_id": np.int32(15), "h11": 2, "h12": None})
    assert identity("c", {"h11": 2, "ks_id": 16}) != identity("d", {"h11": 2, "triang_id": 16})


def test_tadpole_charge_and_created_at_are_filled_in_only_when_absent(tmp_path: Path) -> None:
    filled = read(write(tmp_path, run_id="a"))
    assert filled["tadpole_charge"] == [24, 24, 24]
    assert len(set(filled["created_at"])) == 1
    time = pd.Timestamp("2024-01-02T03:04:05Z")
    own = read(write(tmp_path, vacua(tadpole_charge=[1, 2, 3], created_at=time), run_id="b"))
    assert own["tadpole_charge"] == [1, 2, 3]
    assert {pd.Timestamp(one) for one in own["created_at"]} == {time}


def test_tadpole_charge_is_required_unless_it_is_a_column(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="column `tadpole_charge` is missing"):
        write(tmp_path / "no", tadpole_charge=None)
    assert not (tmp_path / "no").exists()
    assert read(write(tmp_path, vacua(tadpole_charge=5), tadpole_charge=None))["tadpole_charge"] == [5, 5, 5]


def test_validation_runs_after_the_coercion_and_before_any_io(tmp_path: Path) -> None:
    shard = write(tmp_path / "yes", vacua(h11="text", run_id=None))
    vulcan.validate_schema(pq.read_table(shard.parquet_path))
    with pytest.raises(ValueError, match="column `fluxes` is missing"):
        write(tmp_path / "no", vacua().drop(columns="fluxes"))
    assert not (tmp_path / "no").exists()


def test_the_tmp_suffix_has_a_nonce_for_each_process_and_call(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    drafts: list[str] = []
    link: Callable[[Any, Any], None] = os.link

    def noted(source: Any, place: Any) -> None:
        drafts.append(Path(source).name)
        link(source, place)

    monkeypatch.setattr(os, "link", noted)
    for _ in range(2):
        write(tmp_path)
    bodies = [name for name in drafts if ".meta.json" not in name]
    assert len(set(bodies)) == 1, "the second call finds the first's shard"
    write(tmp_path, run_id="run-2")
    assert len({name.partition(".parquet.")[2] for name in drafts}) == len(drafts)
    assert all(name.endswith(".tmp") and f"-{os.getpid()}-" in name for name in drafts)


@pytest.mark.parametrize("name", list(vulcan.REQUIRED_COLUMNS))
def test_the_rows_must_have_the_vault_floor_columns(tmp_path: Path, name: str) -> None:
    with pytest.raises(ValueError, match=f"column `{name}` is missing, expected {vulcan.REQUIRED_COLUMNS[name]}"):
        write(tmp_path, vacua().drop(columns=name))


@pytest.mark.parametrize("run_id", ["", "a b", "a/b", "../x", "é"])
def test_a_run_id_that_is_not_slug_safe_is_a_value_error(tmp_path: Path, run_id: str) -> None:
    assert not vulcan.is_safe_run_id(run_id)
    with pytest.raises(ValueError, match="run_id is "):
        write(tmp_path, run_id=run_id)


def test_an_empty_df_is_a_value_error(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="there are no rows"):
        write(tmp_path, vacua(0))


@pytest.mark.parametrize("geometry", [{}, {"h11": -1}, {"h11": None, "ks_id": -1}])
def test_a_geometry_without_a_key_is_a_value_error(tmp_path: Path, geometry: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match="geometry has no key"):
        write(tmp_path, geometry=geometry)


@pytest.mark.parametrize(
    ("geometry", "what"),
    [
        ({"h11": 2, "ksid": 1}, "geometry has `ksid`, expected keys of h11, h12"),
        ({"h11": "2"}, r"geometry\['h11'\] is '2', expected a whole number"),
        ({"h11": 2.5}, r"geometry\['h11'\] is 2.5, expected a whole number"),
        ({"h11": True}, r"geometry\['h11'\] is True, expected a whole number"),
    ],
)
def test_a_geometry_of_other_keys_or_values_is_a_value_error(
    tmp_path: Path, geometry: dict[str, Any], what: str
) -> None:
    with pytest.raises(ValueError, match=what):
        write(tmp_path, geometry=geometry)


@pytest.mark.parametrize("name", ["geometry", "solver", "provenance"])
def test_geometry_solver_and_provenance_are_mappings(tmp_path: Path, name: str) -> None:
    with pytest.raises(ValueError, match=f"{name} is 'newton', expected a dictionary"):
        write(tmp_path, **{name: "newton"})


def test_validate_schema_refuses_what_a_shard_is_not() -> None:
    with pytest.raises(ValueError, match=r"column `run_id` is missing.*column `tadpole_charge` is missing"):
        vulcan.validate_schema(vacua())


@pytest.mark.parametrize(("bits", "digits"), [(4, 1), (8, 2), (12, 3)])
def test_bucket_bits_is_the_width_of_the_buckets_prefix_in_the_path(tmp_path: Path, bits: int, digits: int) -> None:
    shards = [write(tmp_path, run_id=f"run-{number}", bucket_bits=bits) for number in range(8)]
    buckets = [shard.path_in_repo.split("/")[1] for shard in shards]
    assert {len(bucket) for bucket in buckets} == {digits}
    assert len(set(buckets)) > 1
