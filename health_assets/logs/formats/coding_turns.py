"""Turns of coding agents' sessions: what a user asked for, up to the agent's hand-back, and the calls within.

What belongs here: records of the native format that the readers of all such sessions make. What does not: lines of one
agent's files.

Sessions hold prompts, code and paths. None of them leaves a reader: a content is handed on as its fingerprint, an error
as its kind, and a line that cannot be used as its reason alone.
"""

import hashlib
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Protocol

from health_assets.logs.formats.foreign_lines import (
    Damage,
    Line,
    Record,
    Source,
    UnusableRecordError,
    as_content,
    as_time,
    line_of,
    present,
    rejected,
)
from health_assets.logs.formats.lines import private_objects

SUCCESS, FAILURE, CANCELLED = "success", "failure", "cancelled"
"""How a turn ends; one that is cancelled is counted, since an execution has no such status."""
BESIDE = "file that a coding agent keeps beside its sessions, which hold all that counts"
_LETTERS = str.maketrans("0123456789abcdef", "ghijklmnopabcdef")
_FINGERPRINT_LETTERS = 32
_KIND = re.compile(r"[a-z_]{1,40}|[A-Z][A-Za-z]{0,60}(Error|Exception|Exceeded|Expired|Timeout)")


def fingerprint(content: Any) -> str | None:
    """A digest in place of a content: equal for contents that differ in spaces and letters' case; None for none.

    It has letters alone: digits would be masked as an id before it is salted (`logs.digests`).
    """
    words = (as_content(content) or "").lower().split()
    if not words:
        return None
    digest = hashlib.sha256(" ".join(words).encode(errors="replace")).hexdigest()
    return digest[:_FINGERPRINT_LETTERS].translate(_LETTERS)


def read_beside(source: Source) -> Iterator[Line]:
    """Nothing of a file beside the sessions; it is counted."""
    for block in source.blocks:
        if isinstance(block, Damage):
            yield rejected(1, "", block.reason)
    source.notes[BESIDE] += 1


def agent_of_project(tool: str, folder: Any) -> str:
    """The agent of a session in a project, by the last name of its folder; the tool alone where that is not told."""
    name = re.split(r"[/\\]", folder.rstrip("/\\"))[-1] if isinstance(folder, str) else ""
    return f"{tool}/{name}" if name else tool


def time_of(record: Record) -> datetime:
    """When a line was written.

    Raises:
        UnusableRecordError: it does not tell.
    """
    try:
        return as_time(record.get("timestamp"), "timestamp")
    except UnusableRecordError:
        raise UnusableRecordError("timestamp must be ISO 8601") from None


def kind_of(error: Any) -> str | None:
    """The kind of an error where it is a word or the name of an exception; other texts may hold what was asked."""
    return error if isinstance(error, str) and _KIND.fullmatch(error) else None


def milliseconds(start: datetime, end: datetime) -> float | None:
    """From one time to a later one; None where clocks went back."""
    return (end - start).total_seconds() * 1000 if end >= start else None


@dataclass(kw_only=True)
class Turn:
    """What a user asked for, up to the agent's hand-back.

    Args:
        execution_id: its id.
        known: fields of its execution that are known from its start on.
        started_at: when it was asked.
        is_command: whether it was asked by a command, which may need no agent.
        model: the first model that worked on it.
        actions: names of the tools that the agent itself called, in order.
        api_calls: answers of a model to the agent itself.
        error_count: failed calls of tools and models.
        outcome: how it ended so far; None while the agent works on it.
        is_certain: whether the log tells that it ended, rather than that the agent could have ended so.
        ended_at: when it ended.
        error: kind of the error that it ended with.
    """

    execution_id: str
    known: Record
    started_at: datetime
    is_command: bool = False
    model: str | None = None
    actions: list[str] = field(default_factory=list)
    api_calls: int = 0
    error_count: int = 0
    outcome: str | None = None
    is_certain: bool = False
    ended_at: datetime | None = None
    error: str | None = None

    @property
    def is_untouched(self) -> bool:
        """Whether neither a model nor the user did anything about it."""
        return not self.api_calls and not self.error_count and self.outcome is None

    def end(self, outcome: str, at: datetime, error: str | None = None, *, is_certain: bool = True) -> None:
        """Note that it ended, unless the agent goes on."""
        self.outcome, self.ended_at, self.error, self.is_certain = outcome, at, error, is_certain

    def go_on(self) -> None:
        """Note that the agent works on it."""
        self.outcome, self.ended_at, self.error, self.is_certain = None, None, None, False

    def execution(self) -> Record:
        """The execution of a turn that ended."""
        assert self.ended_at is not None
        return self.known | present(
            {
                "type": "execution",
                "execution_id": self.execution_id,
                "started_at": self.started_at.isoformat(),
                "ended_at": self.ended_at.isoformat(),
                "status": self.outcome,
                "error": self.error,
                "model": self.model,
                "api_calls": self.api_calls,
                "error_count": self.error_count,
                "actions": self.actions,
            }
        )


@dataclass(frozen=True, kw_only=True)
class ToolCall:
    """A call of a tool whose result is awaited.

    Args:
        tool: name of the tool.
        of: ids of its agent and execution.
        started_at: when it was asked for.
        arguments: fingerprint of its arguments.
        turn: the turn that it is an action of; None for one of a subagent.
    """

    tool: str
    of: Record
    started_at: datetime
    arguments: str | None
    turn: Turn | None

    def record(self, call_id: str, at: datetime, *, latency_ms: float | None, error: str | None, result: Any) -> Record:
        """The finished call; it failed if it has an error."""
        if error is not None and self.turn is not None:
            self.turn.error_count += 1
        return self.of | present(
            {
                "type": "tool_call",
                "call_id": call_id,
                "tool": self.tool,
                "ended_at": at.isoformat(),
                "status": SUCCESS if error is None else FAILURE,
                "error": error,
                "latency_ms": milliseconds(self.started_at, at) if latency_ms is None else latency_ms,
                "arguments": self.arguments,
                "result": fingerprint(result),
            }
        )


class UnusableSessionError(Exception):
    """Nothing of a session can be read; says why."""


class Session(Protocol):
    """What is known after some lines of a session."""

    def records(self, record: Record) -> Iterator[Record]:
        """What a line completes.

        Raises:
            UnusableRecordError: the line cannot be used.
            UnusableSessionError: neither can the others.
        """

    def end(self) -> Iterator[Record]:
        """What the end of the file completes."""


def lines_of(source: Source, session: Session) -> Iterator[Line]:
    """A line for each record of a session; one that cannot be used is rejected without its text."""
    number = 0
    for item in private_objects(source.blocks):
        if isinstance(item, Line):
            yield item
            continue
        number, record = item
        try:
            for made in session.records(record):
                yield line_of(number, made)
        except UnusableRecordError as error:
            yield rejected(number, "", str(error))
        except UnusableSessionError as error:
            yield rejected(number, "", str(error))
            return
    for made in session.end():
        yield line_of(number, made)
