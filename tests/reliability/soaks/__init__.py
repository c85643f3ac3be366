"""What is done for a long time. Importing this takes no package that one environment alone has."""

from reliability.check import Check
from reliability.soaks import killed_syncer

CHECKS: tuple[Check, ...] = (killed_syncer.CHECK,)
