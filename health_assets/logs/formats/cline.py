"""Tasks of Cline and Roo Code, `tasks/*/ui_messages.json`: a list of what their page showed of a task.

What belongs here: what a message of these files says. What does not: what a turn is (`coding_turns`). The mapping:
docs/formats.md.
"""

import json
import re
from collections.abc import Iterator
from datetime import datetime, timedelta

from health_assets.logs.conventions import UNKNOWN_MODEL
from health_assets.logs.formats.coding_turns import (
    CANCELLED,
    FAILURE,
    MODEL_ERROR,
    NO_EVENT,
    SUCCESS,
    Turns,
    lines_of_document,
)
from health_assets.logs.formats.foreign_lines import Line, Record, Source, as_epoch, present
from health_assets.logs.formats.opening import Opening
from health_assets.logs.json_values import as_count, as_name, as_number, as_object

PRIVATE_FILE = re.compile(
    r"(^|/)(api_conversation_history|task_metadata|history_item|focus_chain_taskid_\w+)\.json(\.gz)?$"
)
"""Names of files beside a task's messages, which repeat them or tell of its files."""
TEXT = re.compile(rb'"type"\s*:\s*"(say|ask)"\s*,\s*"(say|ask)"\s*:|"ts"\s*:\s*\d{13}\s*,\s*"type"\s*:\s*"(say|ask)"')
"""A part of a task, also of one that is damaged."""
PROMPTS = ("task", "user_feedback")
TOOLS = ("tool", "command", "use_mcp_server", "browser_action_launch")
HANDED_BACK = ("completion_result", "plan_mode_respond")
CONDENSED = "condense_context"
RETRIES = ("error_retry", "api_req_retried")
RESUMED_WITHIN = timedelta(minutes=10)
"""A task that its user cancels offers to be resumed at once; one that does so later was left, as with its editor."""
NO_USAGE = "request that tells no usage: it runs still, or it failed"
NO_OUTCOME = "tool call whose outcome the messages of a task do not tell; it counts as an action alone"


def recognizes(opening: Opening) -> bool:
    """Whether a file that begins so lists the messages of a task of Cline."""
    return _is_task(opening) and not _is_of_roo_code(opening.members)


def recognizes_roo_code(opening: Opening) -> bool:
    """Whether a file that begins so lists the messages of a task of Roo Code."""
    return _is_task(opening) and _is_of_roo_code(opening.members)


def _is_task(opening: Opening) -> bool:
    kind = opening.members.get("type")
    is_message = kind in ("say", "ask") and {"ts", kind} <= opening.members.keys()
    return opening.is_foreign_list and not opening.has_lines and is_message


def _is_of_roo_code(first: Record) -> bool:
    """Whether a task that begins with this message is one of Roo Code; Cline tells a message's place in its history."""
    return first.get("say") == "text" and "conversationHistoryIndex" not in first


def read(source: Source) -> Iterator[Line]:
    """An execution or a cancellation of each turn that ended, and a model call for each request."""
    yield from lines_of_document(source, _Task(source))


