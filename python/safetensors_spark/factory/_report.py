"""What a run has made: rows by operator, why rows were dropped, how scores lie, and how long it took."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from html import escape
from typing import Any

from safetensors_spark._errors import counted, printable
from safetensors_spark._files.commit.target import open_target
from safetensors_spark.factory._errors import ConfigError
from safetensors_spark.factory._pipeline import PIPELINE
from safetensors_spark.factory._places import place_of
from safetensors_spark.factory._report_files import reading
from safetensors_spark.factory._report_page import page
from safetensors_spark.factory._report_parts import Bucket, OperatorReport, StageReport, Timing
from safetensors_spark.factory._report_rules import rules_of
from safetensors_spark.factory._report_scores import histogram
from safetensors_spark.factory._stage_manifest import MANIFEST, read_manifest
from safetensors_spark.factory._stage_task import DROPPED
from safetensors_spark.factory._timings import read_timings


@dataclass(frozen=True)
class Report:
    """A pipeline's stages, as far as they are made."""

    pipeline: str
    stages: tuple[StageReport, ...]

    def to_json(self) -> str:
        """The report for machines."""
        return json.dumps(asdict(self), indent=1)

    def __repr__(self) -> str:
        rows = "nothing is finished yet"
        if self.stages:
            rows = f"{self.stages[0].rows_in:,} rows in, {self.stages[-1].rows_out:,} out"
        return f"<Report of {printable(self.pipeline)}: {counted(len(self.stages), 'stage')}, {rows}>"

    def _repr_html_(self) -> str:
        # The page has styles of its own.
        return f'<iframe srcdoc="{escape(self.to_html())}" style="width:100%;height:480px;border:0"></iframe>'

    def to_html(self) -> str:
        """The report as one page, which needs no network."""
        return page(self.pipeline, self.stages)


def report(out: str | os.PathLike[str]) -> Report:
    """The report of what `run` has made in a folder.

    Raises `ConfigError` if it is none of a run, and `PipelineError` for a file of it that is missing or damaged.
    """
    place = place_of(out)
    pipeline, names = _told(out, place)
    stages = []
    for name in names:
        folder = f"{place}/{name}"
        with reading(f"{folder}/{MANIFEST}"):
            manifest = read_manifest(folder)
            if manifest is not None:
                stages.append(_stage(folder, manifest))
    return Report(pipeline, tuple(stages))


def _told(out: str | os.PathLike[str], place: str) -> tuple[str, list[str]]:
    """The pipeline's name, and those of its stages."""
    file = f"{place}/{PIPELINE}"
    try:
        content = open_target(place).read(PIPELINE)
    except NotADirectoryError:
        content = None
    except OSError as error:
        raise ConfigError(f"{file} cannot be read: {error.strerror or error}. Make it readable.") from None
    if content is None:
        raise ConfigError(f"{out} is not the folder of a run: it has no {PIPELINE}. Name what `--out` named.") from None
    try:
        told = json.loads(content)
        return str(told["pipeline"]), [str(name) for name in told["stages"]]
    except (ValueError, LookupError, TypeError):
        raise ConfigError(
            f"{file} is damaged: it does not name a pipeline and its stages. Run the pipeline again, which rewrites it "
            "and keeps finished stages."
        ) from None


def _stage(folder: str, manifest: dict[str, Any]) -> StageReport:
    shards = manifest["shards"]
    rules = rules_of(f"{folder}/{DROPPED}", [one["file"] for record in shards for one in record["dropped"]])
    timings = _timings(folder, manifest)
    ids = [one["id"] for one in manifest["config"]]
    counts = [manifest["operators"].get(one, {"rows": 0})["rows"] for one in ids]
    ends = [*counts[1:], manifest["output_rows"]]
    operators = []
    for name, begin, end in zip(ids, counts, ends, strict=True):
        some, others = rules.get(name, ((), 0))
        speed = _speed(timings, name, begin if name == ids[0] else None)
        operators.append(OperatorReport(name, begin, end, some, others, *speed))
    files = [f"{folder}/{name}" for name in manifest["outputs"]]
    scores = [histogram(files, name) for one in manifest.get("scores", {}).values() for name in one] if files else []
    return StageReport(
        manifest["stage"],
        manifest["input_rows"],
        manifest["output_rows"],
        tuple(operators),
        tuple(one for one in scores if one is not None),
        _timing(timings, len(shards)),
        _buckets(manifest),
        tuple(manifest.get("profiles", ())),
    )


def _timings(folder: str, manifest: Mapping[str, Any]) -> dict[str, Any] | None:
    """How long the last run took that has made shards; None if that is not known of what is there."""
    found = read_timings(folder)
    try:
        there = {one["input"] for one in manifest["shards"]}
        if found is None or not {one["input"] for one in found["shards"]} <= there:
            return None
        for one in found["operators"].values():
            float(one["rows"]), float(one["seconds"])
        float(found["seconds"]), float(found["compare_seconds"])
    except (LookupError, TypeError, ValueError, AttributeError):
        # A report of a run does not need it.
        return None
    return found


def _speed(timings: Mapping[str, Any] | None, name: str, compared: int | None) -> tuple[float | None, float | None]:
    """The seconds of an operator, and its rows in a second.

    Args:
        compared: rows of the stage, for its first operator, which may have compared all of them.
    """
    found = None if timings is None else timings["operators"].get(name)
    if timings is None or found is None:
        return None, None
    seconds, rows = found["seconds"], found["rows"]
    if compared is not None and timings["compare_seconds"]:
        # What its tasks do is to leave out the rows that were found.
        seconds, rows = seconds + timings["compare_seconds"], compared
    return seconds, rows / seconds if seconds else None


def _timing(timings: Mapping[str, Any] | None, shards: int) -> Timing | None:
    if timings is None:
        return None
    others = timings["seconds"] - sum(one["seconds"] for one in timings["operators"].values())
    return Timing(len(timings["shards"]), shards, timings["seconds"], max(0.0, others), timings["compare_seconds"])


def _buckets(manifest: Mapping[str, Any]) -> tuple[Bucket, ...]:
    return tuple(
        Bucket(operator, name, **values)
        for operator, buckets in manifest.get("mixtures", {}).items()
        for name, values in buckets.items()
    )
