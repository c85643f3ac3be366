"""The public surface is what `__all__` says, and costs nothing to import."""

import subprocess
import sys
from importlib.resources import files
from types import ModuleType

import safetensors_spark
from safetensors_spark import _errors, functions


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


def test_every_error_is_public_drawn_in_the_docstring_and_of_one_tree() -> None:
    errors = [value for value in vars(_errors).values() if isinstance(value, type)]
    for error in errors:
        assert issubclass(error, safetensors_spark.SafetensorsSparkError)
        assert error.__name__ in safetensors_spark.__all__
        assert error.__name__ in str(safetensors_spark.__doc__)


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
