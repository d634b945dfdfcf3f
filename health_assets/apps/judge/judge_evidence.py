"""Evidence for the safety judge: JSON about a run, without secrets, in as many parts as all its actions take.

What belongs here: runs, and how one becomes documents. What does not: which runs are sent and what comes back
(`judging`), and what a secret is (`core.redaction`).

No action is left out where the parts are few enough: who wants to hide one would only have to do many others around it.
Of more parts than are paid for, chance decides which are sent, anew each time: a choice that follows from the run would
tell its agent where to hide. Of the task and the error of a run, which stand in every part, no more than a beginning is
sent; the document says how much is missing.
"""

import json
import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from health_assets.core.redaction import Redaction

MOST_SENT_CHARACTERS = 20_000
"""Of one part."""
MOST_FIELD_CHARACTERS = 1_000
"""Of task, error and each action; even where JSON takes six characters for one, task and error alone fit."""
GOES_ON = "…"
"""Stands where a long action is parted: at the end of an entry and at the start of the one that follows."""
_CHANCE = random.SystemRandom()


@dataclass(frozen=True, kw_only=True)
class Run:
    """A run as the judge sees it, and the fields that its judgement needs; the agent is as the log names it."""

    execution_id: str
    agent_id: str
    ended_at: datetime
    task_id: str
    status: str
    error: str | None
    actions: Sequence[str]


@dataclass(frozen=True, kw_only=True)
class Evidence:
    """The documents about the runs of an id that the judge gets.

    Args:
        parts: JSON documents of at most `MOST_SENT_CHARACTERS` each, one or more.
        all_parts: how many there would be if all were sent.
        cut: texts of the run of which only a beginning is sent.
        secrets: secrets that were replaced in its texts.
    """

    parts: Sequence[str]
    all_parts: int
    cut: int
    secrets: int

    @property
    def is_sample(self) -> bool:
        """Whether parts are left out."""
        return len(self.parts) < self.all_parts


def evidence(runs: Sequence[Run], redaction: Redaction, most_parts: int) -> Evidence:
    """Make the documents about the runs of an id that the judge gets.

    Args:
        runs: the runs, mostly one; a document is about one of them.
        redaction: patterns of what is replaced in their texts.
        most_parts: of more parts of all of them, so many are chosen by chance, and kept in their order.
    """
    parts: list[dict[str, Any]] = []
    cut = secrets = 0
    for run in runs:
        [task, error, *actions], replaced = redaction.of_texts([run.task_id, run.error or "", *run.actions])
        document = {"task": _cut(task), "outcome": run.status, "error": _cut(error)}
        parts += _numbered(list(_parts(document, [entry for action in actions for entry in _entries(action)])))
        cut += sum(len(text) > MOST_FIELD_CHARACTERS for text in (task, error))
        secrets += replaced
    sent = sorted(_CHANCE.sample(range(len(parts)), min(most_parts, len(parts))))
    return Evidence(parts=[_dumped(parts[place]) for place in sent], all_parts=len(parts), cut=cut, secrets=secrets)


def _cut(text: str) -> str:
    if len(text) <= MOST_FIELD_CHARACTERS:
        return text
    kept = MOST_FIELD_CHARACTERS - 60
    return f"{text[:kept]}{GOES_ON} ({len(text) - kept:,} more characters are left out here)"


def _entries(action: str) -> Iterator[str]:
    """The action, or its pieces where it is long."""
    if len(action) <= MOST_FIELD_CHARACTERS:
        yield action
        return
    step = MOST_FIELD_CHARACTERS - 2 * len(GOES_ON)
    for start in range(0, len(action), step):
        before = GOES_ON if start else ""
        after = GOES_ON if start + step < len(action) else ""
        yield f"{before}{action[start : start + step]}{after}"


def _parts(document: dict[str, Any], entries: Sequence[str]) -> Iterator[dict[str, Any]]:
    """The document with as many entries at a time as fit."""
    room = MOST_SENT_CHARACTERS - len(_dumped({"part": f"{len(entries)} of {len(entries)}", **document, "actions": []}))
    taken: list[str] = []
    left = room
    for entry in entries:
        size = len(_dumped(entry)) + len(", ")
        if size > left and taken:
            yield {**document, "actions": taken}
            taken, left = [], room
        taken.append(entry)
        left -= size
    yield {**document, "actions": taken}


def _numbered(parts: Sequence[dict[str, Any]]) -> Iterator[dict[str, Any]]:
    if len(parts) == 1:
        return iter(parts)
    return ({"part": f"{place} of {len(parts)}", **part} for place, part in enumerate(parts, start=1))


def _dumped(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False)
