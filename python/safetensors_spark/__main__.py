"""`python -m safetensors_spark`: the same as the command `safetensors-spark`."""

import sys

from safetensors_spark._commands.cli import main

if __name__ == "__main__":
    sys.exit(main())
