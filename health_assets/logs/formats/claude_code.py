"""Sessions of Claude Code, `~/.claude/projects/**/*.jsonl`: a message, or a part of one, a line.

What belongs here: what a line of these files says. What does not: what a turn is (`coding_turns`). The mapping:
docs/formats.md.
"""

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import datetime
from typing import Any, TypedDict

import msgspec

from health_assets.logs.formats.coding_turns import (
    CANCELLED,
    FAILURE,
    SUCCESS,
    ToolCall,
    Turn,
    agent_of_project,
    fingerprint,
    fingerprint_of_parts,
    kind_of,
    lines_of,
    time_of,
)
from health_assets.logs.formats.foreign_lines import Line, Record, Source, UnusableRecordError, present
from health_assets.logs.formats.lines import Fields
from health_assets.logs.json_values import as_count, as_list, as_name, as_number, as_object

AGENT_ID = "claude-code"
OWN_LINES = {
    "file-history-snapshot": "snapshot", "summary": "leafUuid", "queue-operation": "operation",
    "permission-mode": "permissionMode", "agent-setting": "agentSetting", "last-prompt": "lastPrompt",
    "ai-title": "aiTitle",
}  # fmt: skip
"""Types of lines that are no messages, and a field of each: a session may begin with them."""
SYNTHETIC = "<synthetic>"
"""The model of lines that Claude Code itself wrote in an agent's name."""
GOES_ON = ("tool_use", "pause_turn")
"""Reasons for which a model stopped that are none to hand back."""
BROKE_OFF = ("max_tokens", "model_context_window_exceeded", "refusal")
"""Reasons for which a model stopped before its answer was complete."""
DENIED = ("The user doesn't want to ", "Permission to use ", "Permission for this action has been denied")
"""How results of tools begin that did not run since the user or a rule did not allow it."""
INTERRUPTED = "[Request interrupted by user"
COMMANDS = ("<command-name>", "<command-message>")
OUTPUTS = ("<local-command-", "<bash-input>", "<bash-stdout>", "<bash-stderr>")
"""How texts begin that tell the agent what the user ran without it."""
NOTIFICATION = "<task-notification>"
EXIT_CODE = re.compile(r"Exit code (\d{1,3})\b")

NO_MESSAGE = "Claude Code line that belongs to no turn: a title, a snapshot, a subagent's prompt and the like"
OPEN_TURN = "Claude Code turn without a hand-back: it runs still, or its session was left"
LOCAL_COMMAND = "Claude Code command that its user ran without the agent"
RETRIED = "Claude Code model call that failed and was tried again; which model is not told"
FAILED_SUBAGENT = "Claude Code subagent that a failed model call ended"
NOT_ALLOWED = "Claude Code tool call that the user or a rule did not allow, so that it did not run"
UNANSWERED = "Claude Code tool call without a result: whether it failed is not known"
ORPHAN = "Claude Code result of a tool call that is not in its file"
PRIVATE_FILE = re.compile(r"(^|/)(subagents/[^/]+\.meta\.json|tool-results/[^/]+)$")
"""Names of files beside the sessions that only their place tells: what a subagent was asked, results of tools."""
TEXT = re.compile(rb'^\s*\{"parentUuid"|"isSidechain"\s*:\s*(true|false)')
"""A part of a session, also of one whose lines are no objects."""
_BESIDE = ({"display", "pastedContents", "project"}, {"entries", "originalPath"})
"""Fields of files beside the sessions: prompts by project, and an index."""


class _Block(TypedDict, total=False):
    type: Any
    text: Any
    id: Any
    name: Any
    input: Any
    tool_use_id: Any
    content: Any
    is_error: Any


class _Content(TypedDict, total=False):
    id: Any
    model: Any
    content: str | list[_Block]
    stop_reason: Any
    usage: Any


class _Result(TypedDict, total=False):
    totalDurationMs: Any
    durationMs: Any


