"""The example that needs neither Spark nor PyTorch."""

from __future__ import annotations

from pathlib import Path

import examples


def test_embeddings_by_key(tmp_path: Path) -> None:
    told = examples.run_file(tmp_path, "embedding_store.py")
    assert "7,500 vectors of 64 numbers, float16" in told
    assert "refused: The key `user-2-0` is in two shards" in told
    assert "verified 7,500 tensors" in told