class _Task:
    """What is known after some messages.

    Args:
        source: the file.
    """

    def __init__(self, source: Source) -> None:
        self._turns = Turns(tool="Cline", agent_id="cline", notes=source.notes)
        self._is_asked = False
        self._last_at: datetime | None = None

    def records(self, record: Record) -> Iterator[Record]:
        """What a message completes."""
        at, kind = as_epoch(record.get("ts"), "ts", "milliseconds"), record.get("say") or record.get("ask")
        is_soon, self._last_at = at - (self._last_at or at) <= RESUMED_WITHIN, at
        if self._turns.session_id is None:
            self._turns.session_id = str(record["ts"])
            if _is_of_roo_code(record):
                self._turns.tool, self._turns.agent_id = "Roo Code", "roo-code"
            yield from self._turns.begin(str(record["ts"]), at, record.get("text"))
            return
        turn = self._turns.current
        if kind in PROMPTS and record.get("type") == "say":
            if self._is_asked:
                self._is_asked = False
                self._turns.note(NO_EVENT)
                return
            yield from self._turns.begin(f"{self._turns.session_id}:{record['ts']}", at, record.get("text"))
        elif kind == "api_req_started":
            yield from self._requested(at, record)
        elif kind == CONDENSED and (condensed := as_object(record.get("contextCondense"))):
            yield self._call(at, record, condensed)
        elif turn is None:
            self._turns.note(NO_EVENT)
        elif kind in TOOLS:
            if name := _tool_of(str(kind), record):
                turn.actions.append(name)
            self._turns.note(NO_OUTCOME if name else NO_EVENT)
            if turn.outcome != SUCCESS:  # a command may be offered with the result
                turn.go_on()
        elif kind in HANDED_BACK and record.get("partial") is not True:
            if turn.outcome != SUCCESS:
                turn.end(SUCCESS, at)
        elif kind == "followup":
            self._is_asked = True
        elif kind == "api_req_failed":
            turn.error_count += 1
            turn.end(FAILURE, at, MODEL_ERROR)
        elif kind in RETRIES:
            turn.error_count += kind == "error_retry"
            turn.go_on()
        elif kind == "resume_task" and turn.outcome != FAILURE:
            self._is_asked = False
            if turn.outcome is None and is_soon:
                turn.end(CANCELLED, at)
        else:
            self._turns.note(NO_EVENT)

    def end(self) -> Iterator[Record]:
        """What the end of the file completes."""
        yield from self._turns.close(is_last=True)

    def _requested(self, at: datetime, record: Record) -> Iterator[Record]:
        """The model call of a request, once its usage is known."""
        told, turn = _object(record.get("text")), self._turns.current
        if turn is not None:
            turn.go_on()
        if told.get("cancelReason") == "user_cancelled" and turn is not None:
            turn.end(CANCELLED, at)
        elif told.get("cancelReason") is not None and turn is not None:
            turn.end(FAILURE, at, f"{MODEL_ERROR}: the answer broke off")
        model = as_name(as_object(record.get("modelInfo")).get("modelId"))
        read, written = as_count(told.get("cacheReads")), as_count(told.get("cacheWrites"))
        count, output = as_count(told.get("tokensIn")), as_count(told.get("tokensOut"))
        if count is None or not output:
            self._turns.note(NO_USAGE)
            return
        if turn is not None:
            turn.api_calls += 1
            turn.model = turn.model or model
        has_all = told.get("apiProtocol") == "openai"  # whose input has the cached tokens in it
        yield self._call(at, record, told) | present(
            {
                "model": model,
                "input_tokens": count if has_all else count + (read or 0) + (written or 0),
                "output_tokens": output,
                "cache_read_tokens": read,
                "cache_creation_tokens": written,
            }
        )

    def _call(self, at: datetime, record: Record, told: Record) -> Record:
        """A call of a model that is not known, with its cost alone."""
        return self._turns.of | present(
            {
                "type": "model_call",
                "call_id": f"{self._turns.session_id}:{record['ts']}",
                "model": UNKNOWN_MODEL,
                "ended_at": at.isoformat(),
                "status": SUCCESS,
                "cost_usd": as_number(told.get("cost")) or None,  # 0 is also a price that is not known
            }
        )


def _tool_of(kind: str, record: Record) -> str | None:
    """The name of a tool; None of one that is not fully asked for."""
    if record.get("partial") is True:
        return None
    told = _object(record.get("text"))
    own = {"command": "execute_command", "tool": told.get("tool"), "use_mcp_server": told.get("toolName")}
    return as_name(own.get(kind)) or kind


def _object(text: object) -> Record:
    """The object that a message has as a text of JSON."""
    try:
        return as_object(json.loads(text)) if isinstance(text, str) else {}
    except (ValueError, RecursionError):
        return {}
