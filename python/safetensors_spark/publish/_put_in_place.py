"""How a body and its sidecar come to be in `pending/`, whoever else stages the same meanwhile, or died doing so."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import BinaryIO

from safetensors_spark._errors import InvalidShardError
from safetensors_spark.publish._sidecar import Sidecar, sidecar_of
from safetensors_spark.publish._staged import ORPHAN_S, StagedShard, read_sidecar, remove_body, staged
from safetensors_spark.publish._staging import (
    FAILED_DIRNAME,
    FOLDERS,
    PENDING_DIRNAME,
    SYNCED_DIRNAME,
    Digest,
    Staging,
    digest,
)

_ATTEMPTS = 10


def put_in_place(
    staging: Staging,
    draft: Path,
    name: str,
    written: Digest,
    sidecar: Callable[[Digest], Sidecar],
    same: Callable[[BinaryIO], bool],
) -> StagedShard:
    """Make the draft the body `name`, and write its sidecar. What is there already and has the same content is kept.

    Args:
        draft: the whole body.
        written: its digest.
        sidecar: the sidecar of a body with a digest.
        same: whether a body has the draft's content.
    """
    place = f"{PENDING_DIRNAME}/{name}"
    for _ in range(_ATTEMPTS):
        try:
            if there := _already(staging, name, same):
                return there
            mine = written if staging.publish(draft, place) else _orphan(staging, place, same)
        except FileNotFoundError:
            # It was moved in this moment.
            continue
        if mine is None or staging.exists(sidecar_of(place)):
            continue
        if any(staging.exists(f"{folder}/{sidecar_of(name)}") for folder in (SYNCED_DIRNAME, FAILED_DIRNAME)):
            # Its place was free since the syncer had just moved the other one away.
            remove_body(staging, place)
            continue
        found = sidecar(mine)
        try:
            is_mine = staging.create(sidecar_of(place), found.text())
        except OSError:
            remove_body(staging, place)
            raise
        if is_mine:
            if _place_of(staging, name) is None:
                # It was taken for what a dead worker had left.
                staging.delete(sidecar_of(place))
                continue
            return staged(staging, PENDING_DIRNAME, name, found)
    raise InvalidShardError(f"{staging.path(place)} is written by others again and again. Stage it again later.")


def _already(staging: Staging, name: str, same: Callable[[BinaryIO], bool]) -> StagedShard | None:
    """The shard that has been staged before. Raises `InvalidShardError` if it has another content."""
    found = [(folder, sidecar) for folder in FOLDERS if (sidecar := read_sidecar(staging, folder, name))]
    if not found:
        return None
    folder, sidecar = max(found, key=lambda pair: pair[1].moves)
    where = _place_of(staging, name)
    if where is None:
        raise InvalidShardError(
            f"{staging.path(f'{folder}/{sidecar_of(name)}')} has no body. If nobody moves it now, `prune_orphans` with "
            "`older_than_s=0` removes it. Then stage the rows again."
        )
    path = staging.path(f"{folder}/{name}")
    with staging.open(f"{where}/{name}") as body:
        if not same(body):
            raise InvalidShardError(
                f"{path} has other rows, of {sidecar.created_at}, under the same run_id {sidecar.run_id}. Stage these "
                "rows with another run_id."
            )
    if folder == FAILED_DIRNAME:
        raise InvalidShardError(
            f"{path} has the same rows, and was refused when it was synced: its sidecar says why. `retry_failed` gives "
            "it to the syncer again."
        )
    return staged(staging, folder, name, sidecar)


def _place_of(staging: Staging, name: str) -> str | None:
    """The folder of a body, which may be moved in this moment from any to any."""
    for _ in range(2):
        for folder in (PENDING_DIRNAME, SYNCED_DIRNAME, FAILED_DIRNAME):
            if staging.exists(f"{folder}/{name}"):
                return folder
    return None


def _orphan(staging: Staging, place: str, same: Callable[[BinaryIO], bool]) -> Digest | None:
    """The digest of a body without a sidecar, which another worker writes in this moment, or died before; None if the
    body no longer exists, or has one.
    """
    with staging.open(place) as body:
        is_same = same(body)
    if is_same:
        with staging.open(place) as body:
            return digest(body)
    if not staging.exists(sidecar_of(place)):
        if staging.age(place) < ORPHAN_S:
            raise InvalidShardError(
                f"{staging.path(place)} has other rows and no sidecar: another worker writes it now, or died doing so. "
                "Stage these rows with another run_id. Or, if no worker runs, call `prune_orphans` with "
                "`older_than_s=0` first."
            )
        remove_body(staging, place)
    return None
