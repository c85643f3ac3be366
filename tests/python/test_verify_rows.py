"""What `verify` and `inspect` say of the rows of batches: those that differ between shards, and ragged ones."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from safetensors.numpy import save_file

from handmade import Handmade
from safetensors_spark._commands.cli import main
from safetensors_spark._files import verify_rows
from safetensors_spark.dataset import verify


def test_samples_that_differ_between_shards(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    made = Handmade(tmp_path / "made", "batch")
    for width in (3, 3, 2, 3, 2, 4):
        made.shard(v=np.zeros((5, width), np.float32), n=np.zeros(5))
    made.commit(("v", "n"))
    faults = verify(made.folder).faults
    assert [fault.file for fault in faults] == [made.shards[2]["file"], made.shards[5]["file"]]
    assert faults[0].what.startswith(
        f"column `v` has samples of F32 [2], and of F32 [3] in {made.shards[0]['file']}: they cannot be stacked"
    )
    assert "`ragged`" in faults[0].what
    assert main(["inspect", str(made.folder)]) == 0
    shown = " ".join(capsys.readouterr().out.split())
    assert "problem samples of column `v` differ in dtype or shape: `safetensors-spark verify` says" in shown


def test_samples_of_different_dtypes(tmp_path: Path) -> None:
    made = Handmade(tmp_path / "made", "batch")
    made.shard(v=np.zeros(5, np.float32))
    made.shard(v=np.zeros(5, np.int8))
    made.commit()
    [fault] = verify(made.folder).faults
    assert "samples of I8 [], and of F32 [] in" in fault.what


def text_faults(folder: Path, text: bytes, offsets: list[int]) -> list[str]:
    made = Handmade(folder, "batch")
    arrays = {"t": np.frombuffer(text, np.uint8), "t.offsets": np.array(offsets)}
    made.shard(**arrays)
    made.commit(("t",), {"t": "text"})
    return [fault.what for fault in verify(folder).faults]


def test_sound_text(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    text = "a é 😀".encode()
    for number, chunk in enumerate((1, 2, 3, 1 << 20)):
        monkeypatch.setattr(verify_rows, "_CHUNK", chunk)
        folder = tmp_path / str(number)
        assert text_faults(folder, text, [0, 0, 2, 4, 9, 9]) == []
    assert text_faults(tmp_path / "empty", b"", [0, 0]) == []


@pytest.mark.parametrize(
    ("text", "offsets", "said"),
    [
        (b"abc", [1, 3], "begins with 1, expected 0"),
        (b"abc", [0, 2, 1, 3], "decreases from 2 to 1 in row 1"),
        (b"abc", [0, 2], "ends with 2, expected 3, which is the number of values"),
        (b"abc", [0, 4], "ends with 4, expected 3, which is the number of values"),
        ("aé".encode(), [0, 2, 3], "splits a character at 2"),
        (b"ab\xff", [0, 3], "has text that is not UTF-8, near byte 2 of the values"),
        (b"ab\xc3", [0, 3], "has text that is not UTF-8, near byte 2 of the values"),
    ],
)
def test_damaged_offsets(tmp_path: Path, text: bytes, offsets: list[int], said: str) -> None:
    assert text_faults(tmp_path / "made", text, offsets) == [f"tensor `t.offsets` {said}"]


@pytest.mark.parametrize(
    ("offsets", "said"),
    [
        (None, "it has no tensor `t.offsets`, which says where the rows of the column begin"),
        (np.zeros(4, np.int32), "tensor `t.offsets` is I32 [4], expected I64 [4] for 3 samples"),
        (np.zeros(3, np.int64), "tensor `t.offsets` is I64 [3], expected I64 [4] for 3 samples"),
    ],
)
def test_offsets_that_are_absent_or_not_like_offsets(
    tmp_path: Path, offsets: np.ndarray[Any, Any] | None, said: str
) -> None:
    made = Handmade(tmp_path / "made", "batch")
    arrays: dict[str, np.ndarray[Any, Any]] = {"n": np.zeros(3), "t": np.zeros(3, np.uint8)}
    made.shard(**arrays, **({} if offsets is None else {"t.offsets": offsets}))
    made.commit(("n", "t"), {"t": "binary"})
    assert [fault.what for fault in verify(made.folder).faults] == [said]


def test_a_folder_of_ragged_rows(tmp_path: Path) -> None:
    """Its files say themselves what their columns are."""
    for number, offsets in enumerate(([0, 1, 3], [0, 2, 3])):
        arrays = {"t": np.frombuffer("aé".encode(), np.uint8), "t.offsets": np.array(offsets)}
        save_file(arrays, tmp_path / f"{number}.safetensors", {"column_kinds": '{"t":"text"}'})
    save_file({"t": np.zeros(2)}, tmp_path / "2.safetensors", {"column_kinds": '{"t":"verse"}'})
    faults = {fault.file: fault.what for fault in verify(tmp_path).faults}
    assert set(faults) == {"1.safetensors", "2.safetensors"}
    assert faults["1.safetensors"] == "tensor `t.offsets` splits a character at 2"
    assert "column `t` is of kind `verse`, expected one of fixed, ragged, text" in faults["2.safetensors"]


def test_a_shard_of_other_kinds_than_the_manifest_says(tmp_path: Path) -> None:
    made = Handmade(tmp_path / "made", "batch")
    arrays = {"t": np.zeros(3, np.uint8), "t.offsets": np.array([0, 3])}
    made.save(arrays, 1, {"column_kinds": '{"t":"text"}'})
    made.commit(("t",), {"t": "binary"})
    [fault] = verify(made.folder).faults
    assert fault.what == "its metadata says that column `t` is text, and the manifest binary"
