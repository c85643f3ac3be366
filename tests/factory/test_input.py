"""The dataset that a configuration names, and the files of its operators."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from safetensors_spark.factory import ConfigError, load_config
from safetensors_spark.factory._input import DatasetInput


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
