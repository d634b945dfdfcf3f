"""Verdicts on agents in the last hours, as the table names them.

What belongs here: plain names, so that programs without an engine can import them. What does not: formulas.
"""

FAILING = "failing"
SUSPECT = "suspect"
RECOVERING = "recovering"
QUIET = "quiet"
OK = "ok"

VERDICTS = (FAILING, SUSPECT, RECOVERING, OK, QUIET)
"""In the order in which a person on call wants them."""

LONG_HOURS = 6
"""Length of the longer of the two windows, and of the longest streak."""
RECOVERY_HOURS = 3
"""Hours after the last failing one in which an agent is recovering."""
