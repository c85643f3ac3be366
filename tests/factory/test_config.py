"""Configurations: what mistakes in a YAML file are told, and with which line."""

from __future__ import annotations

import json
import re
import sys
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from safetensors_spark.factory import ConfigError, PipelineConfig, Score, load_config, load_pipeline, register
from safetensors_spark.factory._config import SafetensorsSink
from safetensors_spark.factory._input import DatasetInput
from safetensors_spark.factory._registry import _offered, operator_class, operator_types
from safetensors_spark.factory._yaml import parsed, written

WEB = """\
name: web
input:
  path: parquet
  data_files: in/*.parquet
stages:
  - name: score
    operators:
      - type: text_length
        output: characters
      - type: word_count
        id: words
  - name: images
    operators:
      - {type: image_info}
      - type: image_resize
        size: 32
        quality: 80
        format: PNG
sink:
  type: safetensors
  path: tensors
"""


def _mistake(folder: Path, text: str | bytes) -> str:
    """What is told of a file, without its path."""
    file = folder / "web.yaml"
    file.write_bytes(text if isinstance(text, bytes) else text.encode())
    with pytest.raises(ConfigError) as caught:
        load_config(file)
    return str(caught.value).replace(f"{file}", "web.yaml")


def test_a_file_is_a_pipeline(tmp_path: Path) -> None:
    (tmp_path / "web.yaml").write_text(WEB)
    pipeline = load_pipeline(tmp_path / "web.yaml")
    assert (pipeline.name, [stage.name for stage in pipeline.stages]) == ("web", ["score", "images"])
    assert [one.id for one in pipeline.stages[0].operators] == ["text_length_1", "words"]
    assert [dict(one)["size"] for one in pipeline.stages[1].operators[1:]] == [32]
    config = load_config(tmp_path / "web.yaml")
    assert config.input is not None
    assert config.input.data_files == f"{tmp_path}/in/*.parquet"
    assert config.sink == SafetensorsSink(type="safetensors", path=str(tmp_path / "tensors"))


@pytest.mark.parametrize(
    ("right", "wrong", "line", "told"),
    [
        ("name: web", "nmae: web", 1, "`nmae` is not known. Did you mean `name`?"),
        ("stages:", "stage:", 5, "`stage` is not known. Did you mean `stages`?"),
        ("    operators:\n      - {", "    operatros:\n      - {", 13, "Did you mean `operators`?"),
        ("  data_files:", "  data-files:", 4, "`data-files` is not known. Did you mean `data_files`?"),
        ("  path: parquet", "  path: 5", 3, "`path` is 5, expected text."),
        ("in/*.parquet", "[1]", 4, "expected text"),
        ("sink:", "sinks:", 19, "Did you mean `sink`?"),
        ("type: safetensors", "type: safetensor", 20, "is not known. Did you mean `safetensors`?"),
        ("  path: tensors", "  pth: tensors", 21, "`pth` is not known. Did you mean `path`?"),
        ("  path: tensors", "", 19, "`path` is missing: Folder of the new dataset"),
        ("type: text_length", "type: textlength", 8, "type `textlength`. Did you mean `text_length`?"),
        ("type: text_length", "type: TextLength", 8, "Did you mean `text_length`?"),
        ("type: text_length", "type: zzz", 8, "no operator has the type `zzz`. Expected one of "),
        ("type: text_length", "tpye: text_length", 8, "`type` is missing: What it is"),
        ("output:", "outputs:", 9, "`outputs` is not known. Did you mean `output`?"),
        ("output: characters", "output: no", 9, None),
        ("output: characters", "output: false", 9, "`output` is false, expected text."),
        ("output: characters", "output:", 9, "`output` is empty, expected text."),
        ("id: words", "id: 7", 11, "`id` is 7, expected text."),
        ("id: words", "id: text_length_1", 11, "two operators with the id `text_length_1`"),
        ("name: images", "name: score", 12, "two stages with the name `score`"),
        ("name: images", "name: a/b", 12, "'a/b' is no name of a stage"),
        ("size: 32", "size: big", 16, "`size` is the text 'big', expected a whole number, or a list."),
        ("size: 32", "size: 32.5", 16, "`size` is 32.5, expected a whole number"),
        ("size: 32", 'size: "32"', 16, "`size` is the text '32', expected a whole number"),
        ("size: 32", "size: [1, a]", 16, "the text 'a', expected a whole number"),
        ("size: 32", "size: 0", 16, "`size` is 0, expected greater than or equal to 1"),
        ("size: 32", "size: no", 16, "`size` is the text 'no', expected a whole number"),
        ("size: 32", "", 15, "`size` is missing: The shorter side, or width and height; in pixels."),
        ("quality: 80", "qualtiy: 80", 17, "`qualtiy` is not known. Did you mean `quality`?"),
        ("quality: 80", "quality: 101", 17, "`quality` is 101, expected less than or equal to 100."),
        ("format: PNG", "format: PNGG", 18, "Did you mean `PNG`?"),
        ("  - name: images", "  - score\n  - name: images", 12, "`stages`[1] is the text 'score', expected a mapping."),
    ],
)  # fmt: skip
def test_a_slip_is_told_with_its_line(tmp_path: Path, right: str, wrong: str, line: int, told: str | None) -> None:
    assert right in WEB
    text = WEB.replace(right, wrong, 1)
    if told is None:
        (tmp_path / "web.yaml").write_text(text)
        assert dict(load_pipeline(tmp_path / "web.yaml").stages[0].operators[0])["output"] == "no"
        return
    lines = _mistake(tmp_path, text).splitlines()
    assert any(one.startswith(f"web.yaml, line {line}: ") and told in one for one in lines), lines


