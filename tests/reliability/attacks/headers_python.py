"""Headers of every kind, read by Python and by the official library in the same process."""

from typing import Any

from reliability.attacks.apart import in_batches
from reliability.bounded import resident_mb
from reliability.check import Check, Outcome

FILES = 1_000_000
SEED = 23
# Batches are processes: one after the other, so that a fault of memory is seen.
BATCH = 50_000


def run(scale: float) -> Outcome:
    files = int(FILES * scale)
    found = in_batches(compare, files, BATCH)
    accepted = sum(one["accepted"] for one in found)
    assert files / 10 < accepted < files, "the files reach no rule, or nothing behind the rules"
    memory = max(one["memory"] for one in found)
    return Outcome(
        files, f"{accepted:,} were accepted and {files - accepted:,} refused, in at most {memory} MB of memory"
    )


def compare(first: int, count: int) -> dict[str, int]:
    """Of so many files. Raises AssertionError with the one that the two see differently."""
    from fuzz import case

    accepted = 0
    for number in range(first, first + count):
        name, content = case(SEED, number)
        official = _official(content)
        # The library sorts tensors of the same offsets by chance, so that it finds one fault or another.
        if (ours := _ours(content)) != official and not _by_chance(content, ours, official):
            raise AssertionError(f"file {name}, {content[:2000]!r}: Python says {ours}, the library {official}"[:5000])
        accepted += not isinstance(official, str)
    return {"accepted": accepted, "memory": resident_mb()}


def _official(content: bytes) -> Any:
    """The name of the rule that it breaks, or its tensors."""
    from safetensors import SafetensorError, deserialize

    from judge import refused

    try:
        tensors = deserialize(content)  # type: ignore[no-untyped-call]
    except SafetensorError as error:
        return refused(error)["refused"]
    return {name: (one["dtype"], list(one["shape"]), bytes(one["data"])) for name, one in tensors}


def _ours(content: bytes) -> Any:
    from safetensors_spark import InvalidFileError
    from safetensors_spark._files.header import read_header

    try:
        header = read_header(lambda start, end: content[start:end], len(content), "name")
    except InvalidFileError as error:
        return error.rule
    buffer = content[header.data_start :]
    return {one.name: (one.dtype, list(one.shape), buffer[one.begin : one.end]) for one in header.tensors}


def _by_chance(content: bytes, ours: Any, official: Any) -> bool:
    from fuzz import TRIES_OF_CHANCE

    refused = isinstance(ours, str) and isinstance(official, str)
    return refused and any(_official(content) == ours for _ in range(TRIES_OF_CHANCE))


CHECK = Check(
    name="headers-python",
    kind="attack",
    environment="python",
    what="files with made and changed headers, from valid ones to bytes by chance, read by Python's reader",
    holds="The official library accepts the same files, with the same tensors, and refuses others for the same reason.",
    run=run,
)
