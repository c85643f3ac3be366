"""What is done for a long time. Importing this takes no package that one environment alone has."""

from reliability.check import Check
from reliability.soaks import killed_syncer, one_process, one_session, out_of_memory, wrong_clocks, year_of_appends

CHECKS: tuple[Check, ...] = (
    killed_syncer.CHECK,
    one_process.CHECK,
    one_session.CHECK,
    out_of_memory.CHECK,
    *wrong_clocks.CHECKS,
    year_of_appends.CHECK,
)
