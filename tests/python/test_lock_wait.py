"""A write that waits for the lock: how often it looks, what it says, and when it takes the lock of a dead holder."""

import re
import time
from itertools import pairwise
from pathlib import Path

import pytest

from safetensors_spark._files.commit.local_target import LocalTarget
from safetensors_spark._files.commit.lock import _Wait
from safetensors_spark._files.commit.lock_record import LOCK, STALE_MILLIS, alive_file, new_record, parse_record
from safetensors_spark._files.storage import LocalFolder


class Clock:
    """Seconds that pass while somebody sleeps."""

    def __init__(self) -> None:
        self.now, self.pauses = 1000.0, list[float]()

    def __call__(self) -> float:
        return self.now

    def sleep(self, seconds: float) -> None:
        assert self.now < 2000, "it waits for ever"
        self.now += seconds
        self.pauses.append(seconds)


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    clock = Clock()
    monkeypatch.setattr(time, "sleep", clock.sleep)
    return clock


@pytest.fixture
def target(tmp_path: Path) -> LocalTarget:
    return LocalTarget(LocalFolder(tmp_path))


def test_it_takes_the_lock_of_a_holder_without_signs_of_life(
    target: LocalTarget, clock: Clock, caplog: pytest.LogCaptureFixture
) -> None:
    dead, record = new_record(100_000), new_record()
    target.overwrite(LOCK, dead.text())
    target.overwrite(alive_file(dead.id), b"\0")
    held = _Wait(target, record, clock).acquire()
    assert target.read(LOCK) == record.text()
    held.close()
    assert target.names() == []
    assert 100 < clock.now - 1000 < 102
    # It looks more and more seldom, but every second.
    assert clock.pauses[0] < 0.06
    assert clock.pauses[:-1] == sorted(clock.pauses[:-1])
    assert max(clock.pauses) == 1
    said = [record.getMessage() for record in caplog.records]
    waited = [
        int(found[1]) for one in said if (found := re.match(r"This write has waited for (\d+) s for another", one))
    ]
    assert waited[0] == 2
    assert {after - before for before, after in pairwise(waited)} <= {30, 31}
    assert len(waited) == 4
    assert (
        f"holds {target.location}/{LOCK} ({dead}). That one has shown no sign of life for 2 s; after 100 s" in said[0]
    )
    assert f"{LOCK} is removed: it has not changed for 100 s, so its holder is dead ({dead})" in said[-1]


def test_a_lock_that_was_written_in_part_is_taken_after_the_usual_time(
    target: LocalTarget, clock: Clock, caplog: pytest.LogCaptureFixture
) -> None:
    target.overwrite(LOCK, b'{"id":')
    _Wait(target, new_record(), clock).acquire().close()
    assert STALE_MILLIS == 300_000
    assert 300 < clock.now - 1000 < 302
    assert "it does not say whose it is" in caplog.text


def test_a_sign_of_life_begins_the_time_again(
    target: LocalTarget, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    holder = new_record(20_000)
    target.overwrite(LOCK, holder.text())

    def sleep(seconds: float) -> None:
        if clock.now < 1030:
            target.overwrite(alive_file(holder.id), b"\0" * int(clock.now - 999))
        clock.sleep(seconds)

    monkeypatch.setattr(time, "sleep", sleep)
    _Wait(target, new_record(), clock).acquire().close()
    assert 49 < clock.now - 1000 < 53


@pytest.mark.parametrize(
    "changed",
    [b"", b"[]", b"7", b"null", b'"text"', b"\xff", b'{"id":1}', b"[" * 100_000],
)
def test_what_is_no_record_of_a_holder(changed: bytes) -> None:
    assert parse_record(changed) is None


@pytest.mark.parametrize("field", ["id", "application", "process", "host", "since", "stale_after_ms"])
def test_a_record_lacks_nothing(field: str) -> None:
    record = new_record()
    assert parse_record(record.text()) == record
    assert parse_record(record.text().replace(f'"{field}"'.encode(), b'"other"')) is None


def test_a_record_whose_id_is_no_name_of_a_file() -> None:
    record = new_record()
    assert parse_record(record.text().replace(record.id.encode(), b"../../x")) is None
