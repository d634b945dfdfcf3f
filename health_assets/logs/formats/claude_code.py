"""Sessions of Claude Code, `~/.claude/projects/**/*.jsonl`: a message, or a part of one, a line.

What belongs here: what a line of these files says. What does not: what a turn is (`coding_turns`). The mapping:
docs/formats.md.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from health_assets.logs.formats.coding_turns import (
    CANCELLED,
    FAILURE,
    SUCCESS,
    ToolCall,
    Turn,
    agent_of_project,
    fingerprint,
    kind_of,
    lines_of,
    time_of,
)
from health_assets.logs.formats.foreign_lines import Line, Record, Source, UnusableRecordError, present
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
    yield from lines_of(source, _Session(source))


@dataclass
class _Message:
    """A message of a model so far: its lines repeat the model and the usage, of which the last tells the whole.

    Args:
        record: its model call.
        texts: fingerprints of its texts.
    """

    record: Record
    texts: list[str] = field(default_factory=list)


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

    def records(self, record: Record) -> Iterator[Record]:
        """What a line completes."""
        if self._by_project and self._agent_id == AGENT_ID:
            self._agent_id = agent_of_project(AGENT_ID, record.get("cwd"))
        kind = record.get("type")
        if kind in ("user", "assistant") and not isinstance(record.get("message"), dict):
            raise UnusableRecordError(f"the message of a line of the {kind} is missing")
        if kind == "assistant":
            self._assistant(record)
        elif kind == "user":
            yield from self._user(record)
        elif kind == "system" and record.get("subtype") == "api_error":
            self._notes[RETRIED] += 1
            if self._turn and not record.get("isSidechain"):
                self._turn.error_count += 1
        else:
            self._notes[NO_MESSAGE] += 1
            if self._turn and (kind == "last-prompt" or record.get("subtype") == "turn_duration"):
                self._turn.is_certain = True

    def end(self) -> Iterator[Record]:
        """What the end of the file completes; a turn that may go on is counted."""
        yield from self._close(is_last=True)
        if self._waiting:
            self._notes[UNANSWERED] += len(self._waiting)

    # -- the user ------------------------------------------------------------------------------------------------------

    def _user(self, record: Record) -> Iterator[Record]:
        at, content = time_of(record), record["message"].get("content")
        blocks = [as_object(block) for block in as_list(content)]
        if record.get("isSidechain"):
            self._subagents_prompt = as_name(record.get("promptId")) or self._subagents_prompt
        for block in blocks:
            if block.get("type") == "tool_result":
                yield from self._result(record, block, at)
        texts = [content] if isinstance(content, str) else [block["text"] for block in blocks
                                                            if isinstance(block.get("text"), str)]  # fmt: skip
        text = "\n".join(texts)
        is_aside = record.get("isSidechain") or record.get("isMeta") or record.get("isCompactSummary")
        if text.startswith(INTERRUPTED) and self._turn and not is_aside:
            self._turn.end(CANCELLED, at)
        elif any(block.get("type") == "tool_result" for block in blocks):
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
        for message in self._messages.values():
            yield message.record | present({"output": fingerprint(message.texts or None)})
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

    def _assistant(self, record: Record) -> None:
        at, message, is_subagent = time_of(record), record["message"], bool(record.get("isSidechain"))
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
        blocks = [as_object(block) for block in as_list(message.get("content"))]
        of = self._of(is_subagent=is_subagent)
        self._answered(record, at, of, turn, blocks)
        uses = [block for block in blocks if block.get("type") == "tool_use"]
        for block in uses:
            tool, call_id = as_name(block.get("name")), as_name(block.get("id"))
            if tool is None or call_id is None:
                raise UnusableRecordError("name or id of a tool call is missing")
            self._waiting[call_id] = ToolCall(
                tool=tool, of=of, started_at=at, arguments=fingerprint(block.get("input")), turn=turn
            )
            if turn:
                turn.actions.append(tool)
        if turn:
            stopped = message.get("stop_reason")
            if uses or stopped in GOES_ON:
                turn.go_on()
            elif stopped is not None or any(block.get("type") == "text" for block in blocks):
                turn.end(SUCCESS, at, is_certain=stopped is not None)
            else:
                turn.go_on()

    def _of(self, *, is_subagent: bool) -> Record:
        execution_id = self._subagents_prompt if is_subagent else None
        if execution_id is None and self._turn:
            execution_id = self._turn.execution_id
        return present({"agent_id": self._agent_id, "execution_id": execution_id})

    def _answered(self, record: Record, at: datetime, of: Record, turn: Turn | None, blocks: list[Record]) -> None:
        message, usage = record["message"], as_object(record["message"].get("usage"))
        call_id = as_name(message.get("id")) or as_name(record.get("requestId")) or as_name(record.get("uuid"))
        model = as_name(message.get("model"))
        if call_id is None or model is None:
            raise UnusableRecordError("id or model of a message is missing")
        if call_id not in self._messages and turn:
            turn.api_calls += 1
            turn.model = turn.model or model
        cached = [as_count(usage.get(name)) for name in ("cache_read_input_tokens", "cache_creation_input_tokens")]
        fresh = as_count(usage.get("input_tokens"))
        known = self._messages.setdefault(call_id, _Message({}))
        known.record = of | present(
            {
                "type": "model_call",
                "call_id": call_id,
                "model": model,
                "ended_at": at.isoformat(),
                "status": SUCCESS,
                "latency_ms": as_number(record.get("durationMs")),
                "input_tokens": None if fresh is None else fresh + sum(count or 0 for count in cached),
                "output_tokens": as_count(usage.get("output_tokens")),
                "cache_read_tokens": cached[0],
                "cache_creation_tokens": cached[1],
                "cost_usd": as_number(record.get("costUSD")),
            }
        )
        known.texts += [own for block in blocks if (own := fingerprint(block.get("text"))) is not None]

    def _result(self, record: Record, block: Record, at: datetime) -> Iterator[Record]:
        call_id, told = as_name(block.get("tool_use_id")), record.get("toolUseResult")
        call = self._waiting.pop(call_id, None) if call_id is not None else None
        if call is None or call_id is None:
            self._notes[ORPHAN] += 1
            return
        text = _text_of(block.get("content"))
        is_error = block.get("is_error") is True
        if is_error and (text.startswith(DENIED) or told == "User rejected tool use"):
            self._notes[NOT_ALLOWED] += 1
            return
        details = as_object(told)
        latency_ms = as_number(details.get("totalDurationMs", details.get("durationMs")))
        error = _tool_error(text) if is_error else None
        yield call.record(call_id, at, latency_ms=latency_ms, error=error, result=block.get("content"))


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
