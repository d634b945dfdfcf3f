"""Rollouts of Codex, `~/.codex/sessions/**/rollout-*.jsonl`: an event or a part of a conversation a line.

What belongs here: what a line of these files says. What does not: what a turn is (`coding_turns`). The mapping:
docs/formats.md.
"""

import json
import re
from collections.abc import Iterator
from datetime import datetime
from typing import Any

from health_assets.logs.conventions import UNKNOWN_MODEL
from health_assets.logs.formats.coding_turns import (
    CANCELLED,
    FAILURE,
    SUCCESS,
    ToolCall,
    Turn,
    UnusableSessionError,
    agent_of_project,
    fingerprint,
    kind_of,
    lines_of,
    time_of,
)
from health_assets.logs.formats.foreign_lines import Line, Record, Source, UnusableRecordError, present
from health_assets.logs.json_values import as_count, as_list, as_name, as_number, as_object

AGENT_ID = "codex"
OWN_LINES = ("session_meta", "response_item", "event_msg", "turn_context")
CALLS = ("function_call", "custom_tool_call", "local_shell_call")
RESULTS = ("function_call_output", "custom_tool_call_output")
DENIED = re.compile(
    r"(exec command |patch )?rejected by user|aborted by user"
    r"|exec_command failed(?: for `.*`)?: \w+ \{ message: \W*Rejected\(\W*rejected by user",
    re.DOTALL,  # a command may have several lines
)
"""How results begin of tools that the user did not allow, or stopped."""
EXIT_CODE = re.compile(r"^(?:Process exited with code|Exit code:) (-?\d{1,10})\b", re.MULTILINE)
WALL_TIME = re.compile(r"^Wall time:? ([\d.]{1,20}) seconds", re.MULTILINE)
BEFORE_OUTPUT = "\nOutput:\n"
"""Behind what Codex says of a command's end; before it in a result, that command may stand."""
FAILED = (
    "Script failed", "execution error:", "exec_command failed", "write_stdin failed", "apply_patch verification failed",
    "patch rejected:", "failed to parse function arguments", "unsupported call:",
)  # fmt: skip
ERROR = "error of the model or its provider"
UUID_7 = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}")
"""An id that begins with the time at which it was made."""

NO_EVENT = "Codex line that tells of no turn or call: a header, a message, a thought, a setting and the like"
OPEN_TURN = "Codex turn without a hand-back: it runs still, or its session was left"
COPIED_TURN = "Codex turn that a session took over from the one that it was forked from, in whose own file it counts"
SUBAGENTS_TURN = "Codex turn of a subagent, whose calls count alone"
NOT_ALLOWED = "Codex tool call that the user did not allow or stopped"
UNANSWERED = "Codex tool call without a result: whether it failed is not known"
ORPHAN = "Codex result of a tool call that is not in its file"
UNTIMED = "the lines of this old form of a Codex rollout have no times; nothing of the file is read"
BY_USER = ("interrupted", "replaced")
"""Reasons for which a turn was aborted that are its user's; others are limits of Codex."""
ENDS = ("exec_command_end", "patch_apply_end", "mcp_tool_call_end")
"""Events that tell how a tool call ended, which its result need not."""
TEXT = re.compile(rb'"type"\s*:\s*"(session_meta|response_item|turn_context|event_msg)"')
"""A part of a rollout, also of one whose lines are no objects."""
_OLD_HEADER = {"id", "timestamp", "instructions", "git", "cwd", "originator", "cli_version"}
_BESIDE = ({"session_id", "text", "ts"}, {"id", "thread_name", "updated_at"})
"""Fields of lines of files beside the sessions: prompts, and names of sessions."""


def is_line(record: Record) -> bool:
    """Whether an object is a line of a rollout, or the first one of an old rollout."""
    kind = record.get("type")
    if isinstance(kind, str):
        return kind in OWN_LINES and isinstance(record.get("payload"), dict)
    return _is_old_header(record)


