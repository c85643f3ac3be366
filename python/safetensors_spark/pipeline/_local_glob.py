"""Globs of this machine, which go into links to folders, as a shell's do."""

from __future__ import annotations

import os
from typing import Any

from fsspec.implementations.local import LocalFileSystem

from safetensors_spark._errors import PipelineError


class LocalGlob(LocalFileSystem):  # type: ignore[misc]
    """fsspec's file system of this machine, whose `glob` leaves out nothing that is behind a link."""

    cachable = False

    def find(self, path: str, maxdepth: int | None = None, **_: Any) -> dict[str, dict[str, Any]]:
        """What is below a folder, with what is known of it. A link to a folder that it is in is not gone into.

        Raises `PipelineError` for a folder that this process may not list.
        """
        found: dict[str, dict[str, Any]] = {}
        self._find(path, maxdepth, frozenset(), found)
        return found

    def _find(self, path: str, depth: int | None, above: frozenset[str], found: dict[str, dict[str, Any]]) -> None:
        place = os.path.realpath(path or ".")
        if place in above or depth == 0:
            return
        try:
            entries = list(os.scandir(path or "."))
        except (FileNotFoundError, NotADirectoryError):
            return
        except PermissionError as error:
            raise PipelineError(
                f"{path} cannot be listed ({error.strerror}), so its files would be left out. Make it readable, or use "
                "a pattern that does not lead into it."
            ) from None
        for entry in entries:
            name = f"{path.rstrip('/')}/{entry.name}" if path else entry.name
            if entry.is_dir():
                self._find(name, None if depth is None else depth - 1, above | {place}, found)
            elif entry.is_file():
                found[name] = self.info(entry)
