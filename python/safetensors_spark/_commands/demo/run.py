"""The demo: real images go through Spark and back, a real model is read as a table, and every value is compared.

`run_demo` is the whole of it. Each part has a module of its own (`digits` in batch mode, `strokes` with rows
of any length, which `outline` makes, `store` by key, `checkpoint`), which writes, checks and tells what it saw as a
`Part`; `sheet` draws, `report` prints.
"""

from __future__ import annotations

from pathlib import Path

from safetensors_spark import _extras
from safetensors_spark._spark import doctor


def run_demo(output: Path) -> int:
    """Run the demo into this folder, print its report, and return the exit code: 0 if all is equal, else 1."""
    _extras.require("demo", _extras.DEMO)
    doctor.require_spark()
    from safetensors_spark._commands.demo import checkpoint, digits, report, session, store, strokes

    output.mkdir(parents=True, exist_ok=True)
    clock, log, truth = report.Clock(), output / "spark.log", digits.load()
    with session.quiet(log, clock) as spark:
        parts = [part.run(spark, truth, output, clock) for part in (digits, strokes, store)]
        parts.append(checkpoint.run(spark, checkpoint.folder(), clock))
    return 0 if report.show(parts, clock, log) else 1
