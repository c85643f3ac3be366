"""Tables in a pipe are plain, aligned text; on a terminal rich draws them."""

import os
import pty
import re
import subprocess
import sys

from safetensors_spark._commands.tables import Table, plain


def test_columns_are_aligned_numbers_to_the_right() -> None:
    table = Table("Shards", ("file", "bytes"), [("a", "1,000"), ("longer", "2")])
    assert plain(table) == "Shards\n  file    bytes\n  a       1,000\n  longer      2\n"


def test_a_cell_may_hold_several_lines() -> None:
    table = Table("Mends", ("for", "do"), [("Java", "one\ntwo"), ("Jar", "three")])
    assert plain(table) == "Mends\n  for   do\n  Java  one\n        two\n  Jar   three\n"


def test_a_table_may_be_empty() -> None:
    assert plain(Table("Nothing", ("a",), [])) == "Nothing\n  a\n"


def _on_a_terminal(preparation: str) -> str:
    """What a process prints for a table when its standard output is a terminal."""
    script = f"""
import sys
{preparation}
from safetensors_spark._commands.tables import Table, show
show(Table("Tensors", ("name", "count"), [("[bold]", "7")]))
"""
    ours, theirs = pty.openpty()
    subprocess.run([sys.executable, "-c", script], stdout=theirs, check=True)
    os.close(theirs)
    said = os.read(ours, 10_000).decode()
    os.close(ours)
    return re.sub(r"\x1b\[[\d;]*m", "", said).replace("\r\n", "\n")


def test_rich_draws_on_a_terminal_and_takes_no_cell_for_markup() -> None:
    drawn = _on_a_terminal("")
    assert "╭" in drawn
    assert "│ [bold] │     7 │" in drawn


def test_a_terminal_without_rich_gets_plain_text() -> None:
    assert _on_a_terminal("sys.modules['rich'] = None") == "Tensors\n  name    count\n  [bold]      7\n\n"
