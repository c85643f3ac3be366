"""Files between stages that somebody has changed: they are told, or not used."""

from __future__ import annotations

import json
import zlib
from pathlib import Path
from typing import Any

import pytest

from safetensors_spark import PipelineError
from safetensors_spark._files.commit.target import open_target
from safetensors_spark.pipeline._shard_file import _END, Footer, FrameWriter, ShardFile


@pytest.mark.parametrize(
    "changed",
    [
        {"frames": [[0, 0, 8, 1 << 62, 1, 0]]},
        {"frames": [[0, 0, -8, 16, 1, 0]]},
        {"frames": [["0", 0, 8, 16, 1, 0]]},
        {"frames": [[0, 0]]},
        {"frames": None},
        {"rows": "many"},
        {"unknown": 1},
    ],
)
def test_a_footer_that_is_not_ours_is_told_though_its_checksum_fits(tmp_path: Path, changed: dict[str, Any]) -> None:
    path = tmp_path / "shard"
    with path.open("wb") as file:
        writer = FrameWriter(file, 1000)
        writer.write([{"id": 1}])
        writer.finish(Footer(rows=1))
    whole = path.read_bytes()
    _, length, magic = _END.unpack(whole[-_END.size :])
    body, footer = whole[: -_END.size - length], json.loads(whole[-_END.size - length : -_END.size])
    content = json.dumps(footer | changed).encode()
    path.write_bytes(body + content + _END.pack(zlib.crc32(content), len(content), magic))
    with pytest.raises(PipelineError, match=f"{path} is not what a stage has written"):
        ShardFile(open_target(str(tmp_path)), "shard")
