"""Records what JMH found of the functions: `make jmh` gives its output to this program, which prints it, too."""

import re
import sys
from collections.abc import Iterable

from benchmarks import machine, page, results
from benchmarks.results import Measure, Result, Table

MICROSECONDS = Measure("microseconds", "less")
LIMIT = "copy to a new array"
COPIES = {
    "System.arraycopy toNewArray": LIMIT,
    "System.arraycopy toSameArray": "copy to the same array",
}
AIMS = {"F32": 0.5, "BF16": 0.25, "F16": 0.1}

_LINE = re.compile(r"\| ([\d,]+) \| (\S+ \w+) \| ([\d.]+) \|")


def tables(lines: Iterable[str]) -> list[Table]:
    """One for each number of elements."""
    found: dict[str, list[Result]] = {}
    for elements, label, taken in (line.groups() for line in map(_LINE.search, lines) if line):
        aims = {} if label in COPIES else {MICROSECONDS.name: AIMS[label.split()[0]]}
        values = {MICROSECONDS.name: [float(taken)]}
        found.setdefault(elements, []).append(Result(COPIES.get(label, label), values, label not in COPIES, aims))
    return [
        Table(f"elements-{count.replace(',', '')}", f"{count} elements", [MICROSECONDS], ones, LIMIT)
        for count, ones in found.items()
    ]


def main() -> None:
    lines = []
    for line in sys.stdin:
        print(line, end="", flush=True)
        lines.append(line)
    made = tables(lines)
    if not made:
        sys.exit("JMH has printed no table: nothing is recorded")
    results.record("functions", made, machine.run(sys.argv[1:], "make jmh", "JMH"))
    page.write()


if __name__ == "__main__":
    main()
