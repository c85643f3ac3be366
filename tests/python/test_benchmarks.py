"""What the benchmarks compute, record and show."""

import xml.etree.ElementTree as ET
from pathlib import Path

import pytest
from benchmarks import functions, page, plots, results
from benchmarks.harness import Contender, side_by_side, table
from benchmarks.results import Growth, Measure, Result, Series, Table, exponent, ratio, within_rounds

RUN = {
    "command": "make bench",
    "date": "2026-11-24",
    "commit": "abcdef0",
    "machine": {"cpu": "AMD EPYC", "cores": 2},
    "versions": {"Python": "3.11.7"},
}
LIMIT, OURS, OTHER = (
    Result("limit", {"seconds": [1.0, 2.0, 4.0]}, is_ours=False),
    Result("ours", {"seconds": [2.0, 4.0, 2.0]}, aims={"seconds": 0.7}),
    Result("other", {"seconds": [8.0, 8.0, 8.0]}, is_ours=False),
)
SECONDS = Table("disk", "Writing", [Measure("seconds", "less")], [LIMIT, OURS, OTHER], "limit")


def test_ratios_are_of_the_same_round_and_say_how_many_times_as_fast() -> None:
    # By round 1/2, 2/4 and 4/2: the ratio of the medians would be 1.
    assert within_rounds([1.0, 2.0, 4.0], [2.0, 4.0, 2.0]) == 0.5
    assert ratio([2.0, 4.0, 2.0], [1.0, 2.0, 4.0], Measure("seconds", "less")) == 0.5
    assert ratio([2.0, 4.0, 2.0], [1.0, 2.0, 4.0], Measure("rows a second", "more")) == 2
    with pytest.raises(ValueError, match="zip"):
        within_rounds([1.0], [1.0, 2.0])


def test_a_result_is_compared_with_the_limit_and_if_it_is_ours_with_each_alternative() -> None:
    limit, ours, other = (one["ratios"]["seconds"] for one in SECONDS.json()["results"])
    assert limit == {}
    assert ours == {"limit": 0.5, "other": 4.0}
    assert other == {"limit": 0.25}


def test_exponents_are_those_of_powers() -> None:
    sizes = (10, 40, 160, 640)
    assert exponent({size: 3e-6 * size for size in sizes}) == pytest.approx(1)
    assert exponent(dict.fromkeys(sizes, 0.2)) == pytest.approx(0)
    assert exponent({size: 5 * size**1.5 for size in sizes}) == pytest.approx(1.5)
    # Least squares: an error up and one down of the same size in the middle take nothing away from the line's slope.
    assert exponent({1: 1.0, 10: 10 * 1.3, 100: 100 * 1.3, 1000: 1000.0}) == pytest.approx(1)


def test_what_is_recorded_replaces_the_table_of_its_name_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(results, "RESULTS", tmp_path)
    memory = Table("memory", "Writing", SECONDS.measures, [LIMIT, OURS], "limit")
    results.record("write", [SECONDS, memory], RUN)
    faster = Result("ours", {"seconds": [1.0, 2.0, 4.0]})
    results.record("write", [Table("disk", "Writing", SECONDS.measures, [LIMIT, faster], "limit")], RUN)
    disk, kept = results.read("write")
    assert (disk["name"], disk["run"]) == ("disk", RUN | {"rounds": 3})
    assert disk["results"][1]["values"]["seconds"] == {"median": 2, "least": 1, "most": 4, "rounds": [1, 2, 4]}
    assert kept == memory.json() | {"run": RUN | {"rounds": 3}}


def test_the_harness_makes_the_first_contender_the_limit_and_tells_the_rate() -> None:
    contenders = [Contender("plain", print, is_ours=False), Contender("ours", print, 0.7)]
    made = table("disk", "Writing", contenders, {"plain": [1.0], "ours": [2.0]}, 4_000_000_000).json()
    assert made["limit"] == "plain"
    assert made["results"][1]["values"]["GB/s of input"]["median"] == 2
    assert made["results"][1]["ratios"] == {"seconds": {"plain": 0.5}}
    assert made["results"][1]["aims"] == {"seconds": 0.7}


def test_tables_of_several_queries_become_one_with_a_line_for_each_contender() -> None:
    first = Table(
        "a",
        "a",
        [Measure("a, s", "less")],
        [Result("ours", {"a, s": [1.0]}), Result("old", {"a, s": [2.0]}, False)],
        None,
    )
    second = Table("b", "b", [Measure("b, s", "less")], [Result("ours", {"b, s": [3.0]})], None)
    joined = side_by_side("both", "Both", [first, second], None).json()
    assert [one["name"] for one in joined["results"]] == ["ours", "old"]
    assert joined["results"][0]["ratios"] == {"a, s": {"old": 2}, "b, s": {}}


