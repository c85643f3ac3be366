"""Publishing, while the syncer is killed over and over: tests/publish/soak.py."""

import tempfile
from pathlib import Path

from reliability.check import Check, Outcome

# The same kills in every run, as far as processes allow.
SEED = 18


def run(scale: float) -> Outcome:
    from soak import soak

    with tempfile.TemporaryDirectory() as folder:
        done = soak(Path(folder), shards=max(200, int(2000 * scale)), kills=max(6, int(20 * scale)), seed=SEED)
    # The kills themselves: some are during a commit, and commits were made between them.
    assert done.in_commits > 0
    assert done.revisions > done.kills
    return Outcome(done.kills, str(done).partition(" s. ")[0] + " s")


CHECK = Check(
    name="killed-syncer",
    kind="soak",
    environment="publish",
    what="four workers stage shards and a dataset is overwritten, while the process that syncs them is killed",
    holds="Every shard is in the repository once, and each revision has one whole dataset, in their order.",
    run=run,
)
