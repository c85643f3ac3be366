"""docs/benchmarks.md: its prose is written by hand, and what stands between `results` and `end` comes from the JSON.

`python -m benchmarks.page` writes it anew, and the plots.
"""

import re
from datetime import date
from pathlib import Path
from typing import Any

from benchmarks import plots
from benchmarks.results import RESULTS, Json, read

DOCS = Path(__file__).parents[1] / "docs"
PAGE, PLOTS = DOCS / "benchmarks.md", DOCS / "plots"

_REGION = re.compile(r"(<!-- results: (\S+) (\S+) -->\n).*?(<!-- end -->)", re.DOTALL)


def write() -> None:
    PAGE.write_text(filled(with_places(PAGE.read_text())))
    PLOTS.mkdir(exist_ok=True)
    for old in PLOTS.glob("*.svg"):
        old.unlink()
    for name, svg in drawn().items():
        (PLOTS / name).write_text(svg)


def tables() -> dict[tuple[str, str], Json]:
    """All that were recorded, by part and name."""
    return {(path.stem, table["name"]): table for path in sorted(RESULTS.glob("*.json")) for table in read(path.stem)}


def drawn() -> dict[str, str]:
    """The plots by the names of their files; a table without ratios has none."""
    found = {f"{part}-{name}.svg": plots.plot(table) for (part, name), table in tables().items()}
    return {name: svg for name, svg in found.items() if svg}


def with_places(text: str) -> str:
    """The page with a place for each table that has none yet: behind the last one of its part, or at the end."""
    for part, name in tables():
        found = list(_REGION.finditer(text))
        if (part, name) not in [(one[2], one[3]) for one in found]:
            at = max((one.end() for one in found if one[2] == part), default=len(text.rstrip()))
            text = f"{text[:at]}\n\n<!-- results: {part} {name} -->\n<!-- end -->{text[at:]}"
    return text


def filled(text: str) -> str:
    """The page with what the JSON says now."""
    recorded = tables()

    def region(found: re.Match[str]) -> str:
        part, name = found[2], found[3]
        if (part, name) not in recorded:
            raise ValueError(f"docs/benchmarks.md asks for `{part} {name}`, which benchmarks/results has not")
        table = recorded.pop((part, name))
        pieces = [markdown(table), origin(table["run"])]
        if plots.plot(table):
            pieces.append(f"![{table['title']}: {plots.subject(table)}](plots/{part}-{name}.svg)")
        return found[1] + "\n" + "\n\n".join(pieces) + "\n\n" + found[4]

    text = _REGION.sub(region, text)
    if recorded:
        names = ", ".join(f"`{part} {name}`" for part, name in recorded)
        raise ValueError(f"docs/benchmarks.md has no place for {names}: run `python -m benchmarks.page`")
    return text


def markdown(table: Json) -> str:
    """The table itself."""
    return _growth(table) if "series" in table else _contenders(table)


def origin(run: Json) -> str:
    """One line: where and how the figures were made."""
    machine = run["machine"]
    where = f"{machine['cores']} cores of an {machine['cpu']}"
    where += "".join(f", {machine[key]}" for key in ("memory", "system") if key in machine)
    if machine.get("load", 0) > 1:
        where += f", with other work (load average {machine['load']:g})"
    versions = ", ".join(f"{name} {version}" for name, version in run["versions"].items())
    when = date.fromisoformat(run["date"])
    rounds = f", {run['rounds']} rounds" if run["rounds"] > 1 else ", one round"
    what = f"`{run['command']}`{rounds}, {when.day} {when:%B %Y}, commit {run['commit']}"
    return f"<small>{what}. {where}. {versions}.</small>" if versions else f"<small>{what}. {where}.</small>"


def _contenders(table: Json) -> str:
    base = compared_with(table)
    heads, lines = [table["title"]], []
    for measure in table["measures"]:
        heads.append(measure["name"])
        if measure["better"] and base:
            heads.append(f"x {base}")
    for one in table["results"]:
        cells = [one["name"]]
        for measure in table["measures"]:
            values = one["values"].get(measure["name"])
            cells.append(spread(values) if values else "")
            if measure["better"] and base:
                cells.append(_ratio_cell(one, measure["name"], base))
        lines.append(cells)
    return _rows(heads, lines)


def compared_with(table: Json) -> str | None:
    """Whom the table's columns of ratios compare with: the limit, or the first alternative; others are in the plot."""
    others = [one["name"] for one in table["results"] if not one["is_ours"]]
    return table["limit"] or next(iter(others), None)


def _ratio_cell(one: Json, measure: str, base: str) -> str:
    if one["name"] == base:
        return "1"
    ratio = one["ratios"].get(measure, {}).get(base)
    aim = one["aims"].get(measure)
    return (number(ratio) if ratio else "") + (f" (aim {aim:.2g})" if ratio and aim else "")


def _growth(table: Json) -> str:
    sizes = [int(size) for size in table["series"][0]["taken"]]
    heads = [f"{table['title']}: {table['measure']} at", *(f"{size:,}" for size in sizes), "exponent", "expected"]
    times = [
        [one["name"], *map(spread, one["taken"].values()), f"{one['exponent']:.2f}", f"{one['expected']:g}"]
        for one in table["series"]
    ]
    written = _rows(heads, times)
    lines = [
        [f"{one['name']}: {name}", *(number(found[name]) for found in one["also"].values())]
        for one in table["series"]
        for name in next(iter(one["also"].values()), ())
    ]
    return written + ("\n\n" + _rows(["", *(f"{size:,}" for size in sizes)], lines) if lines else "")


def _rows(heads: list[str], lines: list[list[str]]) -> str:
    rows = [heads, ["---"] * len(heads), *lines]
    return "\n".join(f"| {' | '.join(row)} |" for row in rows)


def spread(values: Any) -> str:
    """The median, and the least and the most where they are others."""
    middle, least, most = (number(values[name]) for name in ("median", "least", "most"))
    return middle if least == most else f"{middle} ({least}-{most})"


def number(value: float) -> str:
    """With two or three digits that count, and all of those before the point."""
    for least, form in ((100, ",.0f"), (10, ".1f"), (0.1, ".2f")):
        if abs(value) >= least:
            return f"{value:{form}}"
    return f"{value:.2g}"


if __name__ == "__main__":
    write()
