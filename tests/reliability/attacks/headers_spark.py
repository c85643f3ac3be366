"""Headers of every kind, read by Spark's reader and by the official library."""

from itertools import islice

from reliability.check import Check, Outcome

FILES = 1_000_000
SEED = 29


def run(scale: float) -> Outcome:
    from fuzz import cases_of, fuzz

    report = fuzz(islice(cases_of(SEED), int(FILES * scale)))
    assert report.differences == [], report
    accepted = report.verdicts["accepted"]
    assert report.cases / 10 < accepted < report.cases, "the files reach no rule, or nothing behind the rules"
    return Outcome(
        report.cases, f"{accepted:,} were accepted and {report.cases - accepted:,} refused, in a heap of 64 MB"
    )


CHECK = Check(
    name="headers-spark",
    kind="attack",
    environment="spark",
    what="files with made and changed headers, from valid ones to bytes by chance, read by Spark's reader",
    holds="The official library accepts the same files with the same bytes, and refuses others for the same reason.",
    run=run,
)
