"""The version of a dataset's format, `MAJOR.MINOR`, as `format/dataset.md` defines it."""

from __future__ import annotations

import re

from safetensors_spark._errors import IncompatibleVersionError

MANIFEST_MAJORS = (1, 2)
INDEX_MAJORS = (1,)


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
