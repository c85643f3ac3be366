"""The short form of attacks and soaks on Python and the command, and the page of what the long form showed."""

import pytest

from reliability.check import Check
from reliability.environments import CHECKS, SHORT, checks_of
from reliability.page import PAGE, page
from reliability.results import results


@pytest.mark.parametrize("check", checks_of("python"), ids=lambda check: check.name)
def test_what_holds_in_the_short_form(check: Check) -> None:
    assert check.run(SHORT).attempts > 0


def test_the_page_tells_the_recorded_results() -> None:
    assert page(results()) == PAGE.read_text(), "write it again: `python -m reliability.page`"


def test_each_check_is_on_the_page_and_described_as_it_is() -> None:
    text = PAGE.read_text()
    assert [check.name for check in CHECKS if f"| `{check.name}` |" not in text] == []
    checks = {one.name: (one.kind, one.environment, one.what, one.holds) for one in CHECKS}
    assert len(checks) == len(CHECKS)
    for name, one in results().items():
        assert (one["kind"], one["environment"], one["what"], one["holds"]) == checks[name]
