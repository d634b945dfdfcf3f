"""Kinds of evidence, and how many events of each are kept.

What belongs here: plain names and numbers, so that programs without an engine can import them. What does not: finding
the events (`evidence`).
"""

MOST = 5
"""Events that are kept of each agent and kind."""
SCORE_OF_KIND = {
    "failure": "reliability_score",
    "slow_run": "performance_score",
    "long_run": "stability_score",
    "sla_breach": "sla_score",
    "trigger_failure": "trigger_score",
}
"""Kinds of evidence, and the column of `agent_health` that is below 1 where they cost points."""
KINDS = tuple(SCORE_OF_KIND)
LONGEST_FIRST = ("slow_run", "long_run")
"""Kinds of which the longest run weighs most; of the others the latest event does."""
