"""The page of mutants is that of the results, in which all that survived is explained."""

import json

from mutants.groups import GROUPS
from mutants.page import PAGE, RESULTS, page


def test_the_page_is_that_of_the_results() -> None:
    results = json.loads(RESULTS.read_text())
    assert PAGE.read_text() == page(results)
    assert set(results) <= set(GROUPS)
    for name, group in results.items():
        assert group["killed"] + len(group["survivors"]) == group["mutants"]
        assert group["killed"] >= 0.9 * group["mutants"], name
        assert [one for one in group["survivors"] if not one["why"]] == []
