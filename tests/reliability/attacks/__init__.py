"""What is done to the project on purpose. Importing this takes no package that one environment alone has."""

from reliability.attacks import headers_python
from reliability.check import Check

CHECKS: tuple[Check, ...] = (headers_python.CHECK,)
