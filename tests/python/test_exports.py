"""The public surface is what `__all__` says, and costs nothing to import."""

import inspect
import subprocess
import sys
import typing
from collections.abc import Iterator
from importlib.resources import files
from types import ModuleType

import pytest

import safetensors_spark
from safetensors_spark import _errors, dataset, functions
from sbt import ROOT


def _public(module: ModuleType) -> set[str]:
    """The names defined here for others: not modules, nor what only annotations need."""
    return {
        name
        for name, value in vars(module).items()
        if not name.startswith("_")
        and not isinstance(value, ModuleType)
        and name not in ("annotations", "TYPE_CHECKING", "Literal", "Sequence")
    }


def test_the_package_exports_what_all_lists() -> None:
    assert _public(safetensors_spark) | {"__version__"} == set(safetensors_spark.__all__)


def test_functions_exports_what_all_lists() -> None:
    assert _public(functions) == set(functions.__all__)


def _ours(annotation: object) -> Iterator[type]:
    """The classes of this package that an annotation names."""
    if isinstance(annotation, type) and annotation.__module__.startswith("safetensors_spark."):
        yield annotation
    for inner in typing.get_args(annotation):
        yield from _ours(inner)


def _returned(value: object) -> Iterator[type]:
    """The classes that a public function returns, or that a public class has in its methods and properties."""
    if inspect.isfunction(value):
        yield from _ours(typing.get_type_hints(value).get("return"))
    if isinstance(value, property):
        yield from _returned(value.fget)
    if isinstance(value, type):
        for name, member in vars(value).items():
            yield from () if name.startswith("_") and name != "__getitem__" else _returned(member)
        for hint in typing.get_type_hints(value).values():
            yield from _ours(hint)


def test_every_type_that_readers_return_is_public() -> None:
    public = [getattr(dataset, name) for name in dataset.__all__]
    assert {found for value in public for found in _returned(value)} - set(public) == set()


def test_every_error_is_public_drawn_in_the_docstring_and_of_one_tree() -> None:
    errors = [value for value in vars(_errors).values() if isinstance(value, type)]
    for error in errors:
        assert issubclass(error, safetensors_spark.SafetensorsSparkError)
        assert error.__name__ in safetensors_spark.__all__
        assert error.__name__ in str(safetensors_spark.__doc__)


def test_every_error_is_on_the_page_of_errors() -> None:
    page = (ROOT / "docs/errors.md").read_text()
    assert [name for name in vars(_errors) if name.endswith("Error") and f"`{name}`" not in page] == []


def test_the_package_is_marked_as_typed() -> None:
    assert files("safetensors_spark").joinpath("py.typed").is_file()


def test_importing_everything_public_loads_neither_pyspark_nor_numpy() -> None:
    script = (
        "import sys, safetensors_spark, safetensors_spark.functions, safetensors_spark._commands.cli; "
        "print([m for m in ('pyspark', 'py4j', 'numpy', 'rich') if m in sys.modules])"
    )
    assert subprocess.run([sys.executable, "-c", script], capture_output=True, text=True).stdout == "[]\n"


def test_training_says_what_it_needs() -> None:
    """The environment of these tests has no PyTorch."""
    done = subprocess.run([sys.executable, "-c", "import safetensors_spark.torch"], capture_output=True, text=True)
    assert "MissingExtraError: not installed: torch. Install the extra `torch`:" in done.stderr


def test_reading_from_the_hub_says_what_it_needs() -> None:
    """The environment of these tests has no client of the Hub."""
    with pytest.raises(safetensors_spark.MissingExtraError, match=r"huggingface_hub\. Install the extra `publish`:"):
        dataset.open_dataset("hf://datasets/me/points")
