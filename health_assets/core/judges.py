"""Judges: who may have judged a run, whom to believe first, and which logs may speak for whom.

What belongs here: kinds of judges, and the SQL that says as whose a judgement counts. What does not: what verdicts add
up to (`systems.reliability.safety`) and the model that judges (`apps.judge`).

Everybody who writes a log can write `"judged_by": "person"`. So a claim counts only where the log lies in a place that
an operator trusts; from anywhere else it is kept, and the judgement counts as the agent's own.
"""

from collections.abc import Collection, Sequence
from fnmatch import fnmatchcase

AGENT, MODEL, PERSON = "agent", "model", "person"
KINDS = (AGENT, MODEL, PERSON)
"""Kinds of judges, the one that is believed least first."""

FOLDER = "judgements"
"""Where the product's own judge writes, below the raw root."""
TRUSTED = (f"{FOLDER}/*",)
"""Logs whose judgements may speak as a model or a person, unless a setting names others."""


def is_trusted(source_file: str, patterns: Collection[str]) -> bool:
    """Whether a log's judgements count as whose they say they are.

    Args:
        source_file: the log, relative to the raw root.
        patterns: shell patterns of such paths; `*` stands for slashes, too.
    """
    return any(fnmatchcase(source_file, pattern) for pattern in patterns)


def judged_by(is_trusted_log: str, reported: str) -> str:
    """SQL for the kind of judge that a judgement counts as.

    Args:
        is_trusted_log: SQL for whether its log is trusted.
        reported: SQL for the kind that the line states, or null. A line of a trusted log that states none is a
            model's, since older judges of ours did not state it.
    """
    return f"CASE WHEN {is_trusted_log} THEN coalesce({reported}, '{MODEL}') ELSE '{AGENT}' END"


def among(column: str, values: Sequence[int]) -> str:
    """SQL for whether a column is one of some numbers."""
    return f"{column} IN ({', '.join(map(str, values))})" if values else "false"
