"""Configurations: what mistakes in a YAML file are told, and with which line."""

from __future__ import annotations

import json
import re
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from factory.mistakes import mistake
from safetensors_spark.factory import ConfigError, PipelineConfig, load_config, load_pipeline
from safetensors_spark.factory._config import SafetensorsSink
from safetensors_spark.factory._input import DatasetInput
from safetensors_spark.factory._yaml import parsed

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


def test_a_file_without_an_end_is_told(tmp_path: Path) -> None:
    (tmp_path / "web.yaml").symlink_to("/dev/zero")
    with pytest.raises(ConfigError, match=r"web.yaml has more than 10,000,000 bytes, which is no configuration"):
        load_config(tmp_path / "web.yaml")


def test_a_file_is_a_pipeline(tmp_path: Path) -> None:
    (tmp_path / "web.yaml").write_text(WEB)
    pipeline = load_pipeline(tmp_path / "web.yaml")
    assert (pipeline.name, [stage.name for stage in pipeline.stages]) == ("web", ["score", "images"])
    assert [one.id for one in pipeline.stages[0].operators] == ["text_length_1", "words"]
    assert [dict(one)["size"] for one in pipeline.stages[1].operators[1:]] == [32]
    config = load_config(tmp_path / "web.yaml")
    assert isinstance(config.input, DatasetInput)
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
        ("name: images", "name: a/b", 12, "'a/b' is not a valid stage name"),
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
    lines = mistake(tmp_path, text).splitlines()
    assert any(one.startswith(f"web.yaml, line {line}: ") and told in one for one in lines), lines


def test_all_slips_are_told_at_once(tmp_path: Path) -> None:
    text = WEB.replace("output:", "outptu:").replace("quality: 80", "quality: x").replace("image_info", "image_inof")
    assert re.findall(r"line (\d+)", mistake(tmp_path, text)) == ["9", "14", "17"]


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
    assert told in mistake(tmp_path, text)


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


_text = st.text(st.characters(codec="utf-8"), max_size=12)
_size = st.integers(1, 9)
_operators = st.one_of(
    st.fixed_dictionaries({"type": st.just("word_count")}, optional={"field": _text, "output": _text}),
    st.fixed_dictionaries(
        {"type": st.just("image_resize"), "size": _size | st.lists(_size, min_size=2, max_size=2)},
        optional={"quality": st.integers(1, 100), "format": st.sampled_from(["PNG", None])},
    ),
)  # fmt: skip
_files = st.sampled_from(["/a", "/b c/*.json", "s3://x/~y"])
_inputs = st.builds(DatasetInput, path=st.just("json"), data_files=st.lists(_files).map(tuple), streaming=st.booleans())


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


@pytest.mark.parametrize(("change", "is_right"), [((), True), (("output:", "outptu:"), False), (("32", "[1]"), False)])
def test_the_schema_takes_what_a_file_may_have(change: tuple[str, str] | tuple[()], is_right: bool) -> None:
    jsonschema = pytest.importorskip("jsonschema")
    validator = jsonschema.Draft202012Validator(PipelineConfig.json_schema())
    text = WEB.replace(*change) if change else WEB
    assert validator.is_valid(parsed(text.encode(), "x").value) == is_right
