"""Loads rows of different lengths: 300,000 sequences of tokens, and JPEG files as they are."""

import shutil
from collections.abc import Iterator
from pathlib import Path

from benchmarks.harness import Options
from benchmarks.loaders import benchmark
from benchmarks.results import Table
from benchmarks.row_contenders import CONTENDERS
from benchmarks.rows import jpegs, sequences

# As many rows as `--rows` has by default embeddings; other numbers give a share of these.
_ROWS, _SEQUENCES, _JPEGS = 524288, 300_000, 20_000


def run(options: Options, folder: Path) -> Iterator[Table]:
    for kind, count in ((sequences, _SEQUENCES), (jpegs, _JPEGS)):
        place = folder / kind.__name__
        place.mkdir()
        rows = kind(max(1024, count * options.rows // _ROWS), place)
        rows.make()
        yield from benchmark(rows, CONTENDERS, options.rounds)
        shutil.rmtree(place)
