"""What runs have found, as JSON: `results/<part>.json` has tables by name, each with its machine and its run."""

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from math import log
from pathlib import Path
from statistics import median
from typing import Any, Literal

RESULTS = Path(__file__).parent / "results"

Json = dict[str, Any]


@dataclass(frozen=True)
class Measure:
    """A column of figures.

    Attributes:
        name: The head of the column.
        better: Of two contenders the better one has less of it, or more; ratios are made of none without.
    """

    name: str
    better: Literal["less", "more"] | None = None


SECONDS = Measure("seconds", "less")


@dataclass(frozen=True)
class Result:
    """What one contender has shown.

    Attributes:
        name: As the tables show it.
        values: By the names of measures, a value of each round.
        is_ours: Whether it is this project; else it is an alternative, or the limit.
        aims: The least that ratios to the limit should be, by the names of measures.
    """

    name: str
    values: Mapping[str, Sequence[float]]
    is_ours: bool = True
    aims: Mapping[str, float] = field(default_factory=dict)


@dataclass(frozen=True)
class Table:
    """Contenders side by side.

    Attributes:
        name: In file and page: of letters, digits and hyphens.
        limit: The name of the contender that all are compared with: what the machine can do at all, mostly.
    """

    name: str
    title: str
    measures: Sequence[Measure]
    results: Sequence[Result]
    limit: str | None

    def json(self) -> Json:
        results = [
            {
                "name": one.name,
                "is_ours": one.is_ours,
                "aims": dict(one.aims),
                "values": {name: summary(values) for name, values in one.values.items()},
                "ratios": self.ratios(one),
            }
            for one in self.results
        ]
        measures = [{"name": measure.name, "better": measure.better} for measure in self.measures]
        return {
            "name": self.name,
            "title": self.title,
            "limit": self.limit,
            "measures": measures,
            "results": results,
        }

    @property
    def rounds(self) -> int:
        return max(len(values) for one in self.results for values in one.values.values())

    def ratios(self, one: Result) -> dict[str, dict[str, float]]:
        """By measure, how many times as fast it is as the limit, and if it is ours, as each alternative."""
        others = [
            other
            for other in self.results
            if other.name != one.name and (other.name == self.limit or (one.is_ours and not other.is_ours))
        ]
        return {
            measure.name: {
                other.name: rounded(ratio(one.values[measure.name], other.values[measure.name], measure))
                for other in others
                if measure.name in other.values
            }
            for measure in self.measures
            if measure.better and measure.name in one.values
        }


@dataclass(frozen=True)
class Series:
    """What one kind of work takes as something grows.

    Attributes:
        expected: The exponent that it should not be above: 0 of what does not depend on the size, 1 of what is linear.
        taken: By size, of each round.
        also: By size, what else was measured, by what the page calls it.
    """

    name: str
    expected: float
    taken: Mapping[int, Sequence[float]]
    also: Mapping[int, Mapping[str, float]] = field(default_factory=dict)


@dataclass(frozen=True)
class Growth:
    """Series over sizes of the same thing.

    Attributes:
        of: What grows.
        measure: What the series have taken; other work on the machine changes CPU seconds, those of all cores, least.
    """

    name: str
    title: str
    of: str
    series: Sequence[Series]
    measure: str = "CPU seconds"

    def json(self) -> Json:
        series = [
            {
                "name": one.name,
                "expected": one.expected,
                "exponent": round(exponent({size: median(taken) for size, taken in one.taken.items()}), 2),
                "taken": {str(size): summary(taken) for size, taken in one.taken.items()},
                "also": {
                    str(size): {name: rounded(value) for name, value in found.items()}
                    for size, found in one.also.items()
                },
            }
            for one in self.series
        ]
        return {"name": self.name, "title": self.title, "of": self.of, "measure": self.measure, "series": series}

    @property
    def rounds(self) -> int:
        return max(len(taken) for one in self.series for taken in one.taken.values())


def within_rounds(ones: Sequence[float], others: Sequence[float]) -> float:
    """The median of the ratios within a round: what else the machine did in that round fell on both."""
    return median(one / other for one, other in zip(ones, others, strict=True))


def ratio(ones: Sequence[float], others: Sequence[float], measure: Measure) -> float:
    """How many times as fast the one is as the other: above 1 where it is better."""
    return within_rounds(others, ones) if measure.better == "less" else within_rounds(ones, others)


def exponent(seconds: Mapping[int, float]) -> float:
    """Of the power of the size that fits the seconds best: the slope of their logarithms, by least squares."""
    points = [(log(size), log(taken)) for size, taken in seconds.items()]
    x, y = (sum(ones) / len(points) for ones in zip(*points, strict=True))
    slope: float = sum((a - x) * (b - y) for a, b in points) / sum((a - x) ** 2 for a, _ in points)
    return slope


def summary(values: Sequence[float]) -> Json:
    return {
        "median": rounded(median(values)),
        "least": rounded(min(values)),
        "most": rounded(max(values)),
        "rounds": [rounded(value) for value in values],
    }


def rounded(value: float) -> float:
    return float(f"{value:.4g}")


def record(part: str, tables: Iterable[Table | Growth], run: Json) -> None:
    """Put the tables into the part's file, in the place of those of the same names."""
    path = RESULTS / f"{part}.json"
    kept = {table["name"]: table for table in read(part)} if path.exists() else {}
    kept |= {table.name: table.json() | {"run": run | {"rounds": table.rounds}} for table in tables}
    path.write_text(written({"part": part, "tables": list(kept.values())}))


def written(found: Json) -> str:
    """JSON with what has no other lists or objects in it in a line of its own."""
    text = json.dumps(found, indent=1, ensure_ascii=False)
    for innermost in (r"\[[^\[\]{}]*\]", r"\{[^{}]*\}"):
        text = re.sub(innermost, lambda one: " ".join(one[0].split()), text)
    return text + "\n"


def read(part: str) -> list[Json]:
    tables: list[Json] = json.loads((RESULTS / f"{part}.json").read_text())["tables"]
    return tables
