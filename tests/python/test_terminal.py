"""Names of tensors and files that try to write to the terminal: what is printed, logged or raised has no escapes."""

import sys
from pathlib import Path

import numpy as np
import pytest
from safetensors.numpy import save_file

import safetensors_spark as sts
from safetensors_spark._commands.cli import main
from safetensors_spark.dataset import open_dataset, open_store

# It clears the screen and sets the title; another one writes from right to left.
EVIL = "\x1b[2J\x1b]0;owned\x07\x9b31m\u202e"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "evil").mkdir()
    save_file({EVIL: np.zeros((2, 3), np.float32)}, tmp_path / "evil" / f"{EVIL[:4]}.safetensors")
    return tmp_path / "evil"


def is_harmless(text: str) -> bool:
    return not any(one in text for one in ("\x1b[2J", "\x1b]0", "\x07", "\x9b", "\u202e")) and "x1b" in text


@pytest.mark.parametrize("terminal", [False, True])
def test_commands(
    folder: Path, terminal: bool, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys.stdout, "isatty", lambda: terminal)
    assert main(["inspect", str(folder)]) == 0
    assert is_harmless(capsys.readouterr().out)
    assert main(["inspect", str(folder), "--json"]) == 0
    assert "\x1b" not in capsys.readouterr().out
    (file,) = folder.iterdir()
    file.write_bytes(file.read_bytes() + b"more")
    assert main(["verify", str(folder)]) == 1
    assert is_harmless(capsys.readouterr().out)
    file.write_bytes(file.read_bytes().replace(b"F32", b"F99"))
    assert main(["inspect", str(folder)]) == 2
    assert is_harmless(capsys.readouterr().err)


def test_errors_and_reprs(folder: Path) -> None:
    ds, store = open_dataset(folder), open_store(folder)
    assert is_harmless(f"{ds!r} {ds.columns} {ds.shards}")
    with pytest.raises(sts.SafetensorsSparkError) as raised:
        open_dataset(folder, columns=["other"])
    assert is_harmless(str(raised.value))
    with pytest.raises(KeyError) as no_key:
        store[f"{EVIL} "]
    assert is_harmless(str(no_key.value))
    (file,) = folder.iterdir()
    file.unlink()
    with pytest.raises(FileNotFoundError) as gone:
        ds[0]
    assert is_harmless(str(gone.value))
