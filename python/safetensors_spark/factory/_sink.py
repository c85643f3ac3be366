"""What becomes of a pipeline's output beside the files of its last stage."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from functools import partial
from typing import Any, get_args

from safetensors_spark._files.commit.existing import SaveMode
from safetensors_spark.factory._config import ParquetSink, SafetensorsSink
from safetensors_spark.factory._errors import ConfigError
from safetensors_spark.factory._nearest import meant


def sink_of(sink: ParquetSink | SafetensorsSink) -> Callable[[Any], object]:
    """A function that takes the output. Raises `ConfigError` for options that it does not take."""
    if isinstance(sink, ParquetSink):
        return lambda _: None
    from safetensors_spark.dataset import DatasetWriter
    from safetensors_spark.factory._sinks import to_safetensors

    known = [*_named(to_safetensors), *_named(DatasetWriter)]
    for name in sink.options:
        if name not in known:
            raise ConfigError(
                f"`{name}` is not an option of the sink `safetensors`. {meant(name, known)}", ("sink", "options")
            )
    if (mode := sink.options.get("mode", "error")) not in get_args(SaveMode):
        raise ConfigError(
            f"`mode` of the sink is {mode!r}, expected {', '.join(get_args(SaveMode))}.", ("sink", "options")
        )
    return partial(to_safetensors, path=sink.path, **sink.options)


def _named(function: Callable[..., Any]) -> list[str]:
    """The names of keyword arguments, without those that tell tasks apart."""
    found = inspect.signature(function).parameters.values()
    return [one.name for one in found if one.kind is one.KEYWORD_ONLY and one.name not in ("partition", "write_id")]
