"""What a repository has of a dataset, beside the manifest that is to be committed."""

from __future__ import annotations

import logging

from safetensors_spark._errors import InvalidManifestError
from safetensors_spark._files.manifest import MANIFEST, Manifest, parse_manifest
from safetensors_spark.publish._card import CARD, with_card
from safetensors_spark.publish._hub import HubRepo

_LOGGER = logging.getLogger("safetensors_spark")


def place(prefix: str, file: str) -> str:
    """Where a file of a dataset is in the repository."""
    return f"{prefix}/{file}".lstrip("/")


def missing_shards(hub: HubRepo, prefix: str, manifest: Manifest, commit: str) -> list[str]:
    """The shards of the manifest that the commit has not."""
    sizes = {place(prefix, shard.file): shard.bytes for shard in manifest.shards}
    files = hub.files(sizes, commit)
    return [path for path, size in sizes.items() if path not in files or files[path].size != size]


def replaced_files(hub: HubRepo, prefix: str, manifest: Manifest, commit: str) -> list[str]:
    """The files of the commit's manifest that this one has not."""
    content = hub.read(place(prefix, MANIFEST), commit)
    if content is None:
        return []
    try:
        before = parse_manifest(content, place(prefix, MANIFEST))
    except InvalidManifestError as error:
        _LOGGER.warning("%s: its shards are not deleted.", error)
        return []
    gone = set(before.files) - set(manifest.files)
    return sorted(hub.files((place(prefix, name) for name in gone), commit))


def changed_card(hub: HubRepo, prefix: str, manifest: Manifest, commit: str) -> bytes | None:
    """The card of the repository with the manifest's part; None if the commit has it so."""
    before = hub.read(CARD, commit)
    card = with_card(before, manifest, hub.repo_id, prefix)
    return None if card == before else card