def test_all_slips_are_told_at_once(tmp_path: Path) -> None:
    text = WEB.replace("output:", "outptu:").replace("quality: 80", "quality: x").replace("image_info", "image_inof")
    assert re.findall(r"line (\d+)", _mistake(tmp_path, text)) == ["9", "14", "17"]


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("", "web.yaml is empty, expected a mapping with `name` and `stages`."),
        ("# nothing\n", "web.yaml is empty"),
        ("- a\n- b\n", "web.yaml, line 1: this is a list of 2, expected a mapping."),
        ("web\n", "web.yaml, line 1: this is the text 'web', expected a mapping."),
        ("name: a\nname: b\n", "line 2: `name` is there twice, first in line 1: remove one."),
        ("name: a\n\tstages: 1\n", "line 2: "),
        ("name: a\nstages:\n\t- a\n", "line 3: a tab: indent with spaces."),
        ("name: &n a\nstages: *n\n", "line 1: `n` is an anchor or an alias, which are not read here"),
        ("name: a\nx:\n  <<: *n\n", "line 3: `n` is an anchor or an alias"),
        ("name: !!python/object:os.system a\n", "line 1: the tag `!!python/object:os.system` is not read here"),
        ("name: a\n1: b\n", "line 2: `1` is a key, expected text"),
        ("name: a\n[1, 2]: b\n", "line 2: a list or a mapping is a key, expected text"),
        ("name: a\n---\nname: b\n", "line 2: a second document begins here"),
        ("name: a\nb: 'c\n", "line "),
        ("name: a: b\n", "line 1: a second `:`"),
        (b"name: a\nb: \xff\n", "web.yaml, line 2: not UTF-8"),
        ("name: a".encode("utf-16"), "web.yaml, line 1: not UTF-8"),
        ("name: a\nb: \x00\n", "line 2: the character 0x0 is not allowed"),
        ('name: "\\ud800"\n', "line 1: the text has half of a surrogate pair"),
        (f"name: {'[' * 3000}", "nested too deep"),
        (f"name: {'[' * 60}{']' * 60}", "nested too deep"),
        (f"name: {'9' * 5000}", "is no int"),
        ("name: 1e999", "line 1: 1e999 is a number that is too large"),
        ("name: a\nstages: []\n", "line 2: `stages` is a list of 0, expected at least 1."),
    ],
)  # fmt: skip
def test_what_is_no_configuration_is_told(tmp_path: Path, text: str | bytes, told: str) -> None:
    assert told in _mistake(tmp_path, text)


def test_a_file_that_cannot_be_read_is_told(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"none\.yaml cannot be read: No such file or directory\."):
        load_config(tmp_path / "none.yaml")


_pieces = st.text(
    st.sampled_from("\t\n  -:,.[]{}&*!|>'\"%@#?0x7eé\x00\u2028") | st.characters(codec="utf-8"), max_size=3
)


@given(st.integers(0, len(WEB)), st.integers(0, 9), _pieces | st.sampled_from(["[", "no", "null", "- ", "{}", "? "]))
def test_whatever_a_file_has_is_a_pipeline_or_told(
    tmp_path_factory: pytest.TempPathFactory, begin: int, length: int, piece: str
) -> None:
    file = tmp_path_factory.getbasetemp() / "any.yaml"
    file.write_bytes((WEB[:begin] + piece + WEB[begin + length :]).encode())
    told = ""
    try:
        load_pipeline(file)
    except ConfigError as error:
        told = str(error)
    assert told == "" or told.startswith((f"{file}, line ", f"{file} is empty", f"{file} is nested"))


