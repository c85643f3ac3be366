"""Hugging Face datasets as safetensors datasets, and back."""

from __future__ import annotations

import datetime as dt
from pathlib import Path
from typing import Any

import datasets
import numpy as np
import pytest
from datasets import Array2D, Array3D, ClassLabel, Features, Image, List, Value
from PIL import Image as Pictures

from safetensors_spark import InvalidWriteError
from safetensors_spark.dataset import open_dataset, verify
from safetensors_spark.factory import ConfigError, from_safetensors, to_safetensors
from safetensors_spark.pipeline import Backend, create_backend

_FEATURES = Features(
    {
        "ids": List(Value("int32")),
        "pairs": List(List(Value("uint8"), length=2)),
        "embedding": List(Value("float32"), length=3),
        "grid": Array2D((2, 2), "int16"),
        "cube": Array3D((1, 2, 3), "float64"),
        "text": Value("string"),
        "raw": Value("binary"),
        "day": Value("date32"),
        "time": Value("timestamp[us]"),
        "moment": Value("timestamp[us, tz=UTC]"),
        "half": Value("float16"),
        "big": Value("uint64"),
        "flag": Value("bool"),
        "label": ClassLabel(names=["no", "yes"]),
        "picture": Image(),
    }
)


def _row(n: int) -> dict[str, Any]:
    return {
        "ids": list(range(n % 4)),
        "pairs": [[1, n % 256]] * (n % 3),
        "embedding": [n, 0.5, 1],
        "grid": [[n, 1], [-2, 3]],
        "cube": [[[1, 2, 3], [4, 5, n]]],
        "text": f"é{n}",
        "raw": b"\0" * (n % 3),
        "day": dt.date(2020, 1, 1) + dt.timedelta(n),
        "time": dt.datetime(2020, 1, 1, 3, microsecond=n),
        "moment": dt.datetime(2020, 1, 1, 3, microsecond=n, tzinfo=dt.timezone.utc),
        "half": 0.5,
        "big": 2**63 - 1 - n,
        "flag": n % 2 == 0,
        "label": n % 2,
        "picture": Pictures.fromarray(np.full((4, 5, 3), n % 256, np.uint8)),
    }


@pytest.fixture(scope="module")
def many() -> Any:
    rows = [_row(n) for n in range(600)]
    return datasets.Dataset.from_dict({name: [row[name] for row in rows] for name in _FEATURES}, features=_FEATURES)


def _same(found: Any, expected: Any) -> None:
    rows, others = list(found), list(expected)
    assert len(rows) == len(others)
    for row, other in zip(rows, others, strict=True):
        assert row.keys() == other.keys()
        for name in row:
            if name == "picture":
                assert np.array_equal(row[name], np.asarray(other[name]))
            else:
                assert row[name] == other[name], name


def test_rows_come_back_as_they_were(many: Any, tmp_path: Path, sync: Backend) -> None:
    path = to_safetensors(many, tmp_path / "all", backend=sync, shard_bytes=20_000)
    assert not verify(path).faults
    stream = from_safetensors(path)
    assert stream.num_shards == len(open_dataset(path).shards) > 3
    changed = {"label": Value("int64"), "picture": Array3D((4, 5, 3), "uint8")}
    assert stream.features == Features({**_FEATURES, **changed})
    _same(stream, many)
    whole = from_safetensors(path, streaming=False)
    assert isinstance(whole, datasets.Dataset)
    assert whole.features == stream.features
    _same(whole, many)
    assert from_safetensors(path, columns=["text"], streaming=False).column_names == ["text"]


def test_streams_are_written_by_processes_as_by_one(many: Any, tmp_path: Path, sync: Backend) -> None:
    columns = ["ids", "embedding"]
    stream = many.select_columns(columns).to_iterable_dataset(num_shards=3)
    workers = create_backend("processes", 2, progress=False)
    for name, backend in (("one", sync), ("two", workers)):
        to_safetensors(stream, tmp_path / name, backend=backend)
    one, two = (sorted((tmp_path / name).glob("*.safetensors")) for name in ("one", "two"))
    assert len(one) == 3
    assert [path.read_bytes() for path in one] == [path.read_bytes() for path in two]
    _same(from_safetensors(tmp_path / "two"), many.select_columns(columns))


def test_a_state_of_the_stream_goes_on(many: Any, tmp_path: Path, sync: Backend) -> None:
    path = to_safetensors(many, tmp_path / "x", columns=["text"], backend=sync, shard_bytes=2_000)
    stream = from_safetensors(path)
    rows = iter(stream)
    begun = [next(rows) for _ in range(333)]
    again = from_safetensors(path)
    again.load_state_dict(stream.state_dict())
    assert [row["text"] for row in [*begun, *again]] == many["text"][:]
    parts = [row["text"] for index in range(2) for row in stream.shard(2, index)]
    assert parts == many["text"][:]


