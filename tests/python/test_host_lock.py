"""A lock among the processes of one host: one holder at a time, of whom the others are told."""

import os
import socket
from pathlib import Path

import pytest

from safetensors_spark._files.commit.host_lock import host_lock
from safetensors_spark._files.commit.local_target import LocalTarget
from safetensors_spark._files.storage import LocalFolder


def test_one_holds_it_and_the_others_are_told_who(tmp_path: Path) -> None:
    target = LocalTarget(LocalFolder(tmp_path / "new"))
    for _ in range(2):
        with host_lock(target, "work", RuntimeError):
            with (
                pytest.raises(RuntimeError, match=f"^process {os.getpid()} on {socket.gethostname()}, since 20"),
                host_lock(target, "work", RuntimeError),
            ):
                pass
            # Who was refused has not touched what the holder wrote.
            assert (tmp_path / "new" / "work.owner").exists()
        assert not (tmp_path / "new" / "work.owner").exists()


@pytest.mark.parametrize("owner", [None, b"", b'{"id":"half'])
def test_a_holder_that_did_not_say_who_it_is(tmp_path: Path, owner: bytes | None) -> None:
    target = LocalTarget(LocalFolder(tmp_path))
    with host_lock(target, "work", RuntimeError):
        (tmp_path / "work.owner").unlink()
        if owner is not None:
            (tmp_path / "work.owner").write_bytes(owner)
        with pytest.raises(RuntimeError, match=r"^another process$"), host_lock(target, "work", RuntimeError):
            pass


def test_an_error_gives_it_back(tmp_path: Path) -> None:
    target = LocalTarget(LocalFolder(tmp_path))
    with pytest.raises(KeyError), host_lock(target, "work", RuntimeError):
        raise KeyError
    with host_lock(target, "work", RuntimeError):
        pass
