"""Turns of coding agents' sessions: what a user asked for, up to the agent's hand-back, and the calls within.

What belongs here: records of the native format that the readers of all such sessions make. What does not: lines of one
agent's files.

Sessions hold prompts, code and paths. None of them leaves a reader: a content is handed on as its fingerprint, an error
as its kind, and a line that cannot be used as its reason alone.
"""

import hashlib
import re
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any, Protocol

import msgspec

from health_assets.logs.formats.foreign_lines import (
    Damage,
    Line,
    Record,
    Source,
    UnusableRecordError,
    as_content,
    line_of,
    present,
    rejected,
)
from health_assets.logs.formats.json_pieces import Document, DocumentError
from health_assets.logs.formats.lines import Fields, private_objects

SUCCESS, FAILURE, CANCELLED = "success", "failure", "cancelled"
"""How a turn ends; one that its user cancelled is a cancellation, which is no execution."""
BESIDE = "file that a coding agent keeps beside its sessions, which hold all that counts"
_LETTERS = str.maketrans("0123456789abcdef", "ghijklmnopabcdef")
_FINGERPRINT_LETTERS = 32
_ASCII = bytes(range(128))
_LOWER_AND_SPACED = bytes(32 if chr(byte).isspace() else byte for byte in _ASCII).lower() + bytes(range(128, 256))
"""By byte of UTF-8, the lower letter, or a space for a blank, where it is one of ASCII."""
_SPACES = re.compile(b"  +")
_KIND = re.compile(r"[a-z_]{1,40}|[A-Z][A-Za-z]{0,60}(Error|Exception|Exceeded|Expired|Timeout)")


def fingerprint(content: Any) -> str | None:
    """A digest in place of a content: equal for contents that differ in spaces and letters' case; None for none.

    It has letters alone: digits would be masked as an id before it is salted (`logs.digests`).
    """
    if content is None:
        return None
    text = as_content(content) or ""
    words = text.encode(errors="replace")
    if text.isascii() or _is_lower_and_without_blanks(words.translate(None, _ASCII).decode()):
        words = words.translate(_LOWER_AND_SPACED).strip()  # as bytes it takes a third of the time
        words = _SPACES.sub(b" ", words) if b"  " in words else words
    else:
        words = " ".join(text.lower().split()).encode(errors="replace")
    return hashlib.sha256(words).hexdigest()[:_FINGERPRINT_LETTERS].translate(_LETTERS) if words else None


def fingerprint_of_parts(parts: list[str]) -> str | None:
    """The fingerprint of a list of fingerprints; None for an empty one."""
    return fingerprint('["' + '", "'.join(parts) + '"]') if parts else None  # which JSON writes so


def _is_lower_and_without_blanks(others: str) -> bool:
    return others.lower() == others and others.split() == [others]


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
        moment = datetime.fromisoformat(record.get("timestamp"))  # type: ignore[arg-type]
    except (TypeError, ValueError):
        raise UnusableRecordError("timestamp must be ISO 8601") from None
    return moment.replace(tzinfo=UTC) if moment.tzinfo is None else moment


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

    def record(self) -> Record:
        """The execution of a turn that ended, or its cancellation where its user cancelled it."""
        assert self.ended_at is not None
        of_any_turn = {
            "execution_id": self.execution_id,
            "started_at": self.started_at.isoformat(),
            "ended_at": self.ended_at.isoformat(),
            "model": self.model,
        }
        if self.outcome == CANCELLED:
            return self.known | present({"type": "cancellation", **of_any_turn})
        return self.known | present(
            {
                "type": "execution",
                **of_any_turn,
                "status": self.outcome,
                "error": self.error,
                "api_calls": self.api_calls,
                "error_count": self.error_count,
                "actions": self.actions,
            }
        )


@dataclass(kw_only=True, slots=True)
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


NO_EVENT = "line that tells of no turn or call: a header, a time, a notice, messages from before and the like"
OPEN_TURN = "turn without a hand-back: it runs still, or its session was left"
SUBAGENTS_TURN = "turn of a subagent, whose calls count alone"
NOT_ALLOWED = "tool call that the user did not allow or stopped"
UNANSWERED = "tool call without a result: whether it failed is not known"
MODEL_ERROR = "error of the model or its provider"


