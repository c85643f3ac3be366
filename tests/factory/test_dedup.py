"""Duplicates in whole datasets."""

from __future__ import annotations

import json
import os
import random
import subprocess
import sys
from pathlib import Path
from typing import Any

import datasets
import numpy as np
import pyarrow as pa  # type: ignore[import-untyped]
import pyarrow.parquet as pq  # type: ignore[import-untyped]
import pytest

from factory.conftest import Longer
from safetensors_spark.factory import ConfigError, Operator, Pipeline, Stage, plan, run
from safetensors_spark.factory.operators._minhash import bands_for, candidate_probability
from safetensors_spark.factory.operators.exact_dedup import ExactDedup
from safetensors_spark.factory.operators.minhash_dedup import MinhashDedup
from safetensors_spark.factory.operators.perceptual_hash_dedup import PerceptualHashDedup
from safetensors_spark.pipeline import Backend, create_backend

SIZES: dict[str, Any] = {"shard_bytes": 3000, "window_bytes": 1000, "file_bytes": 2000}


def _kept(operator: Operator, rows: Any, out: Path, backend: Backend) -> Any:
    return run(Pipeline("p", (Stage("s", [operator]),)), rows, out, backend=backend, **SIZES)


def _files(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*.parquet")}


def texts(count: int, seed: int = 1) -> list[str | None]:
    """Texts of which a third are copies with some words changed, and some are equal, empty or null."""
    draw = random.Random(seed)
    words = [f"w{number}" for number in range(3000)]
    found: list[str | None] = []
    for _ in range(count):
        kind = draw.random()
        before = draw.choice(found) if found else None
        if before and kind < 0.3:
            copied = before.split()
            for _ in range(draw.randint(0, len(copied) // 8)):
                copied[draw.randrange(len(copied))] = draw.choice(words)
            found.append(" ".join(copied))
        elif before and kind < 0.4:
            found.append(before)
        elif kind < 0.43:
            found.append(draw.choice(["", None, "?!"]))
        else:
            found.append(" ".join(draw.choices(words, k=draw.randint(5, 80))))
    return found


def test_rows_that_are_equal_are_kept_once(tmp_path: Path, sync: Backend) -> None:
    made = texts(1000)
    rows = datasets.Dataset.from_dict({"n": range(1000), "text": made})
    expected, seen = [], set()
    for number, text in enumerate(made):
        if text is None or text not in seen:
            expected.append(number)
        seen.add(text)
    found = _kept(ExactDedup(), rows, tmp_path, sync)
    assert found["n"][:] == expected
    assert found.column_names == ["n", "text"]
    assert len(json.loads((tmp_path / "s" / "manifest.json").read_text())["shards"]) > 10
    dropped = [
        row for path in sorted((tmp_path / "s" / "dropped").iterdir()) for row in pq.read_table(path).to_pylist()
    ]
    assert sorted([*expected, *(row["n"] for row in dropped)]) == list(range(1000))
    assert dropped[0]["__fdf__/dropped_by"] == "exact_dedup_1"
    assert dropped[0]["__fdf__/dropped_because"].startswith("duplicate of row ")


def test_what_is_equal_is_what_fields_say(tmp_path: Path, sync: Backend) -> None:
    rows = datasets.Dataset.from_dict(
        {"a": ["x", "X ", "x", None, None, None], "b": [[1], [1], [2], [1], None, None], "n": range(6)}
    )
    expected = {("a",): [0, 1, 3, 4, 5], ("b",): [0, 2, 4, 5], ("a", "b"): [0, 1, 2, 3, 4, 5]}
    for fields, kept in expected.items():
        found = _kept(ExactDedup(fields=fields), rows, tmp_path / "".join(fields), sync)
        assert found["n"][:] == kept
    assert _kept(ExactDedup(fields=("a",), normalized=True), rows, tmp_path / "n", sync)["n"][:] == [0, 3, 4, 5]


def _shingles(text: str | None, ngram: int = 5) -> set[tuple[str, ...]]:
    words = (text or "").lower().split()
    return {tuple(words[place : place + ngram]) for place in range(max(1, len(words) - ngram + 1))}


def test_texts_that_are_nearly_equal_are_found_as_the_curve_says(tmp_path: Path, sync: Backend) -> None:
    made = texts(1200, seed=2)
    rows = datasets.Dataset.from_dict({"n": range(len(made)), "text": made})
    operator = MinhashDedup(num_perm=256)
    kept = {*_kept(operator, rows, tmp_path, sync)["n"][:]}
    sets = [_shingles(text) for text in made]
    shape = bands_for(operator.threshold, operator.num_perm)
    sure = missed = wrong = 0
    for number, some in enumerate(sets):
        if not made[number] or made[number] == "?!":
            assert number in kept
            continue
        near = [len(some & other) / len(some | other) for other, text in zip(sets[:number], made, strict=False) if text]
        best = max(near, default=0.0)
        if best > 0.85 and candidate_probability(best, *shape) > 0.999:
            sure += 1
            missed += number in kept
        elif best < 0.5:
            wrong += number not in kept
    assert sure > 200
    # A text may hang together with an earlier one over another one alone; the estimate's error is below 0.03.
    assert missed <= sure * 0.01
    assert wrong == 0


def test_images_that_look_alike_are_kept_once(tmp_path: Path, sync: Backend) -> None:
    draw = np.random.default_rng(3)
    hashes = draw.integers(0, 2**63, 300).tolist()
    for number in range(0, 300, 3):
        flipped = draw.choice(64, draw.integers(0, 8), replace=False)
        hashes.append(hashes[number] ^ sum(1 << int(bit) for bit in flipped))
    made = [f"{one:016x}" for one in hashes] + [None, None] + [f"{hashes[0]:016x}"] * 20
    rows = datasets.Dataset.from_dict({"n": range(len(made)), "phash": made})
    for distance in (0, 4, 7):
        found = {*_kept(PerceptualHashDedup(distance=distance), rows, tmp_path / str(distance), sync)["n"][:]}
        group: list[int] = []
        for number, text in enumerate(made):
            near = [
                other
                for other in range(number)
                if text and made[other] and (int(text, 16) ^ int(str(made[other]), 16)).bit_count() <= distance
            ]
            group.append(group[near[0]] if near else number)
            # In this data no row joins two groups.
            assert len({group[other] for other in near}) <= 1
            assert (number in found) == (not near)


@pytest.mark.parametrize("operator", [ExactDedup(), MinhashDedup(num_perm=64)], ids=lambda one: one.type)
def test_files_are_the_same_for_any_number_of_workers(operator: Operator, tmp_path: Path, sync: Backend) -> None:
    rows = datasets.Dataset.from_dict({"n": range(400), "text": texts(400)})
    _kept(operator, rows, tmp_path / "one", sync)
    _kept(operator, rows, tmp_path / "four", create_backend("processes", 4, progress=False))
    assert _files(tmp_path / "one") == _files(tmp_path / "four")
    _kept(operator, rows.to_iterable_dataset(num_shards=1), tmp_path / "stream", sync)
    read = [pq.read_table(tmp_path / name / "s" / "data")["n"].to_pylist() for name in ("one", "stream")]
    assert read[0] == read[1]


def test_new_shards_that_join_groups_change_what_they_must(tmp_path: Path, sync: Backend) -> None:
    def link(*parts: int) -> str:
        return " ".join(f"p{part}w{number}" for part in parts for number in range(60))

    # The third file's text is near both of those of the first two, which are not near each other.
    contents = [[link(1, 2, 3, 4), "a b c d e f"], [link(3, 4, 5, 6), "a b c d e g h i j k"], [link(1, 2, 3, 4, 5, 6)]]
    for number, content in enumerate(contents):
        pq.write_table(pa.table({"text": content}), tmp_path / f"{number}.parquet")

    def stream(count: int) -> Any:
        files = [str(tmp_path / f"{number}.parquet") for number in range(count)]
        return datasets.load_dataset("parquet", data_files=files, split="train", streaming=True)

    recipe = Pipeline("p", (Stage("s", [MinhashDedup(threshold=0.5, num_perm=256)]),))
    assert len(list(run(recipe, stream(2), tmp_path / "out", backend=sync))) == 4
    before = {path.name: path.stat().st_mtime_ns for path in (tmp_path / "out" / "s" / "data").iterdir()}
    keys = {path.name: path.stat().st_mtime_ns for path in (tmp_path / "out" / "s" / "keys").iterdir()}
    found = [row["text"] for row in run(recipe, stream(3), tmp_path / "out", backend=sync)]
    assert found == [contents[0][0], "a b c d e f", contents[1][1]]
    after = {path.name: path.stat().st_mtime_ns for path in (tmp_path / "out" / "s" / "data").iterdir()}
    assert len(before.items() & after.items()) == 1
    # Keys of what was there are not computed again.
    assert (
        keys.items()
        <= {path.name: path.stat().st_mtime_ns for path in (tmp_path / "out" / "s" / "keys").iterdir()}.items()
    )


def test_a_million_equal_rows_are_few_pairs(tmp_path: Path) -> None:
    keys = np.tile(np.array([[7, 7]], np.uint64), (1_000_000, 1))
    pairs = ExactDedup().pairs(keys, np.arange(1_000_000, dtype=np.int64))
    assert len(pairs) <= 2_000_000
    rows = datasets.Dataset.from_dict({"text": ["same"] * 100_000})
    operator = PerceptualHashDedup(field="text")
    hashes = rows.map(lambda _: {"text": "00ff00ff00ff00ff"})
    for one, some in ((ExactDedup(), rows), (operator, hashes)):
        recipe = Pipeline("p", (Stage("s", [one]),))
        assert len(run(recipe, some, tmp_path / one.type, backend=create_backend("sync", progress=False))) == 1


def test_what_compares_all_rows_begins_its_stage(tmp_path: Path, sync: Backend) -> None:
    with pytest.raises(
        ConfigError, match=r"exact_dedup_1 compares the rows of the whole dataset.*Begin a stage with it"
    ):
        Stage("s", [Longer(limit=3), ExactDedup()])
    rows = datasets.Dataset.from_dict({"n": [1, 5, 5, 9], "text": list("aabc")})
    stages = (Stage("a", [ExactDedup(), Longer(limit=4)]), Stage("b", [ExactDedup(fields=("n",))]))
    assert run(Pipeline("p", stages), rows, tmp_path, backend=sync)["n"][:] == [5, 9]
    told = str(plan(Pipeline("p", stages), rows, tmp_path))
    assert told.count("the comparison of all keys decides which shards are computed") == 2
    none = run(Pipeline("p", stages), rows.select([]), tmp_path / "none", backend=sync)
    assert len(none) == 0


_SCRIPT = """
import os, sys
from pathlib import Path

import datasets

from factory.test_dedup import SIZES, texts
from safetensors_spark.factory import Pipeline, Stage, run
from safetensors_spark.factory.operators.minhash_dedup import MinhashDedup
from safetensors_spark.pipeline import create_backend

out, left, seen = Path(sys.argv[1]), int(sys.argv[2]), 0

def hook(event, arguments):
    global seen
    if event in ("os.rename", "os.remove", "os.rmdir", "shutil.rmtree") and str(out) in str(arguments[0]):
        seen += 1
        if seen > left:
            os._exit(9)

rows = datasets.Dataset.from_dict({"n": range(200), "text": texts(200)})
sys.addaudithook(hook)
recipe = Pipeline("p", (Stage("s", [MinhashDedup(num_perm=64)]),))
run(recipe, rows, out, backend=create_backend("sync", progress=False), **SIZES)
print(seen, flush=True)
os._exit(0)
"""


def _changes(folder: Path, limit: int) -> int | None:
    command = [sys.executable, "-c", _SCRIPT, str(folder), str(limit)]
    env = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=False, timeout=900, env=env)
    assert done.returncode in (0, 9)
    return int(done.stdout.split()[-1]) if done.returncode == 0 else None


def test_a_run_that_is_killed_equals_an_unbroken_one(tmp_path: Path) -> None:
    changes = _changes(tmp_path / "whole", 1_000_000)
    expected = _files(tmp_path / "whole")
    assert changes is not None
    for part in (3, 5, 7):
        folder = tmp_path / str(part)
        assert _changes(folder, changes * part // 8) is None
        assert _changes(folder, 1_000_000) is not None
        assert _files(folder) == expected
