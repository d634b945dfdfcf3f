"""Chats of Gemini CLI, `~/.gemini/tmp/*/chats/session-*`: a message a line, or a document with a list of them.

What belongs here: what a message of these files says. What does not: what a turn is (`coding_turns`). The mapping:
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
    lines_of,
    lines_of_document,
    time_of,
)
from health_assets.logs.formats.foreign_lines import Line, Record, Source, UnusableRecordError, present
from health_assets.logs.formats.opening import Opening
from health_assets.logs.json_values import as_count, as_list, as_name, as_object

HEADER = {"sessionId", "projectHash"}
MESSAGES = "messages"
"""The member of a document of versions before 0.40 that lists the messages."""
BESIDE = {"sessionId", "messageId", "type", "message", "timestamp"}
"""Fields of an entry of `logs.json`, which lists prompts."""
TEXT = re.compile(rb'"projectHash"\s*:\s*"|"type"\s*:\s*"gemini"')
"""A part of a chat, also of one whose lines are no objects."""

CONTEXT = "<session_context>"
"""How the message begins that Gemini CLI itself sends before the first prompt."""
CANCELLED_REQUEST = "Request cancelled."
EXIT_CODE = re.compile(r"^Exit Code: (-?\d{1,10})$", re.MULTILINE)
STATUS = re.compile(
    '"status"\\s*:\\s*"(INVALID_ARGUMENT|FAILED_PRECONDITION|OUT_OF_RANGE|UNAUTHENTICATED|PERMISSION_DENIED|NOT_FOUND'
    "|ABORTED|ALREADY_EXISTS|RESOURCE_EXHAUSTED|CANCELLED|DATA_LOSS|UNKNOWN|INTERNAL|UNIMPLEMENTED|UNAVAILABLE"
    '|DEADLINE_EXCEEDED)"'
)
"""The status in what Google's API answers to a request that failed; any other word may come from a prompt."""
CODE = re.compile(r'"code"\s*:\s*(\d{3})\b')
BYTES_OF_A_TOKEN, TOKENS_TO_SPARE = 2, 8
"""A token of a text has more bytes than that, and a request for a tool more tokens."""


def recognizes_lines(opening: Opening) -> bool:
    """Whether a file that begins so has a message of a chat a line."""
    return opening.has_lines and any(map(_is_line, opening.first_records))


def recognizes_document(opening: Opening) -> bool:
    """Whether a file that begins so is a chat of a version before 0.40."""
    return opening.is_foreign_object and not opening.has_lines and opening.members.keys() >= HEADER | {MESSAGES}


def recognizes_beside(opening: Opening) -> bool:
    """Whether a file that begins so lists prompts beside the chats."""
    return (opening.record or opening.members).keys() == BESIDE


def _is_line(record: Record) -> bool:
    """Whether an object is the first line of a chat, or an answer in it."""
    is_answer = record.get("type") == "gemini" and record.keys() >= {"id", "timestamp", "content"}
    return is_answer or record.keys() >= HEADER


def read_lines(source: Source) -> Iterator[Line]:
    """An execution or a cancellation of each turn that ended, a model call for each answer, and the tool calls."""
    yield from lines_of(source, _Session(source))


def read_document(source: Source) -> Iterator[Line]:
    """The same of a chat of an older version."""
    yield from lines_of_document(source, _Session(source), MESSAGES)


