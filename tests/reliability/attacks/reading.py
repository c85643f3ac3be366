"""Reads all that Python reads of a dataset, and holds it against the official library."""

import json
from pathlib import Path
from typing import Any


def read_all(kind: str, path: Path) -> None:
    """Raises AssertionError where a value is not what the official library gives, and `verify` finds no fault either.

    An index tells where tensors are, so that headers are not read for look-ups; `verify` holds one against the other.
    """
    from safetensors_spark.dataset import verify

    try:
        (_read_rows if kind == "batches" else _read_store)(path)
    except AssertionError:
        if not verify(path).faults:
            raise


def _read_store(path: Path) -> None:
    from safetensors_spark.dataset import open_store

    store = open_store(path)
    official = {shard.file: official_tensors(path / shard.file) for shard in store.shards}
    for key in store:
        found = store[key]
        same = [one[key] for one in official.values() if one is not None and key in one]
        assert any(_is(found, one) for one in same), f"{key!r} is {found!r}, the official library has {same}"
    list(store.get_many(list(store)[:5]))
    assert "none such" not in store


def _read_rows(path: Path) -> None:
    from safetensors_spark.dataset import open_dataset

    dataset = open_dataset(path)
    found = [_plain(dataset[row]) for row in range(len(dataset))]
    assert [_plain(row) for row in dataset] == found
    assert _unbatched(dataset) == found
    if dataset.manifest is None:
        return
    expected = expected_rows(path)
    # Columns that the manifest does not have are not read.
    trimmed = [{name: row[name] for name in found[0] if name in row} for row in expected] if found else []
    assert [row_text(row) for row in found] == [row_text(row) for row in trimmed], (found, trimmed)


def _unbatched(dataset: Any) -> list[dict[str, Any]]:
    return [
        {name: _value(column[row]) for name, column in batch.items()}
        for batch in dataset.batches(5)
        for row in range(len(next(iter(batch.values()))))
    ]


def expected_rows(path: Path) -> list[dict[str, Any]]:
    """By the shards as the official library reads them, and offsets as format/dataset.md says."""
    rows: list[dict[str, Any]] = []
    for shard in json.loads((path / "dataset_manifest.json").read_bytes())["shards"]:
        tensors = _arrays(path / shard["file"])
        for row in range(shard["samples_count"]):
            rows.append({name: _row(tensors, name, row) for name in tensors if not name.endswith(".offsets")})
    return rows


def _row(tensors: dict[str, Any], name: str, row: int) -> Any:
    values = tensors[name]
    if f"{name}.offsets" in tensors:
        begin, end = (int(one) for one in tensors[f"{name}.offsets"][row : row + 2])
        assert 0 <= begin <= end <= len(values), f"a row of `{name}` from {begin} to {end} of {len(values)} was read"
        values = values[begin:end]
        return bytes(values).decode() if name == "t" else values.tolist()
    return values[row].tolist()


def _arrays(path: Path) -> dict[str, Any]:
    from safetensors.numpy import load_file

    return dict(load_file(path))


def official_tensors(path: Path) -> dict[str, Any] | None:
    from safetensors import SafetensorError, deserialize

    # Whose bytes have no end, the library would read for ever.
    if not path.is_file() or path.stat().st_size > 1 << 30:
        return None
    try:
        found = deserialize(path.read_bytes())  # type: ignore[no-untyped-call]
    except (SafetensorError, OSError):
        return None
    return {name: (list(one["shape"]), bytes(one["data"])) for name, one in found}


def _is(found: Any, official: tuple[list[int], bytes]) -> bool:
    return (list(found.shape), found.tobytes()) == official


def _plain(row: dict[str, Any]) -> dict[str, Any]:
    return {name: _value(value) for name, value in row.items()}


def _value(value: Any) -> Any:
    return value.tolist() if hasattr(value, "tolist") else value


def row_text(row: dict[str, Any]) -> str:
    return json.dumps({name: row[name] for name in sorted(row)})
