"""Sessions of GitHub Copilot CLI, `~/.copilot/session-state/*/events.jsonl`: an event a line.

What belongs here: what an event of these files says. What does not: what a turn is (`coding_turns`). The mapping:
docs/formats.md.
"""

import re
from collections.abc import Iterator
from datetime import datetime
from typing import Any

from health_assets.logs.conventions import UNKNOWN_MODEL
from health_assets.logs.formats.coding_turns import (
    CANCELLED,
    FAILURE,
    MODEL_ERROR,
    NO_EVENT,
    NOT_ALLOWED,
    SUCCESS,
    UNANSWERED,
    ToolCall,
    Turns,
    fingerprint,
    kind_of,
    lines_of,
    time_of,
)
from health_assets.logs.formats.foreign_lines import Line, Record, Source, UnusableRecordError, present
from health_assets.logs.formats.opening import Opening
from health_assets.logs.json_values import as_count, as_list, as_name, as_object

EVENT = {"type", "data", "id", "timestamp", "parentId"}
KINDS = ("session.", "user.message", "assistant.", "tool.", "system.message")
TEXT = re.compile(rb'"producer"\s*:\s*"copilot-agent"|"type"\s*:\s*"(user\.message|assistant\.message|session\.start)"')
"""A part of a session, also of one whose lines are no objects."""
DENIED = ("denied", "rejected", "cancelled", "aborted")
"""Codes of errors of tools that the user did not allow, or stopped."""


def recognizes(opening: Opening) -> bool:
    """Whether a file that begins so has an event of a session a line."""
    return opening.has_lines and any(map(_is_event, opening.first_records))


def read(source: Source) -> Iterator[Line]:
    """An execution or a cancellation of each turn that ended, a model call for each answer, and the tool calls."""
    yield from lines_of(source, _Session(source))


def _is_event(record: Record) -> bool:
    kind = record.get("type")
    return record.keys() >= EVENT and isinstance(kind, str) and kind.startswith(KINDS)


class _Session:
    """What is known after some events.

    Args:
        source: the file.
    """

    def __init__(self, source: Source) -> None:
        self._turns = Turns(tool="Copilot CLI", agent_id="copilot-cli", notes=source.notes)
        self._answers: set[str] = set()
        self._waiting: dict[str, ToolCall] = {}

    def records(self, record: Record) -> Iterator[Record]:
        """What a line completes."""
        kind, data, turn = record.get("type"), as_object(record.get("data")), self._turns.current
        is_own = record.get("agentId") is None
        if kind == "session.start":
            yield from self._turns.close(is_last=True)
            self._turns.session_id = as_name(data.get("sessionId"))
            self._turns.version = as_name(data.get("copilotVersion"))
            self._turns.note(NO_EVENT)
        elif kind == "user.message" and is_own and data.get("isAutopilotContinuation") is not True:
            yield from self._turns.begin(as_name(record.get("id")), time_of(record), data.get("content"))
        elif kind == "assistant.message":
            yield from self._answered(time_of(record), data, is_own=is_own)
        elif kind == "tool.execution_start":
            self._called(time_of(record), data, is_own=is_own)
        elif kind == "tool.execution_complete":
            yield from self._result(time_of(record), data)
        elif turn is not None and is_own:
            self._told(kind, time_of(record), data)
        else:
            self._turns.note(NO_EVENT)

    def end(self) -> Iterator[Record]:
        """What the end of the file completes."""
        yield from self._turns.close(is_last=True)
        if self._waiting:
            self._turns.note(UNANSWERED, len(self._waiting))

    def _told(self, kind: Any, at: datetime, data: Record) -> None:
        """Note what an event tells of the turn's end."""
        turn = self._turns.current
        assert turn is not None
        if kind == "assistant.turn_end" and turn.outcome == SUCCESS:
            turn.is_certain = True
        elif kind == "session.task_complete":
            has_failed = data.get("success") is False
            turn.end(*((FAILURE, at, "the agent gave up") if has_failed else (SUCCESS, at)))
        elif kind == "session.error":
            turn.error_count += 1
            turn.end(FAILURE, at, _error_of(data))
        elif kind == "abort":
            turn.end(CANCELLED, at)
        else:
            self._turns.note(NO_EVENT)

    def _answered(self, at: datetime, data: Record, *, is_own: bool) -> Iterator[Record]:
        """The model call of an answer, of which each part is an event of its own; one without a tool may hand back."""
        turn, call_id, model = self._turns.current, as_name(data.get("messageId")), as_name(data.get("model"))
        if call_id is not None and call_id not in self._answers:
            self._answers.add(call_id)
            if turn is not None and is_own:
                turn.api_calls += 1
                turn.model = turn.model or model
            yield self._turns.of | present(
                {
                    "type": "model_call",
                    "call_id": call_id,
                    "model": model or UNKNOWN_MODEL,
                    "ended_at": at.isoformat(),
                    "status": SUCCESS,
                    "output_tokens": as_count(data.get("outputTokens")),
                }
            )
        if turn is None or not is_own:
            return
        if as_list(data.get("toolRequests")) or not data.get("content"):
            turn.go_on()
        else:
            turn.end(SUCCESS, at, is_certain=False)

    def _called(self, at: datetime, data: Record, *, is_own: bool) -> None:
        call_id, tool = as_name(data.get("toolCallId")), as_name(data.get("toolName"))
        if call_id is None or tool is None:
            raise UnusableRecordError("toolName or toolCallId of a tool call is missing")
        turn = self._turns.current if is_own else None
        self._waiting[call_id] = ToolCall(
            tool=tool, of=self._turns.of, started_at=at, arguments=fingerprint(data.get("arguments")), turn=turn
        )
        if turn is not None:
            turn.actions.append(tool)
            turn.go_on()

    def _result(self, at: datetime, data: Record) -> Iterator[Record]:
        call_id = as_name(data.get("toolCallId"))
        call = self._waiting.pop(call_id, None) if call_id is not None else None
        if call is None or call_id is None:
            self._turns.note(NO_EVENT)  # a command that the user ran
            return
        if as_object(data.get("error")).get("code") in DENIED:
            self._turns.note(NOT_ALLOWED)
            return
        result = as_object(data.get("result")).get("content")
        error = None if data.get("success") is True else "the tool failed"
        yield call.record(call_id, at, latency_ms=None, error=error, result=result)


def _error_of(data: Record) -> str:
    """The kind of an error; its text may hold what was asked."""
    kind, status = kind_of(data.get("errorType")), as_count(data.get("statusCode"))
    told = " ".join([*([kind] if kind else []), *([f"({status})"] if status else [])])
    return f"{MODEL_ERROR}: {told}" if told else MODEL_ERROR
