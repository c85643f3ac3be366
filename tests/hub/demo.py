"""The demo's second part: digits are published to a server of the Hub's API, and a classifier is trained from there.

    python -m hub.demo demo/digits

The server is the one of the tests, so that the demo needs neither an account nor a network. All else is as with the
Hub: the command that publishes, and in `train_digits` the URLs.
"""

import subprocess
import sys
import tempfile
from collections import Counter
from pathlib import Path

import numpy as np

import hub
from safetensors_spark.dataset import open_dataset, write_dataset

_TEST = 300


def run(folder: Path) -> int:
    """Publish and train. The exit code is 0 if the digits came back as they were and the classifier has learnt."""
    with tempfile.TemporaryDirectory() as name, hub.running(Path(name)) as server:
        environment = {**server.environment(), "SAFETENSORS_SPARK_CACHE": f"{name}/cache"}
        parts = _split(folder, Path(name))
        print(
            "\nThe digits go to a server of the Hub's API on this machine, and a classifier is trained from there.\n",
            flush=True,
        )
        for part in parts:
            publish = ["safetensors_spark", "publish", "dataset", str(part), "me/digits", "--path-in-repo", part.name]
            subprocess.run([sys.executable, "-m", *publish], env=environment, check=True)
        server.forget()
        # A process of its own: the Hub's client reads its environment when it is imported.
        train = [sys.executable, "-m", "hub.train_digits", "hf://datasets/me/digits", *map(str, parts)]
        code = subprocess.run(train, env=environment).returncode
        downloads = Counter(path for _, path in server.counts().elements() if path.endswith(".safetensors"))
        print(f"{len(downloads)} shards were downloaded, each {'once' if set(downloads.values()) == {1} else 'AGAIN'}.")
        return code


def _split(folder: Path, place: Path) -> list[Path]:
    """Datasets for training and for the test, of all writers of digits: scikit-learn has them one after the other."""
    digits = open_dataset(folder)
    order = np.random.default_rng(0).permutation(len(digits))
    for name, numbers in (("train", order[_TEST:]), ("test", order[:_TEST])):
        write_dataset([digits.take(numbers)], place / name, batch_size=256)
    return [place / "train", place / "test"]


if __name__ == "__main__":
    sys.exit(run(Path(sys.argv[1])))
