"""The version of a dataset's format, `MAJOR.MINOR`, as `format/dataset.md` defines it."""

from __future__ import annotations

import re

from safetensors_spark._errors import IncompatibleVersionError

MAJOR = 1


def check_readable(version: str, path: str) -> None:
    """Check that this package reads files of this version. Minor versions only add what a reader may ignore.

    Raises:
        ValueError: it is no version.
        IncompatibleVersionError: it has another major version.
    """
    found = re.fullmatch(r"([0-9]{1,9})\.[0-9]{1,9}", version, re.ASCII)
    if found is None:
        raise ValueError(f"its format version is `{version}`, expected MAJOR.MINOR")
    if int(found[1]) != MAJOR:
        raise IncompatibleVersionError(
            f"{path} has format version {version}, but this version of safetensors-spark reads {MAJOR}.x. "
            "Upgrade safetensors-spark to read it."
        )