class _Line(TypedDict, total=False):
    type: Any
    subtype: Any
    uuid: Any
    sessionId: Any
    forkedFrom: Any
    promptId: Any
    requestId: Any
    timestamp: Any
    cwd: Any
    version: Any
    isSidechain: Any
    isMeta: Any
    isCompactSummary: Any
    isApiErrorMessage: Any
    error: Any
    apiErrorStatus: Any
    durationMs: Any
    costUSD: Any
    message: _Content
    toolUseResult: str | list[msgspec.Raw] | _Result


FIELDS = Fields(_Line)
"""What is read of a line: above all no thoughts, attachments, and results of tools that stand in it a second time."""


def is_line(record: Record) -> bool:
    """Whether an object is a line of a session that no other tool writes."""
    kind = record.get("type")
    if kind in ("user", "assistant"):
        return {"uuid", "sessionId", "isSidechain"} <= record.keys() and "content" in as_object(record.get("message"))
    return isinstance(kind, str) and kind in OWN_LINES and OWN_LINES[kind] in record


def is_beside(members: Record) -> bool:
    """Whether an object that has these members is of a file beside the sessions."""
    return any(fields <= members.keys() for fields in _BESIDE)


def read(source: Source) -> Iterator[Line]:
    """An execution or a cancellation of each turn that ended, a model call of each message, and the tool calls."""
    yield from lines_of(source, _Session(source), FIELDS)


@dataclass(kw_only=True)
class _Message:
    """A message of a model so far: its lines repeat the model and the usage, of which the last tells the whole.

    Args:
        of: ids of its agent and execution.
        model: its model.
        at: when its last line was written.
        usage: its tokens.
        latency_ms: how long it took, if that is told.
        cost_usd: its cost, if that is told.
        texts: fingerprints of its texts.
    """

    of: Record
    model: str
    at: datetime
    usage: Record
    latency_ms: Any
    cost_usd: Any
    texts: list[str]

    def call(self, call_id: str) -> Record:
        """The model call."""
        usage = self.usage
        fresh = as_count(usage.get("input_tokens"))
        read = as_count(usage.get("cache_read_input_tokens"))
        created = as_count(usage.get("cache_creation_input_tokens"))
        return self.of | present(
            {
                "type": "model_call",
                "call_id": call_id,
                "model": self.model,
                "ended_at": self.at.isoformat(),
                "status": SUCCESS,
                "latency_ms": as_number(self.latency_ms),
                "input_tokens": None if fresh is None else fresh + (read or 0) + (created or 0),
                "output_tokens": as_count(usage.get("output_tokens")),
                "cache_read_tokens": read,
                "cache_creation_tokens": created,
                "cost_usd": as_number(self.cost_usd),
                "output": fingerprint_of_parts(self.texts),
            }
        )


