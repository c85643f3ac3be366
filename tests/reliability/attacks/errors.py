"""What a clear error is."""

from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

# Names and numbers of files may have megabytes.
LONGEST = 4000


def check_clear(error: BaseException, path: Path | None = None) -> str:
    """The name of its class. Raises AssertionError for an error that is none of ours, is too long, or names no path."""
    from safetensors_spark import SafetensorsSparkError

    said = str(error)
    # What is not there, or may not be read, is an error of the operating system, whose text names the file.
    is_named = isinstance(error, FileNotFoundError) or (isinstance(error, OSError) and error.filename is not None)
    assert isinstance(error, SafetensorsSparkError) or is_named, (
        f"{type(error).__name__} is no error of ours: {said[:2000]}"
    )
    assert 0 < len(said) <= LONGEST, f"a text of {len(said)} characters: {said[:2000]}"
    assert said.replace("\n", "").isprintable(), f"characters that terminals obey: {said!r}"
    assert path is None or path.name in said, f"it does not name {path}: {said}"
    return type(error).__name__


def outcome(action: Callable[[], Any], path: Path | None = None) -> str:
    """`done`, or the class of a clear error."""
    try:
        action()
    except AssertionError:
        raise
    except Exception as error:
        try:
            return check_clear(error, path)
        except AssertionError as unclear:
            raise unclear from error
    return "done"


def told(seen: Counter[str]) -> str:
    """For the page: how often what came of it."""
    return ", ".join(f"{number:,} {name}" for name, number in sorted(seen.items(), key=lambda one: (-one[1], one[0])))
