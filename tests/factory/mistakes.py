"""What is told of a configuration that is wrong."""

from __future__ import annotations

from pathlib import Path

import pytest

from safetensors_spark.factory import ConfigError, load_config


def mistake(folder: Path, text: str | bytes) -> str:
    """The error for a file `web.yaml` of this content, without its folder."""
    file = folder / "web.yaml"
    file.write_bytes(text if isinstance(text, bytes) else text.encode())
    with pytest.raises(ConfigError) as caught:
        load_config(file)
    return str(caught.value).replace(f"{file}", "web.yaml")
