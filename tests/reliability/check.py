"""One thing that is done to the project many times, and what must hold each time."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal


@dataclass(frozen=True)
class Outcome:
    """What was done. A check whose claim did not hold raises `AssertionError` instead.

    Attributes:
        attempts: how often something was done and its result compared.
        seen: one sentence with the numbers that matter, such as "descriptors 41 to 41, resident memory 312 to 315 MB".
    """

    attempts: int
    seen: str = ""


@dataclass(frozen=True)
class Check:
    """An attack or a soak.

    Attributes:
        name: a few words with hyphens, unique, such as `hostile-headers`.
        kind: `attack` or `soak`.
        environment: where it can run: `python` (`.venv`, without a JVM), `spark` (`.venv`), `publish`, `pipeline` or
            `factory`.
        what: what is done, as a phrase for the page.
        holds: what must hold, as a sentence for the page.
        run: does it. Its argument is how much: 1.0 is the long form of `make attack` and `make soak`, about 0.01 the
            short form of `make test`, which takes at most some seconds.
    """

    name: str
    kind: Literal["attack", "soak"]
    environment: Literal["python", "spark", "publish", "pipeline", "factory"]
    what: str
    holds: str
    run: Callable[[float], Outcome]
