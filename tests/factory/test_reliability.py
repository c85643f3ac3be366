"""The short form of attacks and soaks on the factory."""

import pytest

from reliability.check import Check
from reliability.environments import SHORT, checks_of


@pytest.mark.parametrize("check", checks_of("factory"), ids=lambda check: check.name)
def test_what_holds_in_the_short_form(check: Check) -> None:
    assert check.run(SHORT).attempts > 0