def test_the_loader_trains_from_it(many: Any, tmp_path: Path, sync: Backend) -> None:
    torch = pytest.importorskip("torch")
    from safetensors_spark.torch import BatchDataset

    path = to_safetensors(many, tmp_path / "x", columns=["picture", "embedding"], backend=sync)
    batch = next(iter(BatchDataset(open_dataset(path), 64, shuffle=True)))
    assert (batch["picture"].shape, batch["picture"].dtype) == ((64, 4, 5, 3), torch.uint8)
    assert torch.equal(batch["picture"][:, 0, 0, 0].int(), batch["embedding"][:, 0].int() % 256)


def test_tokens_are_cut_into_blocks(many: Any, tmp_path: Path, sync: Backend) -> None:
    path = to_safetensors(many, tmp_path / "x", tokens="ids", block=8, backend=sync)
    expected = [token for ids in many["ids"] for token in ids]
    found = from_safetensors(path, streaming=False)
    assert found.features == Features({"ids": List(Value("int32"), length=8)})
    assert [token for row in found for token in row["ids"]] == expected[: len(expected) // 8 * 8]
    # Shards that are shorter than a block leave nothing.
    path = to_safetensors(many.select(range(3)), tmp_path / "y", tokens="ids", block=8, backend=sync)
    assert list(from_safetensors(path)) == []


def test_no_rows_are_a_dataset_of_no_rows(many: Any, tmp_path: Path, sync: Backend) -> None:
    for name, rows in (("a", many.select([])), ("b", many.to_iterable_dataset().filter(lambda _: False))):
        path = to_safetensors(rows, tmp_path / name, backend=sync)
        for streaming in (True, False):
            found = from_safetensors(path, streaming=streaming)
            assert list(found) == []
            assert list(found.features) == list(_FEATURES)


def test_a_dataset_is_not_written_twice(many: Any, tmp_path: Path, sync: Backend) -> None:
    rows = many.select_columns(["text", "ids"])
    path = to_safetensors(rows, tmp_path / "x", backend=sync)
    before = {file: file.stat().st_mtime_ns for file in Path(path).glob("*.safetensors")}
    to_safetensors(rows, path, backend=sync)
    assert {file: file.stat().st_mtime_ns for file in Path(path).glob("*.safetensors")} == before
    with pytest.raises(InvalidWriteError, match="is a dataset already"):
        to_safetensors(rows.select(range(5)), path, backend=sync)
    to_safetensors(rows.select(range(5)), path, mode="overwrite", backend=sync)
    _same(from_safetensors(path), rows.select(range(5)))


def test_what_cannot_be_written_is_named(many: Any, tmp_path: Path, sync: Backend) -> None:
    rows = datasets.Dataset.from_dict({"n": [1, None], "s": [{"a": 1}, {"a": 2}], "t": [[1], [2, None]]})

    def write(some: Any, **options: Any) -> None:
        to_safetensors(some, tmp_path / "x", backend=sync, **options)

    with pytest.raises(ConfigError, match=r"no `s`, which is \{'a'.*`columns=\['n', 't'\]`"):
        write(rows)
    with pytest.raises(InvalidWriteError, match=r"`n`.*null"):
        write(rows, columns=["n"])
    with pytest.raises(InvalidWriteError, match=r"`t`.*null"):
        write(rows, columns=["t"])
    with pytest.raises(ConfigError, match="no column `m` to write; they have n, s, t"):
        write(rows, columns=["m"])
    with pytest.raises(ConfigError, match="`text` is string, expected lists of token ids"):
        write(many, tokens="text", block=8)
    with pytest.raises(ValueError, match="give both or none"):
        write(many, block=8)
    sizes = [Pictures.new("RGB", size) for size in ((4, 4), (5, 4))]
    pictures = datasets.Dataset.from_dict({"p": sizes}, features=Features({"p": Image()}))
    with pytest.raises(ConfigError, match=r"\[4, 4, 3\] and \[4, 5, 3\].*`image_resize`"):
        write(pictures)
    broken = datasets.Dataset.from_dict({"p": [{"bytes": b"GIF89a", "path": None}]}, features=Features({"p": Image()}))
    with pytest.raises(ConfigError, match="`p` has an image that cannot be decoded"):
        write(broken)
    assert not list(tmp_path.rglob("*.safetensors"))


def test_a_column_that_arrow_does_not_have_is_named(many: Any, tmp_path: Path, sync: Backend) -> None:
    path = to_safetensors(
        many, tmp_path / "x", columns=["embedding", "text"], dtype={"embedding": "BF16"}, backend=sync
    )
    with pytest.raises(ConfigError, match="`embedding` has BF16, which Hugging Face's datasets do not have"):
        from_safetensors(path)
    assert len(from_safetensors(path, columns=["text"], streaming=False)) == len(many)
