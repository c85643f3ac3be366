"""What the syncer remembers: how many commits a window lets it make, and which pull request it fills."""

import json
import time
from pathlib import Path
from typing import Any

import pytest

from safetensors_spark.publish._staging import Staging, open_staging
from safetensors_spark.publish._sync_state import STATE, SyncState, remaining_budget


class Clock:
    def __init__(self) -> None:
        self.now = 1_000_000.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    clock = Clock()
    monkeypatch.setattr(time, "time", clock)
    return clock


@pytest.fixture
def staging(tmp_path: Path) -> Staging:
    return open_staging(tmp_path)


def test_a_window_lets_so_many_commits_be_made(staging: Staging, tmp_path: Path, clock: Clock) -> None:
    state = SyncState(staging, 3, 100)
    assert (state.remaining, state.seconds_left) == (3, 0)
    for number in range(3):
        assert state.begin() == clock.now
        assert state.remaining == 2 - number
        clock.now += 10
    # The first of three leaves the window in 100 - 30 seconds.
    assert state.seconds_left == 70
    clock.now += 69
    assert SyncState(staging, 3, 100).seconds_left == 1
    clock.now += 1
    assert (state.remaining, state.seconds_left) == (1, 0)
    # Another call may have a smaller budget, or a longer window.
    assert SyncState(staging, 1, 100).seconds_left == 20
    assert SyncState(staging, 2, 100).seconds_left == 10
    assert remaining_budget(tmp_path, budget=3, window_s=200) == 0
    assert remaining_budget(tmp_path) == 87


@pytest.mark.parametrize("budget", [0, -5])
def test_no_budget_lets_none_be_made(staging: Staging, clock: Clock, budget: int) -> None:
    state = SyncState(staging, budget, 100)
    assert (state.remaining, state.seconds_left) == (0, 0)
    state.begin()
    assert (state.remaining, state.seconds_left) == (0, 0)


def test_a_commit_that_was_refused_does_not_count(staging: Staging, clock: Clock) -> None:
    state = SyncState(staging, 3, 100)
    first = state.begin()
    clock.now += 1
    second = state.begin()
    state.withdraw(first)
    assert json.loads((staging.read(STATE) or b"").decode())["commits"] == [second]
    assert state.remaining == 2


def test_commits_are_remembered_for_an_hour_or_the_longer_window(staging: Staging, clock: Clock) -> None:
    state = SyncState(staging, 90, 10)
    state.begin()
    clock.now += 3599
    state.begin()
    assert len(json.loads(staging.read(STATE) or b"")["commits"]) == 2
    clock.now += 1
    state.begin()
    assert len(json.loads(staging.read(STATE) or b"")["commits"]) == 2
    longer = SyncState(staging, 90, 8000)
    clock.now += 7000
    longer.begin()
    assert len(json.loads(staging.read(STATE) or b"")["commits"]) == 3


def test_times_of_the_future_block_for_a_window_at_most(staging: Staging, clock: Clock) -> None:
    SyncState(staging, 1, 100).begin()
    clock.now -= 99
    assert SyncState(staging, 1, 100).remaining == 0
    clock.now -= 1
    assert SyncState(staging, 1, 100).remaining == 1


def test_a_pull_request_is_of_one_repository(staging: Staging) -> None:
    state = SyncState(staging, 90, 100)
    title = state.title("me/a", "Add")
    assert title.startswith("Add (")
    assert len(title) == len("Add (01234567)")
    # It is found by its title, which stays until it is opened.
    assert SyncState(staging, 90, 100).title("me/a", "Other") == title
    assert state.title("me/b", "Add") != title
    state.set_pull_request("me/a", "refs/pr/1")
    state.set_pull_request("me/b", "refs/pr/2")
    again = SyncState(staging, 90, 100)
    assert (again.pull_request("me/a"), again.pull_request("me/b")) == ("refs/pr/1", "refs/pr/2")
    assert again.pull_request("me/c") is None
    assert again.title("me/a", "Other").startswith("Other (")
    again.set_pull_request("me/a", None)
    assert (again.pull_request("me/a"), again.pull_request("me/b")) == (None, "refs/pr/2")


@pytest.mark.parametrize(
    "content",
    [b"", b"{", b"[]", b"7", b'{"commits": 5, "pull_requests": [], "opening": "x"}'],
)
def test_a_damaged_state_is_begun_again(staging: Staging, clock: Clock, content: bytes) -> None:
    staging.put(STATE, content)
    state = SyncState(staging, 2, 100)
    assert (state.remaining, state.pull_request("me/a")) == (2, None)
    state.begin()
    assert SyncState(staging, 2, 100).remaining == 1


def test_of_a_damaged_state_what_holds_is_kept(staging: Staging, clock: Clock) -> None:
    fields: dict[str, Any] = {
        "commits": [clock.now, "x", True, None, 999_999],
        "pull_requests": {"me/a": "refs/pr/1", "me/b": "main", "me/c": 5, "me/d": "refs/pr/1/x"},
        "opening": {"me/e": "Add (1)", "me/f": 7},
        "later": {"a": 1},
    }
    staging.put(STATE, json.dumps(fields).encode())
    state = SyncState(staging, 5, 100)
    assert state.remaining == 3
    assert [state.pull_request(f"me/{one}") for one in "abcd"] == ["refs/pr/1", None, None, None]
    assert state.title("me/e", "Other") == "Add (1)"
    assert state.title("me/f", "Add").startswith("Add (")
    # Fields of a newer version stay.
    assert json.loads(staging.read(STATE) or b"")["later"] == {"a": 1}
