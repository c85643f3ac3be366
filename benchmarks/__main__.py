"""`python -m benchmarks`: prints tables, keeps them as JSON in `results/`, and writes docs/benchmarks.md anew."""

import argparse
import sys
import tempfile
from dataclasses import fields
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path

from benchmarks import machine, page, results
from benchmarks.harness import Options

# By environment: those that have the loaders of training data, or others that prepare records, run what compares with
# them, and the one that has the Hub's client alone what talks to a server of its API.
SPARK = ("write", "writer", "read", "shards", "growth", "memory")
LOADERS, PUBLISH = ("loaders", "sequences", "lookups"), ("publish",)
PIPELINES, FACTORY = ("pipelines",), ("factory",)


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    parser.add_argument("--rows", type=int, default=524288, help="embeddings of 1024 floats: 4096 bytes each")
    parser.add_argument(
        "--only",
        choices=SPARK + LOADERS + PUBLISH + PIPELINES + FACTORY,
        help="one of them; by default all of this environment",
    )
    parser.add_argument("--rounds", type=int, default=5, help="rounds that count")
    parser.add_argument("--folder", type=Path, help="on the disk to measure; by default that of temporary files")
    parser.add_argument("--keys", type=int, default=1_000_000, help="of the store that is read by keys")
    parser.add_argument("--append-keys", type=int, default=10_000_000, help="of the store that is appended to")
    parser.add_argument(
        "--parts",
        nargs="+",
        help="of `read`: all, decode, large, splits, shapes, look-ups or appends; of `growth`, what; of `factory`, who",
    )
    parser.add_argument("--size", default="1GB", help="of the texts that `factory` curates")
    parser.add_argument("--baseline", type=Path, help="another version of the jar, to read in turn with this one")
    parser.add_argument("--peer", type=Path, help="the jar of SemyonSinchenko/safetensors-spark, to read in turn")
    arguments = parser.parse_args()
    options = Options(**{field.name: getattr(arguments, field.name) for field in fields(Options)})
    marks = (("webdataset", LOADERS), ("django", FACTORY), ("datatrove", PIPELINES), ("pyspark", SPARK))
    here = next((names for package, names in marks if find_spec(package)), PUBLISH)
    run = machine.run(sys.argv[1:])
    for name in [arguments.only] if arguments.only else here:
        # Imported when needed: no environment has what the others' benchmarks import.
        benchmark = import_module(f"benchmarks.{name}")
        with tempfile.TemporaryDirectory(dir=arguments.folder) as folder:
            for table in benchmark.run(options, Path(folder)):
                print(f"{page.markdown(table.json())}\n", flush=True)
                results.record(name, [table], run)
    page.write()


if __name__ == "__main__":
    main()
