"""What is said of requests that a store refuses: whether it is the reading or the writing that fails."""

import errno
from pathlib import Path
from typing import Any

import pytest
from fsspec.implementations.memory import MemoryFileSystem

from safetensors_spark._files import retries
from safetensors_spark.dataset import open_dataset, write_dataset


@pytest.mark.parametrize(("request_", "what"), [("cp_file", "written"), ("cat_file", "read")])
def test_a_request_that_the_store_refuses(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, request_: str, what: str
) -> None:
    url = f"memory://{tmp_path}"
    write_dataset({"x": [1, 2]}, url, batch_size=2)

    def refuse(*args: Any, **options: Any) -> None:
        raise OSError(errno.EIO, "refused")

    with monkeypatch.context() as context:
        context.setattr(retries, "DELAYS", (0.0,))
        context.setattr(MemoryFileSystem, request_, refuse)
        with pytest.raises(OSError, match=rf"^{url}/.* cannot be {what} \(.*refused"):
            write_dataset({"x": [3]}, url, batch_size=2)
    assert open_dataset(url)["x"].tolist() == [1, 2]