def test_tables_show_spreads_ratios_and_aims() -> None:
    assert page.markdown(SECONDS.json()).splitlines() == [
        "| Writing | seconds | x limit |",
        "| --- | --- | --- |",
        "| limit | 2.00 (1.00-4.00) | 1 |",
        "| ours | 2.00 (2.00-4.00) | 0.50 (aim 0.7) |",
        "| other | 8.00 | 0.25 |",
    ]
    told = page.origin(RUN | {"rounds": 3})
    assert "2 cores of an AMD EPYC" in told
    assert "`make bench`, 3 rounds, 24 November 2026, commit abcdef0" in told


def test_growth_shows_each_size_and_the_exponent() -> None:
    series = Series("load", 1, {10: [1.0], 100: [10.0]}, {10: {"resident MB": 50}, 100: {"resident MB": 500}})
    grown = Growth("files", "Files", "files", [series]).json()
    assert grown["series"][0]["exponent"] == 1
    lines = page.markdown(grown).splitlines()
    assert lines[0] == "| Files: CPU seconds at | 10 | 100 | exponent | expected |"
    assert "| load | 1.00 | 10.0 | 1.00 | 1 |" in lines
    assert "| load: resident MB | 50.0 | 500 |" in lines
    assert "exponent 1.00" in plots.lines(grown)


def test_what_jmh_prints_is_a_table_for_each_number_of_elements() -> None:
    lines = """
    [info] | elements | | microseconds | x a copy to a new array | aim | x a copy to the same array |
    [info] | 4,096 | System.arraycopy toNewArray | 2.00 | 1.00 |  | 0.05 |
    [info] | 4,096 | BF16 decode | 4.00 | 0.50 | 0.25 | 0.03 |
    [info] | 262,144 | System.arraycopy toNewArray | 150.00 | 1.00 |  | 0.20 |"""
    small, large = (table.json() for table in functions.tables(lines.splitlines()))
    assert (small["name"], large["name"]) == ("elements-4096", "elements-262144")
    assert small["results"][1]["ratios"] == {"microseconds": {"copy to a new array": 0.5}}
    assert small["results"][1]["aims"] == {"microseconds": 0.25}


def test_the_page_and_the_plots_are_what_the_results_make() -> None:
    text = page.PAGE.read_text()
    assert page.filled(text) == text, "run `python -m benchmarks.page`"
    assert {path.name: path.read_text() for path in page.PLOTS.glob("*.svg")} == page.drawn()


def test_a_result_without_a_place_in_the_page_gets_one(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(page, "tables", lambda: {("write", "disk"): SECONDS.json() | {"run": RUN | {"rounds": 3}}})
    with pytest.raises(ValueError, match="`write disk`"):
        page.filled("no place")
    assert "| ours | 2.00 (2.00-4.00) |" in page.filled(page.with_places("no place\n"))
    behind = page.with_places("<!-- results: write memory -->\n<!-- end -->\n\n## Next\n")
    assert behind.index("memory") < behind.index("write disk") < behind.index("## Next")
    with pytest.raises(ValueError, match="`write memory`"):
        page.filled("<!-- results: write memory -->\n<!-- end -->")


def test_ratios_of_the_results_are_those_of_their_rounds() -> None:
    for found_table in page.tables().values():
        of = {one["name"]: one["values"] for one in found_table.get("results", [])}
        for one in found_table.get("results", []):
            for measure in found_table["measures"]:
                for other, found in one["ratios"].get(measure["name"], {}).items():
                    ours, theirs = of[one["name"]][measure["name"]], of[other][measure["name"]]
                    if "rounds" in ours:
                        expected = ratio(ours["rounds"], theirs["rounds"], Measure(**measure))
                        assert found == pytest.approx(expected, rel=0.01)


def test_plots_fit_their_width() -> None:
    """A character is some 6.3 points wide."""
    for name, svg in page.drawn().items():
        root = ET.fromstring(svg)
        width = float(root.attrib["width"])
        for text in root.iter("{http://www.w3.org/2000/svg}text"):
            long, x, kind = 6.3 * len(text.text or ""), float(text.attrib["x"]), text.attrib["class"]
            begin = x - long if "end" in kind else x - long / 2 if "middle" in kind else x
            assert 0 <= begin <= begin + long <= width, f"{name}: {text.text}"
