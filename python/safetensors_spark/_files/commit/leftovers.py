"""What writers that died before their commit have left in a dataset's directory."""

from __future__ import annotations

import re

from safetensors_spark._files.commit.pending import recover
from safetensors_spark._files.commit.target import Target
from safetensors_spark._files.commit.written import STAGING
from safetensors_spark._files.manifest import MANIFEST, Manifest

# A writer that lives has such files too: in a week it writes something.
_AGE = 7 * 24 * 3600

_ID = r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}"
_TEMPORARY = re.compile(rf"_index-{_ID}|_commit-{_ID}\.(alive|takeover)|\..*\.{_ID}(\.tmp)?")


def delete_leftovers(target: Target, manifest: Manifest) -> None:
    """Delete them, if nothing in them is younger than a week, and what older versions' records name. Hold the lock."""
    # By the file system's clock, which tells the times of all files: this commit has just written the manifest.
    oldest = target.newest(MANIFEST) - _AGE
    names = target.names()
    recover(target, [name for name in names if name.endswith(".pending")], manifest)
    candidates = [name for name in names if _TEMPORARY.fullmatch(name)]
    candidates += [f"{STAGING}/{name}" for name in target.names(STAGING)] if STAGING in names else []
    for name in candidates:
        if target.newest(name) < oldest:
            target.delete_folder(name)
            target.delete(name)
    target.delete_empty(STAGING)
