"""Sessions of OpenCode, as `opencode export` writes them: a document of one session with its messages and their parts.

What belongs here: what a message of these files says. What does not: what a turn is (`coding_turns`), and the files
that OpenCode itself keeps, of which each holds a piece of a session and is counted. The mapping: docs/formats.md.
"""

import re
from collections.abc import Iterator
from datetime import datetime, timedelta
from typing import Any

from health_assets.logs.conventions import UNKNOWN_MODEL
from health_assets.logs.formats.coding_turns import BESIDE as FILE_BESIDE
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
    lines_of_document,
    milliseconds,
)
from health_assets.logs.formats.foreign_lines import (
    EPOCH,
    Line,
    Record,
    Source,
    UnusableRecordError,
    present,
    rejected,
)
from health_assets.logs.formats.json_pieces import Document, DocumentError
from health_assets.logs.formats.opening import Opening
from health_assets.logs.json_values import as_count, as_list, as_name, as_number, as_object

MESSAGES = "messages"
OF_SESSION = {"id", "version", "time"}
"""Fields of a session."""
BESIDE = re.compile("(ses|msg|prt)_.+")
"""An id of a piece of a session, which OpenCode keeps in a file of its own."""
TEXT = re.compile(rb'"id"\s*:\s*"(ses|msg|prt)_\w+"')
"""A part of an export, also of one that is damaged."""

HANDED_BACK, ASKED_FOR_TOOLS = "stop", "tool-calls"
ABORTED = "MessageAbortedError"
ERROR_NAME = re.compile("[A-Z][A-Za-z]{1,50}Error")
"""The class of an error of OpenCode; any other text may hold what was asked."""
DENIED = ("The user rejected permission", "The user has specified a rule", "Tool execution aborted")
"""How errors begin of tools that the user did not allow, or stopped."""


def recognizes(opening: Opening) -> bool:
    """Whether a file that begins so is an export of a session."""
    session = as_object(opening.members.get("info"))
    is_session = session.keys() >= OF_SESSION and str(session.get("id")).startswith("ses_")
    return opening.is_foreign_object and MESSAGES in opening.members and is_session


def recognizes_beside(opening: Opening) -> bool:
    """Whether a file that begins so is a piece of a session that OpenCode keeps."""
    members = opening.record or opening.members
    is_piece = bool(members.keys() & {"sessionID", "projectID"})
    return is_piece and BESIDE.fullmatch(str(members.get("id"))) is not None


def read_beside(source: Source) -> Iterator[Line]:
    """Nothing of such a piece, which is counted; what is no whole document, as the rest of an export, is rejected."""
    document = Document(source.blocks)
    try:
        document.value()
        document.finish()
    except DocumentError as error:
        yield rejected(1, "", error.reason)
    else:
        source.notes[FILE_BESIDE] += 1


def read(source: Source) -> Iterator[Line]:
    """An execution or a cancellation of each turn that ended, a model call for each answer, and the tool calls."""
    yield from lines_of_document(source, _Session(source), MESSAGES)