def _is_old_header(record: Record) -> bool:
    """Whether an object is the first line of a rollout of the form without `payload`."""
    return {"id", "timestamp", "instructions"} <= record.keys() and record.keys() <= _OLD_HEADER


def is_beside(members: Record) -> bool:
    """Whether an object that has these members is of a file beside the sessions."""
    return members.keys() in _BESIDE


def read(source: Source) -> Iterator[Line]:
    """An execution or a cancellation of each turn that ended, a model call for each growth of usage, and tool calls."""
    yield from lines_of(source, _Session(source))


class _Session:
    """What is known after some lines of a file.

    Args:
        source: the file.
    """

    def __init__(self, source: Source) -> None:
        self._notes = source.notes
        self._by_project = source.by_project
        self._agent_id = AGENT_ID
        self._is_new = True
        self._session_id: str | None = None
        self._version: str | None = None
        self._is_subagent = False
        self._model: str | None = None
        self._turn: Turn | None = None
        self._is_copied = False
        self._tells_ends = False
        self._calls = 0
        self._usage: Any = None
        self._waiting: dict[str, ToolCall] = {}
        self._ended: dict[str, Record] = {}

    def records(self, record: Record) -> Iterator[Record]:
        """What a line completes."""
        if self._is_new and _is_old_header(record):
            raise UnusableSessionError(UNTIMED)
        kind, payload = record.get("type"), record.get("payload")
        if self._is_new and payload is None:
            self._notes[NO_EVENT] += 1
            return
        self._is_new = False
        if not isinstance(payload, dict):
            raise UnusableRecordError("the payload of a line is missing")
        event = payload.get("type") if kind in ("event_msg", "response_item") else kind
        if event == "session_meta":
            self._notes[NO_EVENT] += 1
            self._begin(payload)
        elif event == "turn_context":
            self._notes[NO_EVENT] += 1
            self._model = as_name(payload.get("model")) or self._model
            if self._turn and not self._turn.api_calls:
                self._turn.model = self._model
        elif event in ("task_started", "turn_started"):
            yield from self._start(time_of(record), payload)
        elif event in ("task_complete", "turn_complete"):
            yield from self._complete(time_of(record), payload)
        elif event == "turn_aborted":
            if self._turn and payload.get("reason", BY_USER[0]) in BY_USER:
                self._turn.end(CANCELLED, time_of(record))
            elif self._turn:
                self._turn.go_on()
            yield from self._close()
        elif event == "token_count":
            yield from self._counted(time_of(record), as_object(payload.get("info")))
        elif event == "user_message" or as_object(payload.get("item")).get("type") == "UserMessage":
            yield from self._asked(time_of(record), payload)
        elif event == "agent_message" and self._turn:
            self._turn.end(SUCCESS, time_of(record), is_certain=False)  # it may hand back, or go on
        elif event == "error" and self._turn:
            self._turn.error_count += 1
            self._turn.end(FAILURE, time_of(record), _error_of(payload), is_certain=False)
        elif event in CALLS:
            self._called(time_of(record), payload)
        elif event in RESULTS:
            yield from self._result(time_of(record), payload)
        elif event in ENDS and as_name(payload.get("call_id")) in self._waiting:
            self._ended[payload["call_id"]] = payload
        else:
            self._notes[NO_EVENT] += 1

    def end(self) -> Iterator[Record]:
        """What the end of the file completes; a turn that may go on is counted."""
        yield from self._close(is_last=True)
        if self._waiting:
            self._notes[UNANSWERED] += len(self._waiting)

    # -- turns ---------------------------------------------------------------------------------------------------------

    def _begin(self, payload: Record) -> None:
        """A header of the file's session; behind it stand older ones, of the sessions that it was forked from."""
        session_id = as_name(payload.get("id"))
        if self._session_id is None or (session_id is not None and _is_before(self._session_id, session_id)):
            self._session_id = session_id
            self._version = as_name(payload.get("cli_version"))
            if self._by_project:
                self._agent_id = agent_of_project(AGENT_ID, payload.get("cwd"))
            is_asked_by_agent = "subagent" in as_object(payload.get("source"))
            self._is_subagent = is_asked_by_agent or payload.get("thread_source") == "subagent"

    def _start(self, at: datetime, payload: Record) -> Iterator[Record]:
        yield from self._close()
        self._tells_ends = True
        turn_id = as_name(payload.get("turn_id")) or f"{self._session_id}:{at.isoformat()}"
        self._turn = self._turn_of(turn_id, at)

    def _turn_of(self, turn_id: str, at: datetime) -> Turn:
        """A turn; one with an id from before the session began was copied from another one."""
        self._is_copied = _is_before(turn_id, self._session_id or "")
        self._calls = 0
        known = {"agent_id": self._agent_id, "agent_version": self._version, "session_id": self._session_id}
        return Turn(execution_id=turn_id, known=present(known), started_at=at, model=self._model)

    def _asked(self, at: datetime, payload: Record) -> Iterator[Record]:
        text = payload.get("message") or _text_of(as_object(payload.get("item")).get("content"))
        if self._turn is None or not self._tells_ends:
            yield from self._close()
            self._turn = self._turn_of(f"{self._session_id}:{at.isoformat()}", at)
        if (asked := fingerprint(text)) is not None:
            self._turn.known.setdefault("input", asked)

    def _complete(self, at: datetime, payload: Record) -> Iterator[Record]:
        error = payload.get("error")
        if self._turn and error is not None:
            self._turn.end(FAILURE, at, _error_of(error))
        elif self._turn and self._turn.outcome == FAILURE:
            self._turn.end(FAILURE, at, self._turn.error)
        elif self._turn and payload.get("last_agent_message") is not None:
            self._turn.end(SUCCESS, at)
        elif self._turn:
            self._turn.go_on()  # no message handed back, and Codex need not keep why
        yield from self._close()

    def _close(self, *, is_last: bool = False) -> Iterator[Record]:
        """The record of the turn, if it ended."""
        turn, self._turn = self._turn, None
        if turn is None:
            return
        if self._is_copied:
            self._notes[COPIED_TURN] += 1
        elif self._is_subagent:
            self._notes[SUBAGENTS_TURN] += 1
        elif turn.outcome is None or ((is_last or self._tells_ends) and not turn.is_certain):
            self._notes[OPEN_TURN] += 1
        else:
            yield turn.record()

    # -- calls ---------------------------------------------------------------------------------------------------------

    @property
    def _of(self) -> Record:
        return present({"agent_id": self._agent_id, "execution_id": self._turn and self._turn.execution_id})

    def _counted(self, at: datetime, info: Record) -> Iterator[Record]:
        """A model call where the total has changed: the usage is repeated whenever limits are told."""
        total, usage = info.get("total_token_usage"), as_object(info.get("last_token_usage"))
        if not isinstance(total, dict) or total == self._usage:
            return
        self._usage = total
        if self._turn is None:
            self._notes[NO_EVENT] += 1
        if self._turn is None or self._is_copied:
            return
        self._calls += 1
        self._turn.api_calls += 1
        yield self._of | present(
            {
                "type": "model_call",
                "call_id": f"{self._turn.execution_id}:{self._calls}",
                "model": self._model or UNKNOWN_MODEL,
                "ended_at": at.isoformat(),
                "status": SUCCESS,
                "input_tokens": as_count(usage.get("input_tokens")),
                "output_tokens": as_count(usage.get("output_tokens")),
                "cache_read_tokens": as_count(usage.get("cached_input_tokens")),
                "cache_creation_tokens": as_count(usage.get("cache_write_input_tokens")),
                "reasoning_tokens": as_count(usage.get("reasoning_output_tokens")),
            }
        )

    def _called(self, at: datetime, payload: Record) -> None:
        call_id = as_name(payload.get("call_id")) or as_name(payload.get("id"))
        tool = as_name(payload.get("name")) or ("local_shell" if payload.get("type") == "local_shell_call" else None)
        if call_id is None or tool is None:
            raise UnusableRecordError("name or call_id of a tool call is missing")
        if self._is_copied:
            return
        arguments = payload.get("arguments", payload.get("input", payload.get("action")))
        self._waiting[call_id] = ToolCall(
            tool=tool, of=self._of, started_at=at, arguments=fingerprint(arguments), turn=self._turn
        )
        if self._turn:
            self._turn.actions.append(tool)
            self._turn.go_on()

    def _result(self, at: datetime, payload: Record) -> Iterator[Record]:
        call_id, output = as_name(payload.get("call_id")), payload.get("output")
        call = self._waiting.pop(call_id, None) if call_id is not None else None
        if call is None or call_id is None:
            if not self._is_copied:
                self._notes[ORPHAN] += 1
            return
        text, (told, output) = _text_of(output), _told(output)
        header, mark, written = text.partition(BEFORE_OUTPUT)
        header = header if mark else ""
        if DENIED.match(text):
            self._notes[NOT_ALLOWED] += 1
            return
        event = self._ended.pop(call_id, {})
        code = as_number(event.get("exit_code", told.get("exit_code")))
        if code is None:
            code = exit_code_of(text)
        seconds = _duration_s(event.get("duration", told.get("duration_seconds")))
        if seconds is None and (found := WALL_TIME.search(header)):
            seconds = as_number(found[1])
        answer = as_object(event.get("result"))
        has_failed = text.startswith(FAILED) or "Err" in answer or as_object(answer.get("Ok")).get("isError") is True
        has_failed = has_failed or False in (told.get("success"), event.get("success"))
        error = f"exit code {code:.0f}" if code else "the tool failed" if has_failed else None
        latency_ms = seconds * 1000 if seconds else None  # a short command is told to have taken none
        result = written if mark else output  # before it stand times and ids, which differ from call to call
        yield call.record(call_id, at, latency_ms=latency_ms, error=error, result=result)


