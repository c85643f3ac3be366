"""What format/staging.md and docs/publish.md say of a staging directory."""

import json
import re
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa  # type: ignore[import-untyped]
import pytest
from jsonschema import Draft202012Validator, ValidationError

from safetensors_spark.dataset import write_dataset
from safetensors_spark.publish import SYNCED_DIRNAME, ShardSchema, move_to, stage_dataset, write_shard

ROOT = Path(__file__).parents[2]
SIDECAR = Draft202012Validator(json.loads((ROOT / "format" / "sidecar.schema.json").read_text()))


def test_sidecars_are_of_their_schema(tmp_path: Path) -> None:
    write_dataset([{"x": np.arange(3)}], tmp_path / "points", batch_size=2)
    rows = pa.table({"x": [1]})
    shards = [
        *stage_dataset(tmp_path / "points", staging_dir=tmp_path / "staging", path_in_repo="data"),
        write_shard(rows, staging_dir=tmp_path / "staging", run_id="a", schema=ShardSchema()),
    ]
    shards.append(move_to(shards.pop(), tmp_path / "staging", SYNCED_DIRNAME))
    fields: set[str] = set()
    for shard in shards:
        sidecar = json.loads(Path(shard.sidecar_path).read_text())
        SIDECAR.validate(sidecar)
        fields |= sidecar.keys()
    page = (ROOT / "format" / "staging.md").read_text()
    assert [field for field in sorted(fields) if f"`{field}`" not in page] == []


@pytest.mark.parametrize(("field", "value"), [("sha256", "ab"), ("n_rows", -1), ("path_in_repo", "/a"), ("version", 2)])
def test_the_schema_refuses_what_readers_refuse(tmp_path: Path, field: str, value: Any) -> None:
    shard = write_shard(pa.table({"x": [1]}), staging_dir=tmp_path, run_id="a", schema=ShardSchema())
    sidecar = json.loads(Path(shard.sidecar_path).read_text())
    with pytest.raises(ValidationError):
        SIDECAR.validate({**sidecar, field: value})


def test_the_example_of_staging_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    section = (ROOT / "docs" / "publish.md").read_text().split("## Staging with many workers")[1]
    example = re.search(r"^```python\n(.*?)^```", section, re.DOTALL | re.MULTILINE)
    assert example
    exec(example[1], {})
