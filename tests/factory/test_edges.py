"""Edges: the order of a stage's operators."""

from __future__ import annotations

from pathlib import Path

import pytest

from factory.mistakes import mistake
from safetensors_spark.factory import load_pipeline

GRAPH = """\
name: g
stages:
  - name: s
    operators:
      - {type: word_count, id: b, field: text, output: n}
      - {type: text_length, id: a}
      - {type: word_count, id: c}
    edges:
      - [a, b]
      - [a, c]
"""


def _order(folder: Path, text: str) -> list[str]:
    (folder / "g.yaml").write_text(text)
    return [one.id for one in load_pipeline(folder / "g.yaml").stages[0].operators]


def test_edges_are_the_order(tmp_path: Path) -> None:
    assert _order(tmp_path, GRAPH) == ["a", "b", "c"]
    assert _order(tmp_path, GRAPH.replace("[a, b]", "[c, b]")) == ["a", "c", "b"]
    assert _order(tmp_path, GRAPH.replace("[a, b]", "[c, b]").replace("[a, c]", "[c, a]")) == ["c", "b", "a"]
    without = GRAPH[: GRAPH.index("    edges")]
    assert _order(tmp_path, f"{without}    edges: []\n") == _order(tmp_path, without) == ["b", "a", "c"]


@pytest.mark.parametrize(
    ("right", "wrong", "line", "told"),
    [
        ("[a, b]", "[a, bb]", 9, "an edge of stage `s` names `bb`, which is not an operator's id. Did you mean `b`?"),
        ("[a, c]", "[a, a]", 8, "edges of stage `s` form a cycle: a -> a."),
        ("[a, c]", "[b, a]", 8, "form a cycle: "),
        ("[a, c]", "[a]", 10, "is too short"),
        ("[a, c]", "[a, b, c]", 10, "at most 2 items"),
        ("[a, c]", "a -> c", 10, "expected a list"),
        ("id: c", "id: c, field: n", 8, "`b` writes `n` and `c` uses it, but no edge says which is first"),
        ("id: c", "id: c, output: n", 8, "`b` writes `n` and `c` uses it"),
    ],
)
def test_edges_that_tell_no_order_are_told(tmp_path: Path, right: str, wrong: str, line: int, told: str) -> None:
    found = mistake(tmp_path, GRAPH.replace(right, wrong))
    assert f"line {line}: " in found
    assert told in found
