"""What becomes of a pipeline's output beside the files of its last stage."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from functools import partial
from typing import Any

from safetensors_spark.factory._config import ParquetSink, SafetensorsSink
from safetensors_spark.factory._errors import ConfigError
from safetensors_spark.factory._nearest import meant


def sink_of(sink: ParquetSink | SafetensorsSink) -> Callable[[Any], object]:
    """A function that takes the output. Raises `ConfigError` for options that it does not take."""
    if isinstance(sink, ParquetSink):
        return lambda _: None
    from safetensors_spark.factory._sinks import to_safetensors

    known = list(inspect.signature(to_safetensors).parameters)[2:]
    for name in sink.options:
        if name not in known:
            raise ConfigError(
                f"`{name}` is no option of the sink `safetensors`. {meant(name, known)}", ("sink", "options")
            )
    return partial(to_safetensors, path=sink.path, **sink.options)
