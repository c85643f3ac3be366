"""The configuration of a pipeline: what a YAML file says, and the pipeline that it describes."""

from __future__ import annotations

import importlib
import os
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any, Literal, TypeAlias

from pydantic import BaseModel, ConfigDict, Discriminator, Field, Tag

from safetensors_spark.factory._errors import ConfigError
from safetensors_spark.factory._hook import Hook
from safetensors_spark.factory._input import DatasetInput, absolute
from safetensors_spark.factory._json_schema import json_schema
from safetensors_spark.factory._mixture_config import MixtureConfig
from safetensors_spark.factory._operator import Operator
from safetensors_spark.factory._pipeline import OnError, Pipeline, Stage
from safetensors_spark.factory._problems import Problem, checked_as
from safetensors_spark.factory._registry import HOOKS, OPERATORS
from safetensors_spark.factory._yaml import Document, Place, parsed, written


class _Part(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class OperatorConfig(_Part):
    """An operator: its type, its id, and its parameters beside them."""

    model_config = ConfigDict(extra="allow")

    type: str = Field(description="What it is, such as `text_length`.")
    id: str = Field(default="", description="Name of this instance, unique in its stage: by default type and number.")


class StageConfig(_Part):
    """A stage."""

    name: str = Field(description="Name of the stage, and of its folder.")
    operators: tuple[OperatorConfig, ...] = Field(min_length=1, description="What is done with each row.")
    edges: tuple[tuple[str, str], ...] | None = Field(
        default=None,
        description="Pairs of ids: which operator is before which. By default each is before the next one in the list.",
    )
    on_error: OnError = Field(
        default="raise",
        description="What becomes of a row for which an operator raises: `quarantine` drops it with the error.",
    )
    provenance: bool = Field(
        default=False, description="Whether each row tells its scores, tags and versions of operators in fields."
    )


class HookConfig(_Part):
    """A hook: its type, and its options beside it."""

    model_config = ConfigDict(extra="allow")

    type: str = Field(description="What it is, such as `whylogs`.")
    name: str = Field(default="", description="Name of this instance, in warnings: by default the type.")


class ParquetSink(_Part):
    """The files of the last stage are the output."""

    type: Literal["parquet"] = "parquet"


class SafetensorsSink(_Part):
    """The output is written as a safetensors dataset, too, by `to_safetensors`."""

    type: Literal["safetensors"]
    path: str = Field(description="Folder of the new dataset, seen from the folder of this file.")
    options: dict[str, Any] = Field(default={}, description="Further arguments of `to_safetensors`.")


def _kind_of_input(value: Any) -> str:
    is_mixture = isinstance(value, MixtureConfig) or (isinstance(value, Mapping) and "mixture" in value)
    return "mixture" if is_mixture else "dataset"


InputConfig: TypeAlias = Annotated[
    Annotated[DatasetInput, Tag("dataset")] | Annotated[MixtureConfig, Tag("mixture")], Discriminator(_kind_of_input)
]


class PipelineConfig(_Part):
    """A pipeline, with its input and its output."""

    name: str = Field(description="Name of the pipeline.")
    imports: tuple[str, ...] = Field(
        default=(), description="Modules that register operators, in the folder of this file or installed."
    )
    input: InputConfig | None = Field(default=None, description="The dataset that the command reads, or a mixture.")
    stages: tuple[StageConfig, ...] = Field(
        min_length=1, description="Stages, of which each gets the one before's rows."
    )
    sink: Annotated[ParquetSink | SafetensorsSink, Field(discriminator="type")] = Field(
        default=ParquetSink(), description="What becomes of the output."
    )
    hooks: tuple[HookConfig, ...] = Field(default=(), description="What is told how a run proceeds.")

    def pipeline(self) -> Pipeline:
        """The pipeline. Raises `ConfigError` for operators that do not exist, and parameters that they do not take."""
        return _pipeline_of(self, _in_words)

    def new_hooks(self) -> list[Hook]:
        """The hooks, new ones, for `run`. Raises `ConfigError` for hooks that do not exist, and wrong options."""
        return _hooks_of(self, _in_words)

    def to_yaml(self) -> str:
        """The configuration as a file that `load_config` reads."""
        return written(self.model_dump(mode="json", exclude_defaults=True))

    @staticmethod
    def json_schema() -> dict[str, Any]:
        """A JSON schema of configurations, with the parameters of all known operators and hooks: for editors."""
        return json_schema(PipelineConfig, {OperatorConfig: OPERATORS, HookConfig: HOOKS})


# YAML takes hundreds of times as much memory.
_LARGEST = 10_000_000


def load_pipeline(path: str | os.PathLike[str]) -> Pipeline:
    """The pipeline that a YAML file describes. Raises `ConfigError` with the line of each mistake."""
    return load_config(path).pipeline()


def load_config(path: str | os.PathLike[str]) -> PipelineConfig:
    """The configuration in a YAML file, with its input and its sink. Paths are seen from the file's folder.

    Raises `ConfigError` with the line of each mistake.
    """
    file = Path(absolute(str(path), Path.cwd()))
    try:
        # It may be a pipe of the shell.
        with file.open("rb") as opened:
            content = opened.read(_LARGEST + 1)
    except OSError as error:
        raise ConfigError(f"{path} cannot be read: {error.strerror}.") from None
    if len(content) > _LARGEST:
        raise ConfigError(f"{path} has more than {_LARGEST:,} bytes, which is no configuration.")
    document = parsed(content, str(path))
    problems: list[Problem] = []
    config = checked_as(PipelineConfig, document.value, (), problems)
    where = _lines(document, str(path))
    if config is None:
        raise _error(problems, where)
    folder = file.parent
    if config.imports and str(folder) not in sys.path:
        sys.path.insert(0, str(folder))
    _pipeline_of(config, where)
    _hooks_of(config, where)
    return _resolved(config, folder)


def _resolved(config: PipelineConfig, folder: Path) -> PipelineConfig:
    stages = [
        stage.model_copy(update={"operators": tuple(_with_files(one, folder) for one in stage.operators)})
        for stage in config.stages
    ]
    changed: dict[str, Any] = {"stages": tuple(stages)}
    if config.input is not None:
        changed["input"] = config.input.resolved(folder)
    if isinstance(config.sink, SafetensorsSink):
        changed["sink"] = config.sink.model_copy(update={"path": absolute(config.sink.path, folder)})
    return config.model_copy(update=changed)


def _with_files(config: OperatorConfig, folder: Path) -> OperatorConfig:
    """The same operator, with absolute paths of the files that it reads."""
    operator = _operator_of(config, (), [])
    moved: dict[str, str] = {}
    for name, value in (config.model_extra or {}).items():
        if operator is not None and isinstance(value, str):
            path = absolute(value, folder)
            # A parameter is the path of a file if another one makes it another file.
            if operator.model_copy(update={name: path}).files != operator.files:
                moved[name] = path
    return config.model_copy(update=moved)


def _pipeline_of(config: PipelineConfig, where: Callable[[Place], str]) -> Pipeline:
    problems: list[Problem] = []
    for number, name in enumerate(config.imports):
        try:
            importlib.import_module(name)
        except Exception as error:
            told = f"{type(error).__name__}: {error}".splitlines()[0].removesuffix(".")
            problems.append(Problem(("imports", number), f"`{name}` cannot be imported: {told}."))
    if problems:
        # Types of operators that it registers would be unknown, too.
        raise _error(problems, where)
    stages = [_stage_of(stage, ("stages", number), problems) for number, stage in enumerate(config.stages)]
    if problems:
        raise _error(problems, where)
    try:
        return Pipeline(config.name, tuple(stage for stage in stages if stage is not None))
    except ConfigError as error:
        raise _error([Problem(error.place, str(error))], where) from None


def _stage_of(stage: StageConfig, place: Place, problems: list[Problem]) -> Stage | None:
    before = len(problems)
    operators = [
        _operator_of(one, (*place, "operators", number), problems) for number, one in enumerate(stage.operators)
    ]
    if len(problems) > before:
        return None
    try:
        known = [one for one in operators if one is not None]
        return Stage(stage.name, known, stage.edges, stage.on_error, stage.provenance)
    except ConfigError as error:
        problems.append(Problem((*place, *error.place), str(error)))
        return None


def _operator_of(config: OperatorConfig, place: Place, problems: list[Problem]) -> Operator | None:
    try:
        kind = OPERATORS.find(config.type)
    except ConfigError as error:
        problems.append(Problem((*place, "type"), str(error)))
        return None
    parameters = {"id": config.id} if config.id else {}
    return checked_as(kind, parameters | (config.model_extra or {}), place, problems, ("type",))


def _hooks_of(config: PipelineConfig, where: Callable[[Place], str]) -> list[Hook]:
    problems: list[Problem] = []
    found = [_hook_of(one, ("hooks", number), problems) for number, one in enumerate(config.hooks)]
    if problems:
        raise _error(problems, where)
    return [one for one in found if one is not None]


def _hook_of(config: HookConfig, place: Place, problems: list[Problem]) -> Hook | None:
    try:
        kind = HOOKS.find(config.type)
    except ConfigError as error:
        problems.append(Problem((*place, "type"), str(error)))
        return None
    name = {"name": config.name} if config.name else {}
    return checked_as(kind, name | (config.model_extra or {}), place, problems, ("type",))


def _lines(document: Document, name: str) -> Callable[[Place], str]:
    def where(place: Place) -> str:
        while place not in document.lines:
            place = place[:-1]
        return f"{name}, line {document.lines[place]}: "

    return where


def _in_words(place: Place) -> str:
    parts = (f"[{one}]" if isinstance(one, int) else f".{one}" for one in place)
    return f"{''.join(parts).removeprefix('.')}: " if place else ""


def _error(problems: Sequence[Problem], where: Callable[[Place], str]) -> ConfigError:
    """One error for all problems."""
    lines = dict.fromkeys(f"{where(one.place)}{one.text}" for one in problems)
    return ConfigError("\n".join(lines), problems[0].place)
