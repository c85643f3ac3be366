"""Where the connector's jar is."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

_PACKAGE = Path(__file__).resolve().parents[1]


def jar_path() -> str:
    """The absolute path of the connector's jar, for `spark.jars` or `--jars`.

    In a checkout (an editable install) the jar is built first when the Scala sources have changed.

    Raises FileNotFoundError when the installed package lacks its jar, RuntimeError when the jar of a checkout cannot
    be built. The messages say how to fix it.
    """
    builder = _PACKAGE.parents[1] / "project" / "jar.py"
    if _PACKAGE.parent.name == "python" and builder.is_file():
        return _built(builder)
    jars = sorted(_PACKAGE.glob("jars/*.jar"))
    if not jars:
        raise FileNotFoundError(
            f"{_PACKAGE / 'jars'} holds no jar: the installation is damaged. "
            "Repair it with `pip install --force-reinstall --no-deps safetensors-spark`."
        )
    return str(jars[0])


def _built(builder: Path) -> str:
    build = subprocess.run([sys.executable, str(builder)], stdout=subprocess.PIPE, text=True, check=False)
    if build.returncode != 0:
        raise RuntimeError(f"The jar of this checkout could not be built. See why with `python {builder}`.")
    return build.stdout.strip()
