"""A report as a page of HTML: tables, and plots as SVG. What comes from rows is text, whatever it looks like."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from html import escape

from safetensors_spark.factory._report_parts import Bucket, Histogram, OperatorReport, StageReport
from safetensors_spark.factory._report_words import BUCKET_COLUMNS, bucket_cells, speed_of, timing_text

_STYLE = """
:root { color-scheme: light dark; --bar: #3b82c4; --line: #8884; --dim: #777; }
body { font: 15px/1.5 system-ui, sans-serif; max-width: 60rem; margin: 2rem auto; padding: 0 1rem; }
h1, h2 { line-height: 1.2; } h2 { margin-top: 2.5rem; border-top: 1px solid var(--line); padding-top: 1rem; }
.wide { overflow-x: auto; } table { border-collapse: collapse; width: 100%; }
th, td { text-align: left; padding: .25rem .75rem .25rem 0; border-bottom: 1px solid var(--line); vertical-align: top; }
td.number, th.number { text-align: right; font-variant-numeric: tabular-nums; white-space: nowrap; }
.example { color: var(--dim); font-size: .85rem; overflow-wrap: anywhere; }
.why { min-width: 15rem; } figure { margin: 0; min-width: 0; }
.plots { display: grid; gap: 1.5rem; grid-template-columns: repeat(auto-fill, minmax(min(18rem, 100%), 1fr)); }
svg { width: 100%; height: auto; } rect { fill: var(--bar); }
text { fill: currentColor; font: 9px system-ui, sans-serif; }
"""


# Letters of a label, and how wide one is.
_LABEL, _LETTER = 28, 5.6


def page(pipeline: str, stages: Sequence[StageReport]) -> str:
    """The whole page."""
    name = escape(pipeline)
    body = "\n".join(part for stage in stages for part in _stage(stage)) or "<p>No stage is complete yet.</p>"
    return (
        f'<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n<title>{name}</title>\n'
        f'<meta name="viewport" content="width=device-width, initial-scale=1">\n<style>{_STYLE}</style>\n</head>\n'
        f"<body>\n<h1>{name}</h1>\n{body}\n</body>\n</html>\n"
    )


def _stage(stage: StageReport) -> Iterator[str]:
    share = f", {stage.rows_out / stage.rows_in:.1%}" if stage.rows_in else ""
    yield f"<h2>{escape(stage.name)}</h2>"
    yield f"<p>{stage.rows_in:,} rows in, {stage.rows_out:,} rows out{share}.</p>"
    yield '<div class="wide"><table><tr><th>operator</th><th class="number">rows in</th>'
    yield '<th class="number">rows out</th><th class="number">seconds</th><th class="number">rows/s</th>'
    yield '<th class="why">dropped because</th><th class="number">rows</th></tr>'
    for one in stage.operators:
        yield from _operator(one)
    yield "</table></div>"
    if stage.timing is not None:
        yield f"<p>{escape(timing_text(stage))}</p>"
        yield f'<div class="plots">{_seconds(stage)}</div>'
    if stage.buckets:
        yield from _buckets(stage.buckets)
    if stage.scores:
        yield '<h3>Scores of the rows that are left</h3><div class="plots">'
        yield from map(_plot, stage.scores)
        yield "</div>"


def _operator(one: OperatorReport) -> Iterator[str]:
    seconds, speed = speed_of(one)
    numbers = (f"{one.rows_in:,}", f"{one.rows_out:,}", seconds, speed)
    head = f"<td>{escape(one.id)}</td>{''.join(map(_number, numbers))}"
    empty = "<td></td>" * 5
    for place, rule in enumerate(one.rules):
        examples = "".join(f'<div class="example">{escape(text)}</div>' for text in rule.examples)
        cells = f'<td>{escape(rule.reason)}{examples}</td><td class="number">{rule.rows:,}</td>'
        yield f"<tr>{empty if place else head}{cells}</tr>"
    if one.other_rows:
        yield f"<tr>{empty}<td>others</td>{_number(f'{one.other_rows:,}')}</tr>"
    if not one.rules:
        yield f"<tr>{head}<td></td><td></td></tr>"


def _number(text: str) -> str:
    return f'<td class="number">{escape(text)}</td>'


def _seconds(stage: StageReport) -> str:
    found = [(one.id, one.seconds) for one in stage.operators if one.seconds is not None]
    if stage.timing is not None:
        found.append(("read, write", stage.timing.other_seconds))
    return _bars("seconds", "", [(name, value, f"{value:,.2f}") for name, value in found])


def _buckets(buckets: Sequence[Bucket]) -> Iterator[str]:
    yield '<h3>Buckets of samples</h3><div class="wide"><table><tr><th>operator</th><th>bucket</th>'
    yield "".join(f'<th class="number">{name}</th>' for name in BUCKET_COLUMNS)
    yield "</tr>"
    for one in buckets:
        yield f"<tr><td>{escape(one.operator)}</td><td>{escape(one.name)}</td>"
        yield "".join(map(_number, bucket_cells(one)))
        yield "</tr>"
    yield "</table></div>"


def _plot(histogram: Histogram) -> str:
    nulls = f", {histogram.nulls:,} without a value" if histogram.nulls else ""
    others = f", {histogram.others:,} with others" if histogram.others else ""
    bars = [(label, rows, f"{rows:,}") for label, rows in zip(histogram.labels, histogram.rows, strict=True)]
    return _bars(histogram.field, nulls + others, bars)


def _bars(name: str, about: str, bars: Sequence[tuple[str, float, str]]) -> str:
    """A plot.

    Args:
        bars: for each its label, its length, and what stands at its end.
    """
    title = f"<figcaption><b>{escape(name)}</b>{about}</figcaption>"
    if not bars:
        return f"<figure>{title}</figure>"
    height, width, most = 14, 300, max(value for _, value, _ in bars) or 1
    labels = [_short(label) for label, _, _ in bars]
    # Of labels; the longest bar leaves some for what stands at its end.
    room = max(78, round(_LETTER * max(map(len, labels))))
    parts = []
    for place, (label, (_, value, text)) in enumerate(zip(labels, bars, strict=True)):
        top, length = place * height, (width - room - 52) * value / most
        parts.append(
            f'<text x="{room}" y="{top + 10}" text-anchor="end">{escape(label)}</text>'
            f'<rect x="{room + 4}" y="{top + 2}" width="{length:.1f}" height="{height - 4}"/>'
            f'<text x="{room + 8 + length:.1f}" y="{top + 10}">{text}</text>'
        )
    size = height * len(bars)
    return (
        f'<figure>{title}<svg viewBox="0 0 {width} {size}" role="img" aria-label="{escape(name)}">'
        f"{''.join(parts)}</svg></figure>"
    )


def _short(label: str) -> str:
    """A label of a bar: of a long one the beginning and the end, in which ids differ."""
    return label if len(label) <= _LABEL else f"{label[: _LABEL - 11]}…{label[-10:]}"
