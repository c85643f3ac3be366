"""Files that appear when they are whole."""

from __future__ import annotations

import fcntl
import io
import os
import uuid
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, BinaryIO

from safetensors_spark._files.commit.local_target import LocalTarget, sync_folder
from safetensors_spark._files.commit.target import Target, open_target
from safetensors_spark.pipeline._scratch import scratch

DRAFT_SUFFIX = ".draft"


def split(path: str) -> tuple[Target, str]:
    """The folder of a file, and its name in it."""
    folder, _, name = path.rpartition("/")
    return open_target(folder or ("/" if path.startswith("/") else ".")), name


@contextmanager
def whole_file(target: Target, name: str, *, durable: bool) -> Iterator[BinaryIO]:
    """A new file in a folder. It replaces what has its name when the block has ended without an error.

    Args:
        durable: survives a machine that stops. Else a reader must find out for itself that the file is whole.
    """
    if isinstance(target, LocalTarget):
        place = target.folder.path / name
        place.parent.mkdir(parents=True, exist_ok=True)
        draft = place.with_name(f".{place.name}.{uuid.uuid4().hex[:12]}{DRAFT_SUFFIX}")
        try:
            with io.BufferedWriter(_Draft(draft, place)) as file:
                _hold(file)
                yield file
                file.flush()
                if durable:
                    os.fsync(file.fileno())
            draft.replace(place)
            if durable:
                sync_folder(place.parent)
        finally:
            draft.unlink(missing_ok=True)
        return
    # A store shows a file when it is closed, also after an error: so it gets a whole one.
    with scratch() as folder:
        local = Path(folder) / "whole"
        with local.open("xb") as file:
            yield file
        target.make(name.rpartition("/")[0])
        target.put(local, name)


def _hold(file: BinaryIO) -> None:
    """Show that the draft has a writer that lives: the lock ends with the process."""
    # Some file systems have no locks, and then nobody but a run that writes the same file deletes it.
    with suppress(OSError):
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)


def _is_held(draft: Path) -> bool:
    try:
        with draft.open("r+b") as file:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    except OSError:
        return False
    return False


class _Draft(io.FileIO):
    """A file that says of a full disk what could not be written. What computes the rows may meet one of its own."""

    def __init__(self, draft: Path, place: Path) -> None:
        super().__init__(draft, "x")
        self._place = place

    def write(self, content: Any) -> int:
        try:
            return super().write(content)
        except OSError as error:
            why = error.strerror or error
            raise OSError(
                error.errno,
                f"{self._place} cannot be written: {why}. The partial file is removed. Make room, and run the pipeline "
                "again: it continues.",
            ) from error


def delete_all_drafts(paths: Iterable[str]) -> bool:
    """Delete what dead processes have left of these files. Returns false if some are being written. Stores have no
    drafts.
    """
    is_all = True
    names: dict[Path, set[str]] = {}
    for path in paths:
        target, name = split(path)
        if isinstance(target, LocalTarget):
            place = target.folder.path / name
            names.setdefault(place.parent, set()).add(place.name)
    for folder, of_folder in names.items():
        for draft in folder.glob(f".*{DRAFT_SUFFIX}"):
            if draft.name[1 : -len(DRAFT_SUFFIX)].rpartition(".")[0] in of_folder:
                if _is_held(draft):
                    is_all = False
                else:
                    draft.unlink(missing_ok=True)
    return is_all
