"""`python -m benchmarks`: prints the tables that the documents quote."""

import argparse
import tempfile
from pathlib import Path

from benchmarks import read, write


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    parser.add_argument("--rows", type=int, default=524288, help="embeddings of 1024 floats: 4096 bytes each")
    parser.add_argument("--only", choices=["write", "read"], help="one of the two")
    parser.add_argument("--rounds", type=int, default=5, help="rounds that count")
    parser.add_argument("--folder", type=Path, help="on the disk to measure; by default that of temporary files")
    arguments = parser.parse_args()
    for name, benchmark in (("write", write.run), ("read", read.run)):
        if arguments.only in (None, name):
            with tempfile.TemporaryDirectory(dir=arguments.folder) as folder:
                for printed in benchmark(arguments.rows, arguments.rounds, Path(folder)):
                    print(f"{printed}\n", flush=True)


if __name__ == "__main__":
    main()
