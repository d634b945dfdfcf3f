"""Judges: who may have judged a run, whom to believe first, and which logs may speak for whom.

What belongs here: kinds of judges, and the SQL that says as whose a judgement counts. What does not: what verdicts add
up to (`scoring.safety_verdicts`) and the model that judges (`apps.judge`).

Everybody who writes a log can write `"judged_by": "person"`. So a claim counts only where the log lies in a place that
an operator trusts, and that nobody else can write; from anywhere else it is kept, and the judgement counts as the
agent's own.
"""

import os
import stat
from collections.abc import Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase

AGENT, MODEL, PERSON = "agent", "model", "person"
KINDS = (AGENT, MODEL, PERSON)
"""Kinds of judges, the one that is believed least first."""

FOLDER = "judgements"
"""Where the product's own judge writes, below the raw root."""
ROOT_USER = 0

Writers = frozenset[int] | None
"""Ids of the users to whom a file and the folders above it, up to the raw root, belong; None where others can write one
of them. Of an object in a store, nobody: who may write there is the store's business."""
NOBODY: frozenset[int] = frozenset()


def writers_of(above: Writers, status: os.stat_result) -> Writers:
    """The users who can write a file or folder of this status."""
    if above is None or status.st_mode & (stat.S_IWGRP | stat.S_IWOTH):
        return None
    return above | {status.st_uid}


@dataclass(frozen=True)
class Trust:
    """The logs whose judgements may speak as a model or a person.

    Args:
        patterns: shell patterns of paths relative to the raw root; `*` stands for slashes, too.
        users: ids of users, besides the program's own and root, whose files count.
    """

    patterns: Sequence[str] = (f"{FOLDER}/*",)
    users: frozenset[int] = NOBODY

    def names(self, source_file: str) -> bool:
        """Whether a log has a name that is trusted; whoever can write there is another matter."""
        return any(fnmatchcase(source_file, pattern) for pattern in self.patterns)

    def covers(self, source_file: str, writers: Writers) -> bool:
        """Whether a log's judgements count as whose they say they are."""
        return self.names(source_file) and self.why_not(writers) is None

    def why_not(self, writers: Writers) -> str | None:
        """The reason why nobody can tell whose words a file's are; None where there is none."""
        if writers is None:
            return "it or a folder above it can be written by others than its owner"
        others = sorted(writers - self.users - {ROOT_USER, os.geteuid()})
        if others:
            return f"it or a folder above it belongs to user {others[0]}, whom HEALTH_TRUSTED_USERS does not name"
        return None


TRUSTED = Trust()
"""The trust where no setting names another."""


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