class _Session:
    """What is known after some messages.

    An answer is written again with the tools that it asked for once these are done, so it counts when another message
    follows.

    Args:
        source: the file.
    """

    def __init__(self, source: Source) -> None:
        self._turns = Turns(tool="Gemini CLI", agent_id="gemini-cli", notes=source.notes)
        self._answer: Record | None = None
        self._done: set[str] = set()

    def records(self, record: Record) -> Iterator[Record]:
        """What a line completes."""
        kind = record.get("type")
        if record.keys() >= HEADER:
            yield from self.end()
            self._turns.session_id = as_name(record.get("sessionId"))
            self._turns.is_subagent = record.get("kind") == "subagent"
            self._turns.note(NO_EVENT)
            for message in map(as_object, as_list(record.get(MESSAGES))):  # of a document in one line
                yield from self.records(message)
        elif kind in ("gemini", "user", "error", "info"):
            if kind == "gemini" and self._answer is not None and record.get("id") == self._answer.get("id"):
                self._take(record)
                return
            yield from self._answered()
            yield from self._message(kind, record)
        else:
            self._turns.note(NO_EVENT)

    def end(self) -> Iterator[Record]:
        """What the end of the file completes."""
        yield from self._answered()
        yield from self._turns.close(is_last=True)

    def _message(self, kind: str, record: Record) -> Iterator[Record]:
        if kind == "gemini":
            self._take(record)
        elif kind == "user" and _is_prompt(record):
            message_id, session_id = as_name(record.get("id")), self._turns.session_id
            turn_id = f"{session_id}:{message_id}" if message_id and session_id else None
            yield from self._turns.begin(turn_id, time_of(record), _text_of(record.get("content")))
        elif kind == "error" and self._turns.current is not None:
            self._turns.current.error_count += 1
            self._turns.current.end(FAILURE, time_of(record), _error_of(_text_of(record.get("content"))))
        elif self._turns.current is not None and _is_cancelling(record):
            self._turns.current.end(CANCELLED, time_of(record))
        else:
            self._turns.note(NO_EVENT)

    def _take(self, answer: Record) -> None:
        """Keep an answer until another message follows, unless it cannot be used.

        Raises:
            UnusableRecordError: it cannot.
        """
        time_of(answer)
        for tool in map(as_object, as_list(answer.get("toolCalls"))):
            if as_name(tool.get("id")) is None or as_name(tool.get("name")) is None:
                raise UnusableRecordError("name or id of a tool call is missing")
            if tool.get("timestamp") is not None:
                time_of(tool)
        self._answer = answer

    # -- calls ---------------------------------------------------------------------------------------------------------

    def _answered(self) -> Iterator[Record]:
        """The model call of an answer that is complete, and the calls of the tools that it asked for."""
        record, self._answer = self._answer, None
        if record is None:
            return
        at, tokens, tools = time_of(record), as_object(record.get("tokens")), as_list(record.get("toolCalls"))
        of, turn = self._turns.of, self._turns.current
        message_id, model = as_name(record.get("id")), as_name(record.get("model"))
        if message_id is not None and tokens and message_id not in self._done:
            self._done.add(message_id)
            if turn is not None:
                turn.api_calls += 1
                turn.model = turn.model or model
            yield of | _model_call(message_id, at, model, tokens)
        text = _text_of(record.get("content"))
        if turn is not None and text.strip() and not tools:
            turn.end(SUCCESS, at, is_certain=_is_all(text, tokens))
        elif turn is not None:
            turn.go_on()
        for tool in map(as_object, tools):
            yield from self._tool_call(tool, of, at)

    def _tool_call(self, tool: Record, of: Record, asked_at: datetime) -> Iterator[Record]:
        call_id, name, status = as_name(tool.get("id")), as_name(tool.get("name")), tool.get("status")
        assert call_id is not None, "of an answer that was taken"
        assert name is not None, "of an answer that was taken"
        if call_id in self._done:
            return
        self._done.add(call_id)
        if self._turns.current is not None:
            self._turns.current.actions.append(name)
        if status == "cancelled":
            self._turns.note(NOT_ALLOWED)
            return
        if status not in ("success", "error"):
            self._turns.note(UNANSWERED)
            return
        at = time_of(tool) if tool.get("timestamp") is not None else asked_at
        result = _result_of(tool)
        arguments = fingerprint(tool.get("args"))
        call = ToolCall(tool=name, of=of, started_at=asked_at, arguments=arguments, turn=self._turns.current)
        error = "the tool failed" if status == "error" else _exit_of(name, result)
        yield call.record(call_id, at, latency_ms=None, error=error, result=result)


def _is_prompt(record: Record) -> bool:
    """Whether a user wrote it, rather than Gemini CLI itself or a tool."""
    text = _text_of(record.get("content"))
    return bool(text.strip()) and not text.lstrip().startswith(CONTEXT)


def _is_cancelling(record: Record) -> bool:
    return record.get("type") == "info" and _text_of(record.get("content")).startswith(CANCELLED_REQUEST)


def _is_all(text: str, tokens: Record) -> bool:
    """Whether a text accounts for the tokens of its answer; one that does not may have asked for a tool, too."""
    output = as_count(tokens.get("output"))
    return output is None or output <= len(text.encode(errors="replace")) / BYTES_OF_A_TOKEN + TOKENS_TO_SPARE


def _model_call(call_id: str, at: datetime, model: str | None, tokens: Record) -> Record:
    """A model call; what Gemini CLI calls output leaves out the thoughts, and its input includes the cached tokens."""
    thoughts = as_count(tokens.get("thoughts"))
    return present(
        {
            "type": "model_call",
            "call_id": call_id,
            "model": model or UNKNOWN_MODEL,
            "ended_at": at.isoformat(),
            "status": SUCCESS,
            "input_tokens": _sum(as_count(tokens.get("input")), as_count(tokens.get("tool"))),
            "output_tokens": _sum(as_count(tokens.get("output")), thoughts),
            "cache_read_tokens": as_count(tokens.get("cached")),
            "reasoning_tokens": thoughts,
        }
    )


def _sum(count: int | None, other: int | None) -> int | None:
    return None if count is None else count + (other or 0)


def _text_of(content: Any) -> str:
    """A text, or those of a list of parts."""
    if isinstance(content, str):
        return content
    texts = [as_object(part).get("text") for part in as_list(content)]
    return "\n".join(text for text in texts if isinstance(text, str))


def _result_of(tool: Record) -> Any:
    """What the tool answered the model."""
    parts = [as_object(as_object(part).get("functionResponse")) for part in as_list(tool.get("result"))]
    answers = [as_object(part.get("response")) for part in parts]
    return next((answer.get("output", answer.get("error")) for answer in answers if answer), None)


def _exit_of(name: str, result: Any) -> str | None:
    """The exit code of a command that failed, which stands behind all that the command wrote."""
    codes = EXIT_CODE.findall(result) if name == "run_shell_command" and isinstance(result, str) else []
    return f"exit code {codes[-1]}" if codes and int(codes[-1]) else None


def _error_of(text: str) -> str:
    """The kind of an error; its text may hold what was asked."""
    status, code = STATUS.search(text), CODE.search(text)
    kind = " ".join([*([status[1]] if status else []), *([f"({code[1]})"] if code else [])])
    return f"API error: {kind}" if kind else MODEL_ERROR
