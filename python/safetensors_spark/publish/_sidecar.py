"""`{body}.meta.json`: what a staged file is. Its schema is format/sidecar.schema.json."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timezone
from typing import Any

from safetensors_spark._errors import IncompatibleVersionError, InvalidSidecarError
from safetensors_spark._files.json_text import parse_json

SUFFIX = ".meta.json"
VERSION = 1

# The fields that every sidecar has, and what they must be.
_FIELDS: Mapping[str, type] = {
    "run_id": str,
    "path_in_repo": str,
    "n_rows": int,
    "bytes": int,
    "sha256": str,
    "created_at": str,
    "provenance": dict,
}


def sidecar_of(body: str) -> str:
    """The name of a body's sidecar."""
    return f"{body}{SUFFIX}"


def now() -> str:
    """The time, as sidecars tell it."""
    return datetime.now(timezone.utc).isoformat(timespec="microseconds")


@dataclass(frozen=True)
class Sidecar:
    """A JSON object. What of it is not known here is kept."""

    fields: Mapping[str, Any]

    @property
    def run_id(self) -> str:
        return str(self.fields["run_id"])

    @property
    def path_in_repo(self) -> str:
        return str(self.fields["path_in_repo"])

    @property
    def n_rows(self) -> int:
        return int(self.fields["n_rows"])

    @property
    def size(self) -> int:
        """The length of the body."""
        return int(self.fields["bytes"])

    @property
    def sha256(self) -> str:
        return str(self.fields["sha256"])

    @property
    def created_at(self) -> str:
        return str(self.fields["created_at"])

    @property
    def moves(self) -> int:
        """How often the pair was moved. Of two sidecars of one body, the one with more moves says where it belongs."""
        return int(self.fields.get("moves", 0))

    @property
    def dataset(self) -> Mapping[str, Any] | None:
        """Of a file of a dataset: its staging and its role there."""
        found: Mapping[str, Any] | None = self.fields.get("dataset")
        return found

    def changed(self, **fields: Any) -> Sidecar:
        """The same with other fields; those that are None are left out."""
        both = {**self.fields, **fields}
        return Sidecar({name: value for name, value in both.items() if value is not None})

    def text(self) -> bytes:
        """The JSON. Raises TypeError or ValueError for values that JSON does not have."""
        return json.dumps(self.fields, indent=1, allow_nan=False).encode()


def new_sidecar(
    *,
    run_id: str,
    path_in_repo: str,
    n_rows: int,
    size: int,
    sha256: str,
    provenance: Mapping[str, Any],
    **fields: Any,
) -> Sidecar:
    """The sidecar of a body that is staged now."""
    first = {"version": VERSION, "run_id": run_id, "path_in_repo": path_in_repo, "n_rows": n_rows, "bytes": size}
    return Sidecar({**first, "sha256": sha256, "created_at": now(), "provenance": dict(provenance), **fields})


def parse_sidecar(content: bytes, name: str) -> Sidecar:
    """What the JSON says; errors call it `name`.

    Raises:
        InvalidSidecarError: it cannot be relied on.
        IncompatibleVersionError: a newer version of this package wrote it.
    """
    try:
        fields = parse_json(content)
    except ValueError as error:
        raise _refusal(name, f"it is not JSON ({error})") from None
    if not isinstance(fields, dict):
        raise _refusal(name, "it is not an object")
    version = fields.get("version")
    if type(version) is not int or version < 1:
        raise _refusal(name, f"`version` is {json.dumps(version)[:100]}, expected {VERSION}")
    if version > VERSION:
        raise IncompatibleVersionError(
            f"{name} has version {version}, but this version of safetensors-spark reads {VERSION}. Upgrade "
            "safetensors-spark where the staging directory is synced."
        )
    for field, kind in _FIELDS.items():
        value = fields.get(field)
        if type(value) is not kind or (type(value) is int and value < 0):
            raise _refusal(name, f"`{field}` is {json.dumps(value)[:100]}, expected {_KINDS[kind]}")
    if not re.fullmatch(r"[0-9a-f]{64}", fields["sha256"]):
        raise _refusal(name, f"`sha256` is `{fields['sha256'][:100]}`, expected 64 hexadecimal digits")
    for field, wanted in (("moves", int), ("dataset", dict), ("synced", dict), ("failed", dict)):
        if field in fields and type(fields[field]) is not wanted:
            raise _refusal(name, f"`{field}` is {json.dumps(fields[field])[:100]}, expected {_KINDS[wanted]}")
    for field in ("id", "prefix", "role") if "dataset" in fields else ():
        value = fields["dataset"].get(field)
        if type(value) is not str:
            raise _refusal(name, f"`dataset.{field}` is {json.dumps(value)[:100]}, expected {_KINDS[str]}")
    return Sidecar(fields)


_KINDS = {str: "a text", int: "a number from 0 on", dict: "an object"}


def _refusal(name: str, what: str) -> InvalidSidecarError:
    return InvalidSidecarError(
        f"{name} is not a valid sidecar: {what}. Move it and its body out of the staging directory, and stage the rows "
        "again."
    )
