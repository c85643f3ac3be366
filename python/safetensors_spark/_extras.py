"""Packages that only an extra brings, and the command that installs it."""

from __future__ import annotations

from contextlib import suppress
from importlib import import_module
from importlib.util import find_spec

from safetensors_spark._errors import MissingExtraError

DEMO = ("pyspark", "numpy", "pyarrow", "safetensors", "sklearn", "PIL")
ARROW = ("numpy", "pyarrow", "ml_dtypes")
CONNECT = ("pyspark", "grpc", "grpc_status", "pandas", "pyarrow")


def not_installed(modules: tuple[str, ...]) -> list[str]:
    """Those of the modules that cannot be imported."""
    return [name for name in modules if find_spec(name) is None]


def require(extra: str, modules: tuple[str, ...]) -> None:
    """Raise `MissingExtraError` if one of the extra's modules is not there."""
    if absent := not_installed(modules):
        raise MissingExtraError(
            f"not installed: {', '.join(absent)}. Install the extra `{extra}`:\n"
            f'    pip install "safetensors-spark[{extra}]"'
        )


def import_now(*modules: str) -> None:
    """Import those of the modules that are installed, in the caller's thread.

    A process that is forked while another thread imports a module waits for ever when it imports the module itself.
    """
    for name in modules:
        with suppress(ImportError):
            import_module(name)
