"""Mixtures whose weights change with the step."""

from __future__ import annotations

import pickle
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import save_file
from torch.utils.data import DataLoader

from safetensors_spark import SafetensorsSparkError
from safetensors_spark.dataset import Curriculum, Mix, mix, open_dataset
from safetensors_spark.torch import BatchDataset

CURRICULUM = Curriculum([(2, {"a": 1, "b": 0}), (6, {"a": 0.5, "b": 0.5}), (8, {"a": 0, "b": 3})])


def _mixed(folder: Path, curriculum: Curriculum = CURRICULUM) -> Mix:
    for name, first in (("a", 0), ("b", 1000)):
        if not (folder / name).exists():
            (folder / name).mkdir()
            save_file({"n": torch.arange(first, first + 100)}, folder / name / "0.safetensors")
    pairs = [(open_dataset(folder / name), curriculum[name]) for name in ("a", "b")]
    return mix(pairs, seed=1, step_samples=20)


def _of_b(batches: Any) -> list[int]:
    return [int((batch["n"] >= 1000).sum()) for batch in batches]


def test_steps_have_the_weights_of_the_curriculum(tmp_path: Path) -> None:
    assert _of_b(BatchDataset(_mixed(tmp_path), 20)) == [0] * 6 + [10] * 2 + [20] * 2
    loader: DataLoader[Any] = DataLoader(
        BatchDataset(_mixed(tmp_path), 20), batch_size=None, num_workers=2, multiprocessing_context="spawn"
    )
    assert _of_b(loader) == [0] * 6 + [10] * 2 + [20] * 2


def test_a_line_is_between_two_steps(tmp_path: Path) -> None:
    linear = Curriculum([(0, {"a": 1, "b": 0}), (10, {"a": 0, "b": 1})], interpolate="linear")
    assert _of_b(BatchDataset(_mixed(tmp_path, linear), 20)) == [0, 2, 4, 6, 8, 10, 12, 14, 16, 18]
    weight = pickle.loads(pickle.dumps(linear["b"]))
    assert [weight(step) for step in (0, 5, 10, 99)] == [0, 0.5, 1, 1]


def test_a_state_is_of_one_curriculum(tmp_path: Path) -> None:
    batches = BatchDataset(_mixed(tmp_path), 20)
    iterator = iter(batches)
    begun = _of_b(next(iterator) for _ in range(7))
    state = batches.state_dict()
    again = BatchDataset(_mixed(tmp_path), 20)
    again.load_state_dict(state)
    assert begun + _of_b(again) == [0] * 6 + [10] * 2 + [20] * 2
    other = BatchDataset(_mixed(tmp_path, Curriculum([(0, {"a": 1, "b": 1})])), 20)
    with pytest.raises(SafetensorsSparkError):
        other.load_state_dict(state)


@pytest.mark.parametrize(
    ("points", "interpolate", "said"),
    [
        ([], "step", "given no weights"),
        ([(0, {"a": 1}), (0, {"a": 2})], "step", "step 0 behind step 0"),
        ([(0, {"a": 1}), (5, {"b": 2})], "step", "weights of a at step 0, but of b at step 5"),
        ([(0, {"a": -1})], "step", "a weight of step 0 is -1.0"),
        ([(0, {"a": 0})], "step", "weights of step 0 are all 0"),
        ([(0, {"a": 1})], "cubic", "expected 'step' or 'linear'"),
        ([0], "step", "expected pairs of a step and weights"),
    ],
)
def test_what_is_no_curriculum_is_named(points: Any, interpolate: Any, said: str) -> None:
    with pytest.raises((TypeError, ValueError), match=said):
        Curriculum(points, interpolate)


def test_a_name_without_weight_is_named() -> None:
    with pytest.raises(KeyError, match="no weight of 'c', only of a, b"):
        CURRICULUM["c"]
