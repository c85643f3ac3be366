"""Which checks there are, and where they can run."""

from importlib.util import find_spec

from reliability import attacks, soaks
from reliability.check import Check

CHECKS: tuple[Check, ...] = (*attacks.CHECKS, *soaks.CHECKS)

# A package that tells that an environment is here.
_TOLD_BY = {
    "python": "hatchling",
    "spark": "pyspark",
    "publish": "huggingface_hub",
    "pipeline": "cloudpickle",
    "factory": "daft",
}
ENVIRONMENTS = tuple(_TOLD_BY)

# How much `make test` does of each.
SHORT = 0.01


def checks_of(environment: str) -> list[Check]:
    return [check for check in CHECKS if check.environment == environment]


def is_here(environment: str) -> bool:
    return find_spec(_TOLD_BY[environment]) is not None
