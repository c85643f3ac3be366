"""Staged files without rows, for tests of what happens to them."""

from hashlib import sha256
from pathlib import Path

from safetensors_spark.publish import StagedShard
from safetensors_spark.publish._sidecar import new_sidecar, sidecar_of
from safetensors_spark.publish._staged import staged
from safetensors_spark.publish._staging import PENDING_DIRNAME, drafted, open_staging


def stage_bytes(staging_dir: Path | str, name: str, body: bytes = b"body", **fields: object) -> StagedShard:
    """Stage a pair as writers do: the body, then the sidecar."""
    staging = open_staging(staging_dir)
    staging.make(PENDING_DIRNAME)
    place = f"{PENDING_DIRNAME}/{name}"
    sidecar = new_sidecar(
        run_id="r", path_in_repo=f"data/{name}", n_rows=3, size=len(body), sha256=sha256(body).hexdigest(),
        provenance={"seed": 1}, **fields,
    )  # fmt: skip
    with drafted(staging, place) as draft:
        draft.write_bytes(body)
        assert staging.publish(draft, place)
    assert staging.create(sidecar_of(place), sidecar.text())
    return staged(staging, PENDING_DIRNAME, name, sidecar)


def files(staging_dir: Path) -> dict[str, list[str]]:
    """The files of each folder."""
    folders = (one for one in sorted(staging_dir.iterdir()) if one.is_dir())
    return {one.name: sorted(file.name for file in one.iterdir()) for one in folders}