@given(st.binary(max_size=30))
def test_any_bytes_are_a_value_or_told(content: bytes) -> None:
    told = "x"
    try:
        parsed(content, "x")
    except ConfigError as error:
        told = str(error)
    assert told.startswith("x")


def test_scalars_are_what_they_look_like() -> None:
    content = b"\xef\xbb\xbf[no, yes, on, 1e-3, 010, 0x10, 1_000, 2026-11-23, null, ~, .5, -.inf, true, 1:30, '1']"
    assert parsed(content, "x").value == [
        "no", "yes", "on", 0.001, 10, 16, "1_000", "2026-11-23", None, None, 0.5, float("-inf"), True, "1:30", "1",
    ]  # fmt: skip


_text = st.text(st.characters(codec="utf-8"), max_size=12)
_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | _text,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(_text, inner, max_size=3),
    max_leaves=8,
)


@given(_values)
def test_what_is_written_is_read_as_the_same(value: Any) -> None:
    assert parsed(written([value]).encode(), "x").value == [value]


_size = st.integers(1, 9)
_operators = st.one_of(
    st.fixed_dictionaries({"type": st.just("word_count")}, optional={"field": _text, "output": _text}),
    st.fixed_dictionaries(
        {"type": st.just("image_resize"), "size": _size | st.lists(_size, min_size=2, max_size=2)},
        optional={"quality": st.integers(1, 100), "format": st.sampled_from(["PNG", None])},
    ),
)  # fmt: skip
_inputs = st.builds(
    DatasetInput, path=st.just("json"), data_files=st.lists(_text.map("/{}".format)).map(tuple), streaming=st.booleans()
)


@given(st.lists(_operators, min_size=1, max_size=4), st.none() | _inputs, st.booleans())
def test_a_configuration_is_read_as_it_was_written(
    tmp_path_factory: pytest.TempPathFactory, operators: Any, dataset: Any, has_edges: bool
) -> None:
    ids = [{"id": f"o{number}"} | one for number, one in enumerate(operators)]
    edges = [[one["id"], other["id"]] for one, other in pairwise(ids)] if has_edges else None
    values = {"name": "p", "stages": [{"name": "s", "operators": ids, "edges": edges}]}
    config = PipelineConfig.model_validate_json(json.dumps(values)).model_copy(update={"input": dataset})
    file = tmp_path_factory.getbasetemp() / "round.yaml"
    file.write_text(config.to_yaml(), "utf-8")
    found = load_config(file)
    assert found == config
    assert found.pipeline() == config.pipeline()


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
        ("[a, b]", "[a, bb]", 9, "an edge of stage `s` names `bb`, which is no operator's id. Did you mean `b`?"),
        ("[a, c]", "[a, a]", 8, "edges of stage `s` go in a circle: a -> a."),
        ("[a, c]", "[b, a]", 8, "go in a circle: "),
        ("[a, c]", "[a]", 10, "is too short"),
        ("[a, c]", "[a, b, c]", 10, "at most 2 items"),
        ("[a, c]", "a -> c", 10, "expected a list"),
        ("id: c", "id: c, field: n", 8, "`b` writes `n` and `c` uses it, but no edge says which is first"),
        ("id: c", "id: c, output: n", 8, "`b` writes `n` and `c` uses it"),
    ],
)
def test_edges_that_tell_no_order_are_told(tmp_path: Path, right: str, wrong: str, line: int, told: str) -> None:
    found = _mistake(tmp_path, GRAPH.replace(right, wrong))
    assert f"line {line}: " in found
    assert told in found


OWN = """\
import pyarrow as pa
from safetensors_spark.factory import Score, register

@register
class Vowels(Score):
    type = "vowels"

    @property
    def reads(self):
        return ("text",)

    @property
    def writes(self):
        return {"vowels": pa.int64()}

    def score(self, batch):
        return {"vowels": [sum(c in "aeiou" for c in text) for text in batch["text"].to_pylist()]}
"""


