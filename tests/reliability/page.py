"""Writes docs/reliability.md from docs/reliability.json: `python -m reliability.page`."""

from collections import defaultdict
from collections.abc import Iterator, Mapping

from reliability.environments import CHECKS
from reliability.results import RESULTS, Result, results

PAGE = RESULTS.with_suffix(".md")

_HEAD = """# Reliability

What was done to this project on purpose, how often, and what held. `make attack` and `make soak` do it again and record
it; each has a short form in `make test`. A claim that does not hold ends them with an error, so what is recorded here
held each time. This page is made of `docs/reliability.json` by `python -m reliability.page`.
"""

_KINDS = {
    "attack": (
        "Attacks",
        "Files, options and names that nobody should give, and files that change while they are read. Each gives a\n"
        "clear error or what the official library gives.",
    ),
    "soak": ("Soaks", "Ordinary work for a long time, and work that is interrupted over and over."),
}
_DOORS = {
    "python": "Python and the command",
    "spark": "Spark",
    "publish": "Publishing",
    "pipeline": "Pipelines",
    "factory": "The factory",
}


def page(found: Mapping[str, Result]) -> str:
    sections = (line for kind in _KINDS for line in _of_kind(kind, found))
    return "\n".join([_HEAD, *sections, *_not_recorded(found), *_runs(found), ""])


def _of_kind(kind: str, found: Mapping[str, Result]) -> Iterator[str]:
    title, what = _KINDS[kind]
    yield from (f"## {title}", "", what, "")
    for environment, door in _DOORS.items():
        rows = {name: one for name, one in found.items() if (one["kind"], one["environment"]) == (kind, environment)}
        if rows:
            yield from (
                f"### {title}: {door}",
                "",
                "| | what is done | times | what holds | seen |",
                "|---|---|---:|---|---|",
            )
            for name, one in rows.items():
                yield f"| `{name}` | {one['what']} | {one['attempts']:,} | {one['holds']} | {one['seen']} |"
            yield ""


def _not_recorded(found: Mapping[str, Result]) -> Iterator[str]:
    """The checks whose long form nobody has recorded."""
    if missing := [check for check in CHECKS if check.name not in found]:
        yield from ("## Not recorded yet", "", "| | where | what is done | what holds |", "|---|---|---|---|")
        for check in missing:
            yield f"| `{check.name}` | {_DOORS[check.environment]} | {check.what} | {check.holds} |"
        yield ""


def _runs(found: Mapping[str, Result]) -> Iterator[str]:
    """On which day, machine and commit: most checks share them."""
    runs = defaultdict(list)
    for name, one in found.items():
        runs[one["date"], one["machine"], one["commit"]].append((name, one["seconds"]))
    yield from ("## Runs", "", "| day | machine | commit | checks, and seconds of each |", "|---|---|---|---|")
    for (date, machine, commit), checks in sorted(runs.items()):
        yield f"| {date} | {machine} | `{commit}` | {', '.join(f'`{name}` {s:,.0f}' for name, s in checks)} |"


if __name__ == "__main__":
    PAGE.write_text(page(results()))
