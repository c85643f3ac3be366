"""What is done to the project on purpose. Importing this takes no package that one environment alone has."""

from reliability.attacks import (
    chunks,
    command,
    configurations,
    datasets_python,
    datasets_spark,
    headers_python,
    headers_spark,
    inputs,
    names,
    odd_files_python,
    odd_files_spark,
    options_spark,
    shrinking,
    sidecars,
    staged_datasets,
)
from reliability.check import Check

CHECKS: tuple[Check, ...] = tuple(
    module.CHECK
    for module in (
        headers_python,
        datasets_python,
        odd_files_python,
        names,
        shrinking,
        command,
        headers_spark,
        datasets_spark,
        odd_files_spark,
        options_spark,
        sidecars,
        staged_datasets,
        chunks,
        inputs,
        configurations,
    )
)