@dataclass(kw_only=True)
class Turns:
    """The turns of a session, one after another, and what is counted besides.

    Args:
        tool: the coding agent's name among people.
        agent_id: its id.
        notes: the counts of the file.
        session_id: id of the session.
        version: of the coding agent.
        is_subagent: whether another agent asked for the session.
        current: the turn that is not closed yet.
    """

    tool: str
    agent_id: str
    notes: Counter[str]
    session_id: str | None = None
    version: str | None = None
    is_subagent: bool = False
    current: Turn | None = None

    @property
    def of(self) -> Record:
        """Ids of the agent and of the execution that a call belongs to."""
        return present({"agent_id": self.agent_id, "execution_id": self.current and self.current.execution_id})

    def note(self, what: str, count: int = 1) -> None:
        """Count what becomes nothing."""
        self.notes[f"{self.tool} {what}"] += count

    def begin(self, turn_id: str | None, at: datetime, asked: Any, model: str | None = None) -> Iterator[Record]:
        """Begin a turn; gives the record of the one before.

        Raises:
            UnusableRecordError: its id or that of the session is missing.
        """
        yield from self.close()
        if turn_id is None or self.session_id is None:
            raise UnusableRecordError("id of a prompt or of its session is missing")
        known = {
            "agent_id": self.agent_id,
            "agent_version": self.version,
            "session_id": self.session_id,
            "input": fingerprint(asked),
        }
        self.current = Turn(execution_id=turn_id, known=present(known), started_at=at, model=model)

    def close(self, *, is_last: bool = False) -> Iterator[Record]:
        """The record of the turn, if it ended.

        Args:
            is_last: whether the file ends here, so that one may go on of which it is not certain that it ended.
        """
        turn, self.current = self.current, None
        if turn is None:
            return
        if self.is_subagent:
            self.note(SUBAGENTS_TURN)
        elif turn.outcome is None or (is_last and not turn.is_certain):
            self.note(OPEN_TURN)
        else:
            yield turn.record()


class UnusableSessionError(Exception):
    """Nothing of a session can be read; says why."""


class Session(Protocol):
    """What is known after some lines of a session."""

    def records(self, record: Record) -> Iterable[Record]:
        """What a line completes.

        Raises:
            UnusableRecordError: the line cannot be used.
            UnusableSessionError: neither can the others.
        """

    def end(self) -> Iterator[Record]:
        """What the end of the file completes."""


def lines_of(source: Source, session: Session, fields: Fields | None = None) -> Iterator[Line]:
    """A line for each record of a session; one that cannot be used is rejected without its text.

    Args:
        source: the file.
        session: makes the records.
        fields: what the session looks at; others are not read.
    """
    yield from _lines(session, private_objects(source.blocks, fields))


def lines_of_document(source: Source, session: Session, name: str = "") -> Iterator[Line]:
    """The same of a document: of a list, or of an object, whose members come first, and then those of its list.

    Args:
        source: the file.
        session: makes the records.
        name: of the object's member that is a list of records.
    """
    yield from _lines(session, _elements(source, name))


def _elements(source: Source, name: str) -> Iterator[tuple[int, Record] | Line]:
    document, number = Document(source.blocks), 0
    try:
        if document.peek() == "[":
            for number, record in enumerate(document.elements(), 1):
                yield number, record
        else:
            about: Record = {}
            for member in document.members():
                if member != name or document.peek() != "[":
                    about[member] = document.value()
                    continue
                yield 1, about
                for number, record in enumerate(document.elements(), 1):
                    yield number, record
        document.finish()
    except DocumentError as error:
        yield rejected(number + 1, "", error.reason)


def _line_of(number: int, record: Record) -> Line:
    """As `line_of`, in a third of the time; it may write the exponent of a number otherwise."""
    try:
        text = msgspec.json.format(msgspec.json.encode(record), indent=0).decode()
    except (ValueError, OverflowError):  # half a surrogate pair, a number beyond 64 bits
        return line_of(number, record)
    return Line(number, text) if text.isascii() else line_of(number, record)


def _lines(session: Session, items: Iterator[tuple[int, Record] | Line]) -> Iterator[Line]:
    number = 0
    for item in items:
        if isinstance(item, Line):
            yield item
            continue
        number, record = item
        try:
            if not isinstance(record, dict):
                raise UnusableRecordError("a record of a session must be an object")
            for made in session.records(record):
                yield _line_of(number, made)
        except UnusableRecordError as error:
            yield rejected(number, "", str(error))
        except UnusableSessionError as error:
            yield rejected(number, "", str(error))
            return
    for made in session.end():
        yield _line_of(max(number, 1), made)
