"""What notebooks show of datasets and stores."""

from __future__ import annotations

import io
import re
import shutil
from base64 import b64decode
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import numpy as np
from PIL import Image

from safetensors_spark.dataset import open_dataset, open_store, write_dataset


class _Tags(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.tags: list[str] = []

    def handle_starttag(self, tag: str, _: Any) -> None:
        self.tags.append(tag)


def _tags(html: str) -> set[str]:
    parser = _Tags()
    parser.feed(html)
    return set(parser.tags)


def _images(html: str) -> list[Any]:
    found = re.findall(r"base64,([^\"]+)", html)
    return [np.array(Image.open(io.BytesIO(b64decode(one)))) for one in found]


def test_a_dataset_shows_columns_and_first_samples(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    gray, color = rng.integers(0, 256, (7, 8, 9), np.uint8), rng.integers(0, 256, (7, 3, 8, 9), np.uint8)
    file = io.BytesIO()
    Image.fromarray(gray[0]).save(file, "png")
    rows = {
        "gray": gray,
        "color": color,
        "file": [file.getvalue()] * 7,
        "<script>": ["<img onerror=x>\x1b[2J"] * 7,
        "x": np.arange(70, dtype=np.float32).reshape(7, 10),
    }
    write_dataset(rows, tmp_path / "d", batch_size=3)
    html = open_dataset(tmp_path / "d")._repr_html_()
    assert _tags(html) == {"div", "p", "table", "tr", "th", "td", "img"}
    assert "&lt;script&gt; text" in html
    assert "\x1b" not in html
    assert "float32 [10]: 10.0, 11.0, 12.0, 13.0, 14.0, 15.0, …" in html
    assert html.count("<tr>") == 6
    images = _images(html)
    assert len(images) == 15
    np.testing.assert_array_equal(images[0], gray[0])
    np.testing.assert_array_equal(images[1], color[0].transpose(1, 2, 0))


def test_wide_long_and_empty_datasets_are_short(tmp_path: Path) -> None:
    wide = {f"column {number}": [f"{'long ' * 10_000}"] * 3 for number in range(60)}
    write_dataset(wide, tmp_path / "wide", batch_size=3)
    html = open_dataset(tmp_path / "wide")._repr_html_()
    assert "40 more columns" in html
    assert len(html) < 40_000
    write_dataset({"x": np.zeros((0, 2), np.float32)}, tmp_path / "empty", batch_size=3)
    assert "0 samples" in open_dataset(tmp_path / "empty")._repr_html_()


def test_what_is_gone_is_shown_without_rows(tmp_path: Path) -> None:
    write_dataset({"x": np.zeros((4, 2), np.float32)}, tmp_path / "d", batch_size=3)
    write_dataset({"k": ["<b>", "c"], "x": np.ones((2, 2), np.float32)}, tmp_path / "s", name_col="k")
    dataset, store = open_dataset(tmp_path / "d"), open_store(tmp_path / "s")
    assert "&lt;b&gt;" in store._repr_html_()
    assert "float32 [2]: 1.0, 1.0" in store._repr_html_()
    shutil.rmtree(tmp_path / "d")
    assert "its rows cannot be read" in dataset._repr_html_()
    assert "4 samples" in repr(dataset)
    shutil.rmtree(tmp_path / "s")
    assert "2 rows" in repr(store)
