"""A short fuzz; `make fuzz` is the long one. Other files in every run: what fails is run again by its seed."""

import random
from itertools import islice

from fuzz import FIXED, cases_of, fuzz

CASES = 30_000


def test_made_and_changed_files_are_read_and_refused_as_by_the_official_library() -> None:
    seed = random.SystemRandom().randrange(10**6)
    report = fuzz(islice(cases_of(seed), CASES))
    print(f"seed {seed}\n{report}")
    assert report.differences == [], f"make fuzz FUZZ='--seed {seed} --cases {CASES}'"
    # The fuzz itself: it reaches all of the rules, and files that break none.
    assert report.cases == CASES > 10 * len(FIXED)
    assert min(report.verdicts.values()) > 50
    assert len(report.verdicts) == 11
    assert report.verdicts["accepted"] > CASES / 4
