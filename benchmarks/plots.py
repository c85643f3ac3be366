"""Plots as SVG: bars of ratios, and lines of growth."""

from collections.abc import Sequence
from math import ceil, floor, log10

from benchmarks.results import Json
from benchmarks.svg import DAY, LINE, MARGIN, WIDTH, heading, key, plain, svg, text

# Where bars begin, and where what they say begins.
BARS, SAYS = 164, 362
BAR, GAP = 10, 3
# Where the plot of growth has its axes.
LEFT, HIGH = 56, 220


def plot(table: Json) -> str | None:
    """None of a table that has no ratios."""
    if "series" in table:
        return lines(table)
    return bars(table) if _others(table) else None


def subject(table: Json) -> str:
    """What the plot shows, in a line."""
    if "series" in table:
        return f"{table['measure']} over {table['of']}, both logarithmic"
    others = _others(table)
    if len(others) == 1:
        return f"times as fast as {plain(others[0])}"
    limit = f"{plain(table['limit'])} (limit) and " if table["limit"] else ""
    return f"times as fast as {limit}alternatives"


def bars(table: Json) -> str:
    """For each other contender a bar of each of ours: to the right of the line at 1 where it is faster."""
    others, ours = _others(table), [one["name"] for one in table["results"] if one["is_ours"]]
    measures = [measure["name"] for measure in table["measures"] if measure["better"]]
    of = {one["name"]: one["ratios"] for one in table["results"]}
    ratios = {(m, a, b): of[a].get(m, {}).get(b) for m in measures for a in ours for b in others}
    scale = _Scale([ratio for ratio in ratios.values() if ratio])
    parts, y = heading(table["title"], subject(table)), MARGIN + 2 * LINE + 16
    # With one other, or more of ours than there are colours, bars have names of their own.
    is_named = len(others) == 1 or len(ours) > len(DAY[1])
    if not is_named and len(ours) > 1:
        for place, name in enumerate(ours):
            parts += key(place, y, name)
            y += LINE
    for measure in measures:
        heads = others if is_named else [""]
        for other in heads:
            head = " ".join([measure] * (len(measures) > 1) + [f"beside {other}"] * (len(heads) > 1))
            if head:
                parts.append(text(MARGIN, y + 8, head, "strong"))
                y += LINE + 6
            top = y
            named = [(a, [(a, other)]) for a in ours]
            for label, pairs in named if is_named else [(b, [(a, b) for a in ours]) for b in others]:
                bars_of = [(ours.index(a) * (not is_named), r) for a, b in pairs if (r := ratios[measure, a, b])]
                if not bars_of:
                    continue
                parts.append(text(BARS - 8, y + len(bars_of) * (BAR + GAP) / 2 + 2.5, label, "end"))
                for place, ratio in bars_of:
                    parts += [scale.bar(place, ratio, y), text(SAYS, y + 9, f"{_short(ratio)} x", "light")]
                    y += BAR + GAP
                y += 7
            parts.append(f'<line class="one" x1="{scale.one:.1f}" x2="{scale.one:.1f}" y1="{top - 3}" y2="{y - 5}"/>')
            y += 4
    parts.append(text(scale.one, y + 8, "1 x (as fast)", "light middle"))
    return svg(parts, y + 8 + MARGIN, table["title"])


class _Scale:
    """Logarithmic, with 1 in it."""

    def __init__(self, ratios: Sequence[float]) -> None:
        self.low = min(-0.05, *(log10(ratio) for ratio in ratios), 0) - 0.05
        high = max(0.05, *(log10(ratio) for ratio in ratios)) + 0.02
        self.unit = (SAYS - 8 - BARS) / (high - self.low)
        self.one = self.at(1)

    def at(self, ratio: float) -> float:
        return BARS + (log10(ratio) - self.low) * self.unit

    def bar(self, place: int, ratio: float, y: float) -> str:
        begin, end = sorted((self.one, self.at(ratio)))
        width = max(end - begin, 1)
        return f'<rect class="f{place % 6}" x="{begin:.1f}" y="{y}" width="{width:.1f}" height="{BAR}" rx="1.5"/>'


def lines(table: Json) -> str:
    """Seconds over sizes, both logarithmic, and the exponent of each."""
    sizes = [int(size) for size in table["series"][0]["taken"]]
    all_seconds = [found["median"] for one in table["series"] for found in one["taken"].values()]
    low, high = floor(log10(min(all_seconds))), ceil(log10(max(all_seconds)))
    high += high == low
    top, right = MARGIN + 2 * LINE + 6, WIDTH - MARGIN - 14

    def at(size: float, seconds: float) -> tuple[float, float]:
        across = log10(size / sizes[0]) / log10(sizes[-1] / sizes[0])
        return LEFT + 10 + across * (right - LEFT - 10), top + HIGH * (high - log10(seconds)) / (high - low)

    parts = heading(table["title"], subject(table))
    for power in range(low, high + 1):
        y = at(sizes[0], 10.0**power)[1]
        parts.append(f'<line class="rule" x1="{LEFT}" x2="{right + 8}" y1="{y:.1f}" y2="{y:.1f}"/>')
        parts.append(text(LEFT - 6, y + 4, _time(10.0**power), "light end"))
    for size in sizes:
        parts.append(text(at(size, 1)[0], top + HIGH + 16, _count(size), "light middle"))
    y = top + HIGH + 38
    for place, one in enumerate(table["series"]):
        points = [at(int(size), found["median"]) for size, found in one["taken"].items()]
        path = " ".join(f"{x:.1f},{y:.1f}" for x, y in points)
        parts.append(f'<polyline class="s{place % 6}" points="{path}"/>')
        parts += [f'<circle class="f{place % 6}" cx="{x:.1f}" cy="{y:.1f}" r="3"/>' for x, y in points]
        parts += key(place, y, one["name"])
        parts.append(text(WIDTH - MARGIN, y, f"exponent {one['exponent']:.2f}", "light end"))
        y += LINE
    return svg(parts, y - LINE + MARGIN, table["title"])


def _others(table: Json) -> list[str]:
    """Whom ours have ratios to: the limit first."""
    ours = [one for one in table["results"] if one["is_ours"]]
    found = [other for one in ours for ratios in one["ratios"].values() for other in ratios]
    return sorted(dict.fromkeys(found), key=lambda name: name != table["limit"])


def _short(ratio: float) -> str:
    if ratio >= 100:
        return f"{ratio:,.0f}"
    return f"{ratio:.1f}" if ratio >= 10 else f"{ratio:.2f}" if ratio >= 0.1 else f"{ratio:.1g}"


def _time(seconds: float) -> str:
    for unit, size in (("s", 1.0), ("ms", 1e-3), ("µs", 1e-6)):
        if seconds >= size * 0.999:
            return f"{seconds / size:,.0f} {unit}"
    return f"{seconds * 1e9:.0f} ns"


def _count(size: int) -> str:
    for unit, least in (("M", 1_000_000), ("k", 1_000)):
        if size >= least:
            return f"{size / least:.3g}{unit}"
    return str(size)