class _Session:
    """What is known after some messages.

    Args:
        source: the file.
    """

    def __init__(self, source: Source) -> None:
        self._turns = Turns(tool="OpenCode", agent_id="opencode", notes=source.notes)

    def records(self, record: Record) -> Iterator[Record]:
        """What a message completes."""
        message = as_object(record.get("info"))
        role, parts = message.get("role"), [as_object(part) for part in as_list(record.get("parts"))]
        if message.keys() >= OF_SESSION and MESSAGES not in record:
            self._turns.session_id = as_name(message.get("id"))
            self._turns.version = as_name(message.get("version"))
            self._turns.is_subagent = message.get("parentID") is not None
            self._turns.note(NO_EVENT)
        elif role == "user" and _is_prompt(parts):
            asked = "\n".join(str(part.get("text")) for part in parts if part.get("type") == "text")
            yield from self._turns.begin(as_name(message.get("id")), _time(message, "created"), asked)
        elif role == "assistant":
            yield from self._answered(message, parts)
        else:
            self._turns.note(NO_EVENT)

    def end(self) -> Iterator[Record]:
        """What the end of the file completes."""
        yield from self._turns.close(is_last=True)

    def _answered(self, message: Record, parts: list[Record]) -> Iterator[Record]:
        """The model call of an answer and the calls of its tools; it may end the turn."""
        turn, started_at = self._turns.current, _time(message, "created")
        is_complete = as_object(message.get("time")).get("completed") is not None
        ended_at = _time(message, "completed") if is_complete else started_at
        error = _error_of(message)
        tokens = as_object(message.get("tokens"))
        model = as_name(message.get("modelID"))
        if as_count(tokens.get("output")):
            if turn is not None:
                turn.api_calls += 1
                turn.model = turn.model or model
            has_tools = any(part.get("type") == "tool" for part in parts)
            latency_ms = None if has_tools else milliseconds(started_at, ended_at)  # which ran in that time
            yield self._turns.of | _model_call(message, model, tokens, ended_at, latency_ms)
        if turn is not None and message.get("summary") is not True:  # which the agent goes on from
            if error == ABORTED:
                turn.end(CANCELLED, ended_at)
            elif error is not None:
                turn.error_count += 1
                turn.end(FAILURE, ended_at, f"{MODEL_ERROR}: {error}" if error else MODEL_ERROR)
            elif is_complete and message.get("finish") == HANDED_BACK:
                turn.end(SUCCESS, ended_at)
            elif is_complete and message.get("finish") not in (None, ASKED_FOR_TOOLS, "unknown"):
                turn.end(FAILURE, ended_at, "the model stopped early")
            else:
                turn.go_on()
        for part in parts:
            if part.get("type") == "tool":
                yield from self._tool_call(part)

    def _tool_call(self, part: Record) -> Iterator[Record]:
        call_id, name, state = as_name(part.get("id")), as_name(part.get("tool")), as_object(part.get("state"))
        if call_id is None or name is None:
            raise UnusableRecordError("tool or id of a tool call is missing")
        turn, error = self._turns.current, state.get("error")
        if turn is not None:
            turn.actions.append(name)
        if state.get("status") not in ("completed", "error"):
            self._turns.note(UNANSWERED)
            return
        if isinstance(error, str) and error.startswith(DENIED):
            self._turns.note(NOT_ALLOWED)
            return
        arguments = fingerprint(state.get("input"))
        call = ToolCall(tool=name, of=self._turns.of, started_at=_time(state, "start"), arguments=arguments, turn=turn)
        code = as_number(as_object(state.get("metadata")).get("exit"))
        failed = "the tool failed" if state.get("status") == "error" else f"exit code {code:.0f}" if code else None
        yield call.record(call_id, _time(state, "end"), latency_ms=None, error=failed, result=state.get("output"))


def _is_prompt(parts: list[Record]) -> bool:
    """Whether a user wrote a part of a message, which OpenCode also writes itself to go on."""
    return any(part.get("type") in ("text", "file", "agent", "subtask") and not part.get("synthetic") for part in parts)


def _time(record: Record, name: str) -> datetime:
    """A time of a message or a part, in milliseconds since 1970.

    Raises:
        UnusableRecordError: it is not there.
    """
    milliseconds_since_1970 = as_number(as_object(record.get("time")).get(name))
    try:
        return EPOCH + timedelta(milliseconds=milliseconds_since_1970)  # type: ignore[arg-type]
    except (OverflowError, TypeError):
        raise UnusableRecordError(f"time.{name} must be milliseconds since 1970") from None


def _error_of(message: Record) -> str | None:
    """The class of the error of a message, empty where it is not known; None of a message without one."""
    error = message.get("error")
    if error is None:
        return None
    name = as_object(error).get("name")
    return name if isinstance(name, str) and ERROR_NAME.fullmatch(name) else ""


def _model_call(
    message: Record, model: str | None, tokens: Record, ended_at: datetime, latency_ms: float | None
) -> Record:
    """A model call; what OpenCode calls input leaves out the cached tokens, and its output the reasoning ones."""
    cache = as_object(tokens.get("cache"))
    read, written, reasoning = (as_count(of.get(name)) for of, name in (
        (cache, "read"), (cache, "write"), (tokens, "reasoning")
    ))  # fmt: skip
    call_id = as_name(message.get("id"))
    if call_id is None:
        raise UnusableRecordError("id of an answer is missing")
    return present(
        {
            "type": "model_call",
            "call_id": call_id,
            "model": model or UNKNOWN_MODEL,
            "ended_at": ended_at.isoformat(),
            "status": SUCCESS,
            "latency_ms": latency_ms,
            "input_tokens": _sum(tokens.get("input"), read, written),
            "output_tokens": _sum(tokens.get("output"), reasoning),
            "cache_read_tokens": read,
            "cache_creation_tokens": written,
            "reasoning_tokens": reasoning,
            "cost_usd": as_number(message.get("cost")) or None,  # 0 is also a subscription, or a price not known
        }
    )


def _sum(count: Any, *others: int | None) -> int | None:
    own = as_count(count)
    return None if own is None else own + sum(other or 0 for other in others)
