"""The version of a dataset's format, `MAJOR.MINOR`, as `format/dataset.md` defines it."""

from __future__ import annotations

import re

from safetensors_spark._errors import IncompatibleVersionError

MANIFEST_MAJORS = (1, 2)
INDEX_MAJORS = (1,)

# What this package writes: a manifest whose columns are all fixed, one with other kinds of columns, and an index.
MANIFEST_OF_FIXED = "1.3"
MANIFEST_OF_KINDS = "2.0"
INDEX_VERSION = "1.1"

_NEWEST_MINOR = {1: 3, 2: 0}


def check_readable(version: str, path: str, majors: tuple[int, ...]) -> None:
    """Check that this package reads files of this version. Minor versions only add what a reader may ignore.

    Args:
        majors: the major versions of such files that this package reads.

    Raises:
        ValueError: it is no version.
        IncompatibleVersionError: it has another major version.
    """
    found = re.fullmatch(r"([0-9]{1,9})\.[0-9]{1,9}", version, re.ASCII)
    if found is None:
        raise ValueError(f"its format version is `{version}`, expected MAJOR.MINOR")
    if int(found[1]) not in majors:
        known = " and ".join(f"{major}.x" for major in majors)
        raise IncompatibleVersionError(
            f"{path} has format version {version}, but this version of safetensors-spark reads {known}. "
            "Upgrade safetensors-spark to read it."
        )


def check_writable(version: str, path: str) -> None:
    """Check that this package can replace a manifest of this version, whose fields it must know all.

    Raises:
        IncompatibleVersionError: its minor version is newer.
    """
    major, minor = map(int, version.split("."))
    if minor > _NEWEST_MINOR[major]:
        raise IncompatibleVersionError(
            f"{path} has format version {version}, but this version of safetensors-spark writes {MANIFEST_OF_FIXED} "
            f"and {MANIFEST_OF_KINDS} and would lose what it does not know. Upgrade safetensors-spark to write to it, "
            "or write to another directory."
        )
