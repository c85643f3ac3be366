"""A short fuzz, of the same files in every run; `make fuzz` is the long one, of other files in every run."""

from itertools import islice

from fuzz import FIXED, cases_of, fuzz

SEED = 16
CASES = 30_000


def test_made_and_changed_files_are_read_and_refused_as_by_the_official_library() -> None:
    report = fuzz(islice(cases_of(SEED), CASES))
    print(report)
    assert report.differences == [], f"make fuzz FUZZ='--seed {SEED} --cases {CASES}'"
    # The fuzz itself: it reaches all of the rules, and files that break none.
    assert report.cases == CASES > 10 * len(FIXED)
    assert min(report.verdicts.values()) > 50
    assert len(report.verdicts) == 11
    assert report.verdicts["accepted"] > CASES / 4
