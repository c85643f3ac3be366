"""The build hook of sdist, wheel and editable install: each carries a jar in step with the Scala sources."""

import subprocess
import sys
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface


class JarHook(BuildHookInterface[Any]):
    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        script = Path(self.root, "project", "jar.py")
        # The script has said in one line what is wrong; a traceback of this hook would only bury it.
        if subprocess.run([sys.executable, script], check=False).returncode != 0:
            sys.exit(1)