class _Session:
    """What is known after some lines of a file.

    Args:
        source: the file.
    """

    def __init__(self, source: Source) -> None:
        self._notes = source.notes
        self._by_project = source.by_project
        self._agent_id = AGENT_ID
        self._turn: Turn | None = None
        self._prompts: dict[str, str] = {}  # by the id of a prompt, the line that had it first
        self._subagents_prompt: str | None = None
        self._messages: dict[str, _Message] = {}
        self._waiting: dict[str, ToolCall] = {}

    def records(self, record: Record) -> Iterable[Record]:
        """What a line completes."""
        if self._by_project and self._agent_id == AGENT_ID:
            self._agent_id = agent_of_project(AGENT_ID, record.get("cwd"))
        kind = record.get("type")
        if kind == "assistant":
            self._assistant(record, _message_of(record))
        elif kind == "user":
            return self._user(record, _message_of(record).get("content"))
        elif kind == "system" and record.get("subtype") == "api_error":
            self._notes[RETRIED] += 1
            if self._turn and not record.get("isSidechain"):
                self._turn.error_count += 1
        else:
            self._notes[NO_MESSAGE] += 1
            if self._turn and (kind == "last-prompt" or record.get("subtype") == "turn_duration"):
                self._turn.is_certain = True
        return ()

    def end(self) -> Iterator[Record]:
        """What the end of the file completes; a turn that may go on is counted."""
        yield from self._close(is_last=True)
        if self._waiting:
            self._notes[UNANSWERED] += len(self._waiting)

    # -- the user ------------------------------------------------------------------------------------------------------

    def _user(self, record: Record, content: Any) -> Iterator[Record]:
        at, is_subagent = time_of(record), record.get("isSidechain")
        if is_subagent:
            self._subagents_prompt = as_name(record.get("promptId")) or self._subagents_prompt
        texts, has_results = [content] if isinstance(content, str) else [], False
        for block in as_list(content):
            if not isinstance(block, dict):
                continue
            if block.get("type") == "tool_result":
                has_results = True
                if call := self._result(record, block, at):
                    yield call
            if isinstance(block.get("text"), str):
                texts.append(block["text"])
        text = "\n".join(texts)
        is_aside = is_subagent or record.get("isMeta") or record.get("isCompactSummary")
        if self._turn and not is_aside and text.startswith(INTERRUPTED):
            self._turn.end(CANCELLED, at)
        elif has_results:
            return
        elif is_aside or text.startswith((INTERRUPTED, *OUTPUTS)):
            self._notes[NO_MESSAGE] += 1
        elif not text.startswith(NOTIFICATION):
            yield from self._close()
            self._turn = self._asked(record, at, text)
        elif self._turn is None or self._turn.outcome is not None:
            yield from self._close()
            self._turn = self._asked(record, at, None)
        else:
            self._notes[NO_MESSAGE] += 1

    def _asked(self, record: Record, at: datetime, text: str | None) -> Turn:
        """A turn; its id is that of the prompt, which subagents' files tell, too, unless an earlier turn has it."""
        own = as_name(record.get("uuid"))
        if own is None:
            raise UnusableRecordError("uuid of a prompt is missing")
        prompt = as_name(record.get("promptId")) or own
        known = {
            "agent_id": self._agent_id,
            "agent_version": as_name(record.get("version")),
            "session_id": as_name(as_object(record.get("forkedFrom")).get("sessionId", record.get("sessionId"))),
            "input": fingerprint(text),
        }
        execution_id = prompt if self._prompts.setdefault(prompt, own) == own else own
        is_command = text is not None and text.startswith(COMMANDS)
        return Turn(execution_id=execution_id, known=present(known), started_at=at, is_command=is_command)

    def _close(self, *, is_last: bool = False) -> Iterator[Record]:
        """The calls so far, and the record of the turn, if it ended."""
        for call_id, message in self._messages.items():
            yield message.call(call_id)
        self._messages.clear()
        turn, self._turn = self._turn, None
        if turn is None:
            return
        if turn.is_command and turn.is_untouched:
            self._notes[LOCAL_COMMAND] += 1
        elif turn.outcome is None or (is_last and not turn.is_certain):
            self._notes[OPEN_TURN] += 1
        else:
            yield turn.record()

    # -- the agent -----------------------------------------------------------------------------------------------------

    def _assistant(self, record: Record, message: Record) -> None:
        at, is_subagent = time_of(record), bool(record.get("isSidechain"))
        turn = None if is_subagent else self._turn
        if record.get("isApiErrorMessage") is True:
            if turn:
                turn.error_count += 1
                turn.end(FAILURE, at, _api_error(record))
            else:
                self._notes[FAILED_SUBAGENT if is_subagent else NO_MESSAGE] += 1
            return
        if message.get("model") == SYNTHETIC:
            self._notes[NO_MESSAGE] += 1
            return
        blocks = [block for block in as_list(message.get("content")) if isinstance(block, dict)]
        of = self._of(is_subagent=is_subagent)
        self._answered(record, message, at, of, turn, blocks)
        has_text = has_uses = False
        for block in blocks:
            kind = block.get("type")
            if kind == "text":
                has_text = True
            elif kind == "tool_use":
                has_uses = True
                self._use(block, at, of, turn)
        if turn:
            stopped = message.get("stop_reason")
            if has_uses or stopped in GOES_ON:
                turn.go_on()
            elif stopped in BROKE_OFF:
                turn.end(FAILURE, at, f"the model stopped: {stopped}")
            elif stopped is not None or has_text:
                turn.end(SUCCESS, at, is_certain=stopped is not None)
            else:
                turn.go_on()

    def _use(self, block: Record, at: datetime, of: Record, turn: Turn | None) -> None:
        """A call of a tool, whose result follows."""
        tool, call_id = as_name(block.get("name")), as_name(block.get("id"))
        if tool is None or call_id is None:
            raise UnusableRecordError("name or id of a tool call is missing")
        self._waiting[call_id] = ToolCall(
            tool=tool, of=of, started_at=at, arguments=fingerprint(block.get("input")), turn=turn
        )
        if turn:
            turn.actions.append(tool)

    def _of(self, *, is_subagent: bool) -> Record:
        execution_id = self._subagents_prompt if is_subagent else None
        if execution_id is None and self._turn:
            execution_id = self._turn.execution_id
        return present({"agent_id": self._agent_id, "execution_id": execution_id})

    def _answered(
        self, record: Record, message: Record, at: datetime, of: Record, turn: Turn | None, blocks: list[Record]
    ) -> None:
        call_id = as_name(message.get("id")) or as_name(record.get("requestId")) or as_name(record.get("uuid"))
        model = as_name(message.get("model"))
        if call_id is None or model is None:
            raise UnusableRecordError("id or model of a message is missing")
        known = self._messages.get(call_id)
        if known is None and turn:
            turn.api_calls += 1
            turn.model = turn.model or model
        texts = known.texts if known else []
        self._messages[call_id] = _Message(
            of=of, model=model, at=at, usage=as_object(message.get("usage")), latency_ms=record.get("durationMs"),
            cost_usd=record.get("costUSD"), texts=texts,
        )  # fmt: skip
        texts += [own for block in blocks if (own := fingerprint(block.get("text"))) is not None]

    def _result(self, record: Record, block: Record, at: datetime) -> Record | None:
        """The call of a tool that this is the result of, unless it did not run."""
        call_id, told = as_name(block.get("tool_use_id")), record.get("toolUseResult")
        call = self._waiting.pop(call_id, None) if call_id is not None else None
        if call is None or call_id is None:
            self._notes[ORPHAN] += 1
            return None
        is_error = block.get("is_error") is True
        text = _text_of(block.get("content")) if is_error else ""
        if is_error and (text.startswith(DENIED) or told == "User rejected tool use"):
            self._notes[NOT_ALLOWED] += 1
            return None
        details = as_object(told)
        latency_ms = as_number(details.get("totalDurationMs", details.get("durationMs")))
        error = _tool_error(text) if is_error else None
        return call.record(call_id, at, latency_ms=latency_ms, error=error, result=block.get("content"))


def _message_of(record: Record) -> Record:
    """The message of a line of the user or the assistant.

    Raises:
        UnusableRecordError: it has none.
    """
    message = record.get("message")
    if not isinstance(message, dict):
        raise UnusableRecordError(f"the message of a line of the {record.get('type')} is missing")
    return message


def _text_of(content: Any) -> str:
    if isinstance(content, str):
        return content
    return next((block["text"] for block in map(as_object, as_list(content)) if isinstance(block.get("text"), str)), "")


def _tool_error(text: str) -> str:
    """The kind of an error; its text may hold code and paths."""
    if code := EXIT_CODE.match(text):
        return f"exit code {code[1]}"
    return "the call was not valid" if text.startswith("<tool_use_error>") else "the tool failed"


def _api_error(record: Record) -> str:
    kind, status = kind_of(record.get("error")), as_count(record.get("apiErrorStatus"))
    return f"API error{f': {kind}' if kind else ''}{f' ({status})' if status else ''}"