def exit_code_of(result: str) -> int | None:
    """The exit code that Codex tells before what a command wrote; None where it tells none."""
    header, mark, _ = result.partition(BEFORE_OUTPUT)
    found = EXIT_CODE.search(header) if mark else None
    return int(found[1]) if found else None


def _is_before(id_: str, other: str) -> bool:
    """Whether the first id is older; false where an id has no time in it."""
    return all(map(UUID_7.fullmatch, (id_, other))) and id_ < other


def _text_of(content: Any) -> str:
    """A text, or those of a list of parts."""
    if isinstance(content, str):
        return content
    texts = [as_object(part).get("text") for part in as_list(content)]
    return "\n".join(text for text in texts if isinstance(text, str))


def _told(output: Any) -> tuple[Record, Any]:
    """What a result tells besides its content, in an object or in a text of JSON with `metadata`; and the content."""
    if isinstance(output, dict):
        return output, output
    if isinstance(output, str) and output.startswith("{") and '"metadata"' in output:
        try:
            told = as_object(json.loads(output))
        except (ValueError, RecursionError):
            return {}, output
        return as_object(told.get("metadata")), told.get("output", output)
    return {}, output


def _duration_s(value: Any) -> float | None:
    """Seconds, or an object of seconds and nanoseconds."""
    if isinstance(value, dict):
        seconds, nanoseconds = as_number(value.get("secs")), as_number(value.get("nanos"))
        return None if seconds is None else seconds + (nanoseconds or 0) / 1e9
    return as_number(value)


def _error_of(error: Any) -> str:
    """The kind of an error; its text may hold what was asked."""
    told = as_object(error).get("codex_error_info")
    kind = kind_of(next(iter(told), None) if isinstance(told, dict) else told)
    return f"{ERROR}: {kind}" if kind else ERROR
