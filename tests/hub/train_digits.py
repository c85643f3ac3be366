"""Trains a linear classifier of digits with batches from the Hub, as a user would: part of the demo.

    python -m hub.train_digits hf://datasets/me/digits TRAIN TEST

`TRAIN` and `TEST` are the folders that were published, to compare with.
"""

import sys

import numpy as np

from safetensors_spark._commands.tables import Table, show
from safetensors_spark.dataset import Array, Batch, Dataset, open_dataset

_EPOCHS, _BATCH, _RATE = 20, 32, 0.5
# One that has learnt nothing is right one time in ten.
_EXPECTED = 0.9


def run(url: str, *published: str) -> int:
    """Train, print what came of it, and return the exit code: 0 if all is equal and the classifier has learnt."""
    train, test = (open_dataset(f"{url}/{name}") for name in ("train", "test"))
    weights, learnt = np.zeros((65, 10)), [("0", f"{_right(test, np.zeros((65, 10))):.1%}")]
    batches = train.batches(_BATCH, shuffle=True)
    for epoch in range(1, _EPOCHS + 1):
        for batch in batches:
            wrong = _probabilities(batch, weights) - np.eye(10)[batch["label"]]
            weights -= _RATE / len(wrong) * _inputs(batch).T @ wrong
        if epoch % 5 == 0:
            learnt.append((str(epoch), f"{_right(test, weights):.1%}"))
    show(Table(f"A linear classifier, trained with {train}", ("epochs", "right of the test"), learnt))
    equal = all(map(_equal, (train, test), map(open_dataset, published)))
    print("Every published digit is the one that was written." if equal else "DIFFERENT: published digits are others.")
    if not (good := _right(test, weights) >= _EXPECTED):
        print(f"The classifier has not learnt: expected {_EXPECTED:.0%}.")
    return 0 if equal and good else 1


def _inputs(batch: Batch) -> Array:
    images = batch["image"].reshape(-1, 64) / 16
    return np.column_stack([images, np.ones(len(images))])


def _probabilities(batch: Batch, weights: Array) -> Array:
    scores: Array = np.exp(_inputs(batch) @ weights)
    scores /= scores.sum(1, keepdims=True)
    return scores


def _right(test: Dataset, weights: Array) -> float:
    batch = test[:]
    return float((_probabilities(batch, weights).argmax(1) == batch["label"]).mean())


def _equal(one: Dataset, other: Dataset) -> bool:
    return all(np.array_equal(one[name], other[name]) for name in ("image", "label"))


if __name__ == "__main__":
    sys.exit(run(*sys.argv[1:]))
