"""What a run shows while it works."""

from __future__ import annotations

import os
import pty
import re
import subprocess
import sys
from pathlib import Path

import pytest

_SCRIPT = """
import time
from safetensors_spark.pipeline import Dataset, _progress, create_backend

_progress._SECONDS = 0.2

def slowly(number):
    time.sleep(0.1)
    return {"number": number, "text": "x" * 1000}

dataset = Dataset.from_list(range(12)).map(slowly).reshard(3).write_jsonl("out/[{shard}].jsonl")
print(len(list(create_backend("threads", 2).execute(dataset))))
"""


def _command(folder: Path) -> tuple[list[str], dict[str, str]]:
    (folder / "script.py").write_text(_SCRIPT)
    return [sys.executable, "script.py"], {**os.environ, "COLUMNS": "200", "TERM": "xterm"}


def test_a_terminal_has_bars_with_rows_bytes_and_their_rates(tmp_path: Path) -> None:
    pytest.importorskip("rich")
    command, env = _command(tmp_path)
    ours, theirs = pty.openpty()
    with subprocess.Popen(
        command, cwd=tmp_path, env=env, stdin=theirs, stdout=subprocess.PIPE, stderr=theirs, text=True
    ) as child:
        os.close(theirs)
        shown = bytearray()
        # Linux reports an error where another system would report the end.
        try:
            while some := os.read(ours, 65536):
                shown += some
        except OSError:
            pass
        assert child.stdout is not None
        assert child.stdout.read() == "3\n"
    os.close(ours)
    text = re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", shown.decode())
    assert re.search(r"stage 1: map slowly\S* .* 12/12 +12 rows, \d+ rows/s +\d:\d\d:\d\d", text), text
    assert re.search(
        r"stage 2: reshard 3 \| write jsonl \S*\[\{shard\}.* 3/3 +12 rows, [\d,]+ rows/s, 0.0 MB, ", text
    ), text


def test_a_file_gets_a_line_once_in_a_while(tmp_path: Path) -> None:
    command, env = _command(tmp_path)
    done = subprocess.run(command, cwd=tmp_path, env=env, capture_output=True, text=True, check=True)
    assert done.stdout == "3\n"
    lines = done.stderr.splitlines()
    assert lines
    for line in lines:
        assert re.fullmatch(
            r"stage [12]: \d+ of (12|3) shards, \d+ rows, [\d,]+ rows/s(, 0.0 MB, \d+.\d MB/s)?", line
        ), lines
