"""Dependencies go one way: between packages as listed here, and without a cycle among the modules of a package."""

import ast
from collections.abc import Iterator
from graphlib import TopologicalSorter
from pathlib import Path

import pytest

import safetensors_spark

ROOT = Path(safetensors_spark.__file__).parent
LEAVES = {"_errors", "_extras", "_html"}

# For each package, and each module beside them, those of ours that it may import.
ALLOWED: dict[str, set[str]] = {
    "_errors": set(),
    "_extras": {"_errors"},
    "_html": {"_errors"},
    "_files": LEAVES,
    "_spark": LEAVES,
    "arrow": {*LEAVES, "_files"},
    "functions": {"_spark"},
    "mlflow": {*LEAVES, "_files"},
    "dataset": {*LEAVES, "_files"},
    "torch": {*LEAVES, "_files", "dataset"},
    "publish": {*LEAVES, "_files"},
    "_convert": {*LEAVES, "_files", "dataset"},
    "pipeline": {*LEAVES, "_files", "dataset"},
    "factory": {*LEAVES, "_files", "dataset", "pipeline"},
    "": {*LEAVES, "_spark"},
    "_commands": {
        *LEAVES,
        "",
        "_convert",
        "_files",
        "_spark",
        "dataset",
        "factory",
        "functions",
        "pipeline",
        "publish",
    },
    "__main__": {"_commands"},
}

MODULES = {
    ".".join(path.relative_to(ROOT).with_suffix("").parts).removesuffix("__init__").rstrip("."): path
    for path in ROOT.rglob("*.py")
}


def package(module: str) -> str:
    return module.partition(".")[0]


def imported(module: str) -> Iterator[str]:
    """The modules of ours that a module imports, wherever in it."""
    for node in ast.walk(ast.parse(MODULES[module].read_text())):
        if isinstance(node, ast.ImportFrom):
            names = [f"{node.module}.{alias.name}" for alias in node.names]
        elif isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        else:
            continue
        for name in names:
            first, _, rest = name.partition(".")
            if first == "safetensors_spark":
                yield rest if rest in MODULES else rest.rpartition(".")[0]


def test_every_package_is_listed() -> None:
    assert {package(module) for module in MODULES} == set(ALLOWED)


@pytest.mark.parametrize("name", ALLOWED)
def test_a_package_imports_only_what_is_listed(name: str) -> None:
    modules = [module for module in MODULES if package(module) == name]
    wrong = [(one, other) for one in modules for other in imported(one) if package(other) not in ALLOWED[name] | {name}]
    assert wrong == []


def test_modules_have_no_cycle() -> None:
    TopologicalSorter({module: set(imported(module)) - {module} for module in MODULES}).prepare()