def test_own_operators_are_imported(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.path", list(sys.path))
    monkeypatch.setattr("safetensors_spark.factory._registry._registered", {})
    (tmp_path / "own_vowels.py").write_text(OWN)
    text = "name: p\nimports: [own_vowels]\nstages: [{name: s, operators: [{type: vowels}]}]\n"
    (tmp_path / "web.yaml").write_text(text)
    (operator,) = load_pipeline(tmp_path / "web.yaml").stages[0].operators
    assert type(operator).__name__ == "Vowels"
    found = _mistake(tmp_path, text.replace("vowels}", "vowel}"))
    assert "no operator has the type `vowel`. Did you mean `vowels`?" in found
    found = _mistake(tmp_path, text.replace("[own_vowels]", "[own_vowls]"))
    assert found.startswith("web.yaml, line 2: `own_vowls` cannot be imported: ModuleNotFoundError")
    with pytest.raises(ConfigError, match="already"):

        @register
        class Again(Score):
            type = "text_length"


def test_operators_of_other_packages_are_known(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    info = tmp_path / "vowels-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: vowels\nVersion: 1.0\n")
    points = "vowels = packaged_vowels:Vowels\nbroken = nowhere:X\nno_class = json:dumps\n"
    (info / "entry_points.txt").write_text(f"[safetensors_spark.factory.operators]\n{points}")
    (tmp_path / "packaged_vowels.py").write_text(OWN.replace("@register\n", ""))
    monkeypatch.syspath_prepend(tmp_path)
    _offered.cache_clear()
    try:
        assert {"vowels", "text_length"} <= set(operator_types())
        assert operator_class("vowels").__module__ == "packaged_vowels"
        with pytest.raises(ConfigError, match="nowhere:X of vowels cannot be imported"):
            operator_class("broken")
        with pytest.raises(ConfigError, match="json:dumps of vowels is no class of operators"):
            operator_class("no_class")
    finally:
        _offered.cache_clear()


def test_the_type_of_each_operator_of_the_factory_is_that_of_its_class() -> None:
    assert {"text_length", "word_count", "image_info"} <= set(operator_types())
    for name in operator_types():
        assert operator_class(name).type == name


@pytest.mark.parametrize(("change", "is_right"), [((), True), (("output:", "outptu:"), False), (("32", "[1]"), False)])
def test_the_schema_takes_what_a_file_may_have(change: tuple[str, str] | tuple[()], is_right: bool) -> None:
    jsonschema = pytest.importorskip("jsonschema")
    validator = jsonschema.Draft202012Validator(PipelineConfig.json_schema())
    text = WEB.replace(*change) if change else WEB
    assert validator.is_valid(parsed(text.encode(), "x").value) == is_right


def test_files_of_operators_are_seen_from_the_file(tmp_path: Path) -> None:
    operators = '[{type: token_count, tokenizer: t.json, output: t.json}, {type: word_count, field: "t.json"}]'
    (tmp_path / "web.yaml").write_text(f"name: p\nstages: [{{name: s, operators: {operators}}}]\n")
    (tokens, words) = load_config(tmp_path / "web.yaml").pipeline().stages[0].operators
    assert tokens.files == (f"{tmp_path}/t.json",)
    assert list(tokens.writes) == ["t.json"]
    assert words.reads == ("t.json",)


def test_paths_are_seen_from_the_file(tmp_path: Path) -> None:
    folder = tmp_path / "a [1]"
    (folder / "rows").mkdir(parents=True)

    def found(**arguments: Any) -> DatasetInput:
        return DatasetInput(**arguments).resolved(folder)

    assert found(path="rows").path == str(folder / "rows")
    assert found(path="json", data_files={"train": ["/x", "s3://y", "z"]}).data_files == {
        "train": ("/x", "s3://y", f"{tmp_path}/a [[]1]/z")
    }
    assert found(path="me/rows", data_files="en/*").data_files == "en/*"
    (folder / "z.jsonl").write_text('{"a": 1}\n')
    assert list(found(path="json", data_files="*.jsonl").open()) == [{"a": 1}]
    with pytest.raises(ConfigError, match=r"the input cannot be opened: no file is `.*/none\*\.jsonl`"):
        found(path="json", data_files="none*.jsonl").open()
    with pytest.raises(ConfigError, match="ValueError: Bad split: tran"):
        found(path="json", data_files="z.jsonl", split="tran").open()
    with pytest.raises(ConfigError, match="unexpected keyword argument 'colums'"):
        found(path="json", data_files="z.jsonl", options={"colums": []}).open()
    (folder / "empty.jsonl").touch()
    with pytest.raises(ConfigError, match="its files are empty"):
        found(path="json", data_files="empty.jsonl").open()
