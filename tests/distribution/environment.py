"""Virtual environments for installs that know nothing of the checkout."""

import json
import os
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]


def run(
    *command: str | Path, env: dict[str, str] | None = None, cwd: Path | None = None
) -> subprocess.CompletedProcess[str]:
    """What came of a command that may fail; away from the checkout unless `cwd` says otherwise."""
    arguments = [str(part) for part in command]
    return subprocess.run(arguments, env=env or os.environ, cwd=cwd or "/", capture_output=True, text=True, check=False)


def output(*command: str | Path, env: dict[str, str] | None = None, cwd: Path | None = None) -> str:
    """What a command printed; fails with all that it said when it fails."""
    done = run(*command, env=env, cwd=cwd)
    assert done.returncode == 0, f"{command}\n{done.stdout}\n{done.stderr}"
    return done.stdout.strip()


def uv() -> str:
    """The uv of this test run: what `uv run` says, or of the PATH, or the project's own."""
    return os.environ.get("UV") or shutil.which("uv") or str(ROOT / ".tools" / "uv" / "bin" / "uv")


def without_java(**settings: str) -> dict[str, str]:
    """The environment of this process, but for any way to a program."""
    kept = {name: value for name, value in os.environ.items() if name not in ("JAVA_HOME", "PATH")}
    return kept | {"PATH": ""} | settings


@dataclass(frozen=True)
class Environment:
    """A virtual environment with pip and nothing else."""

    folder: Path

    @classmethod
    def create(cls, folder: Path) -> "Environment":
        output(uv(), "venv", "--seed", "--python", sys.executable, folder)
        return cls(folder)

    def program(self, name: str) -> Path:
        return self.folder / ("Scripts" if os.name == "nt" else "bin") / name

    def pip(self, *arguments: str | Path, env: dict[str, str] | None = None) -> str:
        return output(self.program("python"), "-m", "pip", *arguments, env=env)

    def installed(self) -> set[str]:
        return {package["name"] for package in json.loads(self.pip("list", "--format=json"))}

    def jar_path(self, env: dict[str, str] | None = None) -> Path:
        return Path(output(self.program("safetensors-spark"), "jar-path", env=env))
