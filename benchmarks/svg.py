"""Pieces of plots as SVG: as wide as a phone, and in the colours that the reader's system asks for, day or night."""

from collections.abc import Sequence
from html import escape

WIDTH, MARGIN, LINE = 420, 14, 17

# Of cards, their edges and rules, text, light text; and of contenders.
DAY = ("#ffffff", "#d0d7de", "#1f2328", "#59636e"), ("#2f6fb7", "#d9730d", "#2a8c4a", "#a04fb0", "#c23b3b", "#22899a")
NIGHT = ("#161b22", "#3d444d", "#e6edf3", "#9198a1"), ("#58a6ff", "#f0883e", "#56d364", "#d2a8ff", "#ff7b72", "#56d4dd")


def _colours(of: tuple[Sequence[str], Sequence[str]]) -> str:
    (card, edge, text, light), contenders = of
    rules = [f".card {{ fill: {card}; stroke: {edge}; }} .rule {{ stroke: {edge}; }} .one {{ stroke: {light}; }}"]
    rules.append(f"text {{ fill: {text}; }} .light {{ fill: {light}; font-size: 11px; }}")
    rules += [f".f{place} {{ fill: {c}; }} .s{place} {{ stroke: {c}; }}" for place, c in enumerate(contenders)]
    return "\n".join(rules)


STYLE = f"""<style>
svg {{ font: 12px system-ui, -apple-system, "Segoe UI", Roboto, "DejaVu Sans", sans-serif; }}
.strong {{ font-weight: 600; }} .end {{ text-anchor: end; }} .middle {{ text-anchor: middle; }}
polyline {{ fill: none; stroke-width: 2; }}
{_colours(DAY)}
@media (prefers-color-scheme: dark) {{
{_colours(NIGHT)}
}}
</style>"""


def key(place: int, y: float, name: str) -> list[str]:
    square = f'<rect class="f{place % 6}" x="{MARGIN}" y="{y - 9}" width="10" height="10"/>'
    return [square, text(MARGIN + 16, y, name)]


def heading(title: str, subject: str) -> list[str]:
    return [text(MARGIN, MARGIN + 10, title, "strong"), text(MARGIN, MARGIN + 27, subject, "light")]


def svg(parts: Sequence[str], height: float, title: str) -> str:
    size = f'width="{WIDTH}" height="{height:.0f}" viewBox="0 0 {WIDTH} {height:.0f}"'
    card = f'<rect class="card" x="0.5" y="0.5" width="{WIDTH - 1}" height="{height - 1:.0f}" rx="6"/>'
    body = "\n".join([f"<title>{escape(plain(title))}</title>", STYLE, card, *parts])
    return f'<svg xmlns="http://www.w3.org/2000/svg" {size} role="img">\n{body}\n</svg>\n'


def text(x: float, y: float, words: str, kind: str = "") -> str:
    return f'<text x="{x:.1f}" y="{y:.1f}" class="{kind}">{escape(plain(words))}</text>'


def plain(words: str) -> str:
    """Without the marks of code."""
    return words.replace("`", "")
