"""What a run has made: rows by operator, why rows were dropped, and how scores lie; read from its files."""

from __future__ import annotations

import json
import os
import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa  # type: ignore[import-untyped]
import pyarrow.parquet as pq  # type: ignore[import-untyped]

from safetensors_spark._errors import printable
from safetensors_spark.factory._errors import ConfigError
from safetensors_spark.factory._fields import DROPPED_BECAUSE, DROPPED_BY, PREFIX
from safetensors_spark.factory._report_page import page
from safetensors_spark.factory._report_parts import Histogram, OperatorReport, Rule, StageReport
from safetensors_spark.factory._stage_manifest import read_manifest
from safetensors_spark.factory._stage_task import DROPPED

PIPELINE = "pipeline.json"

_EXAMPLES, _SHOWN = 3, 120
_BINS, _VALUES = 20, 10


@dataclass(frozen=True)
class Report:
    """A pipeline's stages, as far as they are made."""

    pipeline: str
    stages: tuple[StageReport, ...]

    def to_json(self) -> str:
        """The report for machines."""
        return json.dumps(asdict(self), indent=1)

    def to_html(self) -> str:
        """The report as one page, which needs no network."""
        return page(self.pipeline, self.stages)


def report(out: str | os.PathLike[str]) -> Report:
    """The report of what `run` has made in a folder. Raises `ConfigError` if it is none of a run."""
    folder = Path(out).expanduser()
    try:
        told = json.loads((folder / PIPELINE).read_bytes())
    except (OSError, ValueError):
        raise ConfigError(f"{out} is not the folder of a run: it has no {PIPELINE}. Name what `--out` named.") from None
    stages = []
    for name in told["stages"]:
        manifest = read_manifest(str(folder / name))
        if manifest is not None:
            stages.append(_stage(folder / name, manifest))
    return Report(told["pipeline"], tuple(stages))


def _stage(folder: Path, manifest: dict[str, Any]) -> StageReport:
    rules = _rules(folder, [one["file"] for record in manifest["shards"] for one in record["dropped"]])
    ids = [one["id"] for one in manifest["config"]]
    counts = [manifest["operators"].get(one, {"rows": 0})["rows"] for one in ids]
    ends = [*counts[1:], manifest["output_rows"]]
    operators = [OperatorReport(*row, tuple(rules.get(row[0], ()))) for row in zip(ids, counts, ends, strict=True)]
    files = [str(folder / name) for name in manifest["outputs"]]
    scores = [_histogram(files, name) for one in manifest.get("scores", {}).values() for name in one] if files else []
    found = tuple(one for one in scores if one is not None)
    return StageReport(manifest["stage"], manifest["input_rows"], manifest["output_rows"], tuple(operators), found)


def _rules(folder: Path, files: Sequence[str]) -> dict[str, list[Rule]]:
    """By operator, why rows were dropped, the most frequent reason first."""
    rows: Counter[tuple[str, str]] = Counter()
    examples: dict[tuple[str, str], list[str]] = {}
    for file in files:
        for batch in pq.ParquetFile(folder / DROPPED / file).iter_batches(4096):
            # What is shown of a row is its first text.
            texts = [one.name for one in batch.schema if _is_text(one.type) and not one.name.startswith(PREFIX)]
            for place, (name, reason) in enumerate(
                zip(batch.column(DROPPED_BY).to_pylist(), batch.column(DROPPED_BECAUSE).to_pylist(), strict=True)
            ):
                key = name, _rule_of(reason)
                rows[key] += 1
                some = examples.setdefault(key, [])
                if len(some) < _EXAMPLES:
                    text = batch.column(texts[0])[place].as_py() if texts else None
                    some.append(f"{reason} | {_short(text)}" if text else reason)
    found: dict[str, list[Rule]] = {}
    for (name, reason), count in rows.most_common():
        found.setdefault(name, []).append(Rule(reason, count, tuple(examples[name, reason])))
    return found


def _rule_of(reason: str) -> str:
    if reason.startswith("duplicate of "):
        return "duplicate"
    return reason.partition(":")[0]


def _short(text: str) -> str:
    # What would move a terminal's cursor, or turn a page's text around, is shown as its number.
    line = printable(re.sub(r"\s+", " ", text[: 4 * _SHOWN]).strip())
    return line if len(line) <= _SHOWN else f"{line[:_SHOWN]}…"


def _is_text(kind: pa.DataType) -> bool:
    return bool(pa.types.is_string(kind) or pa.types.is_large_string(kind))


def _histogram(files: Sequence[str], name: str) -> Histogram | None:
    """Of all values of a field, some at a time; None for one of another type than numbers, texts and truth values."""
    kind = pq.read_schema(files[0]).field(name).type
    if _is_text(kind) or pa.types.is_boolean(kind):
        return _of_texts(files, name)
    if not (pa.types.is_integer(kind) or pa.types.is_floating(kind)):
        return None
    least, most, nulls = np.inf, -np.inf, 0
    for values, missing in _numbers(files, name):
        nulls += missing
        if len(values):
            least, most = min(least, values.min()), max(most, values.max())
    if least > most:
        return Histogram(name, (), (), nulls)
    # By halves: the range of the largest numbers is no number.
    edges = np.linspace(least / 2, most / 2, _BINS + 1) * 2 if most > least else np.array([least, np.inf])
    counts = np.zeros(len(edges) - 1, np.int64)
    for values, _ in _numbers(files, name):
        counts += np.histogram(values, edges)[0]
    labels = [f"{edge:,.0f}" if abs(edge) >= 1000 else f"{edge:.4g}" for edge in edges[:-1]]
    return Histogram(name, tuple(labels), tuple(counts.tolist()), nulls)


def _numbers(files: Sequence[str], name: str) -> Iterator[tuple[Any, int]]:
    """Finite values, and how many are null or not finite."""
    for file in files:
        for batch in pq.ParquetFile(file).iter_batches(65_536, columns=[name]):
            values = batch.column(0).drop_null().to_numpy(zero_copy_only=False).astype(np.float64)
            finite = values[np.isfinite(values)]
            yield finite, batch.num_rows - len(finite)


def _of_texts(files: Sequence[str], name: str) -> Histogram:
    counts: Counter[Any] = Counter()
    for file in files:
        for batch in pq.ParquetFile(file).iter_batches(65_536, columns=[name]):
            counts.update(batch.column(0).to_pylist())
    nulls = counts.pop(None, 0)
    # Equal counts in the order of the texts, so that a report is a function of the files.
    most = sorted(counts.items(), key=lambda one: (-one[1], str(one[0])))[:_VALUES]
    return Histogram(name, tuple(_short(str(value)) for value, _ in most), tuple(count for _, count in most), nulls)
