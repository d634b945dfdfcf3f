"""Sessions of coding agents that are known by their OpenTelemetry logs: what their events come to.

What belongs here: what an event of Claude Code, Codex or Gemini CLI says of a turn. What does not: what a turn is
(`coding_turns`), and how events are written (`agent_logs`). The mapping: docs/opentelemetry.md.

No event tells that an agent handed back. So a turn ended where the last thing that is known of it is an answer of a
model, with no tool at work, or a failed call of a model.
"""

import re
from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from itertools import groupby
from typing import Any, ClassVar

from health_assets.logs.conventions import UNKNOWN_MODEL
from health_assets.logs.formats.agent_logs import Event, Events, events_of_document, events_of_lines
from health_assets.logs.formats.coding_turns import (
    FAILURE,
    NOT_ALLOWED,
    OPEN_TURN,
    SUCCESS,
    UNANSWERED,
    ToolCall,
    Turn,
    kind_of,
)
from health_assets.logs.formats.foreign_lines import (
    Line,
    Record,
    Source,
    UnusableRecordError,
    hex_id,
    line_of,
    present,
    rejected,
)
from health_assets.logs.json_values import as_count, as_name, as_number

UNTOUCHED = "prompt that no model answered: a command, or one whose answer is not there"
NO_EVENT = "event that tells of no turn or call"
NO_PROMPT = "call of a model or tool whose prompt is not in its file"
CONTEXT_SUFFIX = re.compile(r"\[\w{1,10}\]$")
"""What Claude Code appends to the name of a model for the size of its context."""
MAIN_SOURCES = re.compile(r"sdk|main|repl_main_thread(:.*)?")
"""What asks a model for the agent itself, rather than for a subagent, a title or a summary."""
SUBAGENT_TOOLS = {"Agent", "Task"}
"""Names of the tool by which Claude Code asks a subagent, and waits for it."""
BAD_STATUS = 400


def read_lines(source: Source) -> Iterator[Line]:
    """An execution for each turn that ended, the model calls and tool calls; other lines as they are."""
    events = Events(source)
    yield from events_of_lines(source, events)
    yield from _lines_of_sessions(source, events.found)


def read_document(source: Source) -> Iterator[Line]:
    """The same of a document."""
    events = Events(source)
    yield from events_of_document(source, events)
    yield from _lines_of_sessions(source, events.found)


def _lines_of_sessions(source: Source, events: Iterable[Event]) -> Iterator[Line]:
    """Lines of all sessions, in the order of the lines that they are from."""
    lines: list[Line] = []
    sessions: dict[tuple[str, str], list[Event]] = defaultdict(list)
    for event in events:
        session_id = _session_id(event)
        if session_id is None:
            lines.append(rejected(event.line, "", "id of an event's session is missing"))
        else:
            sessions[event.prefix, session_id].append(event)
    for prefix, session_id in sorted(sessions):
        session = _SESSIONS[prefix](source=source, session_id=session_id)
        lines += session.lines(_in_order(sessions[prefix, session_id], session.names))
    yield from sorted(dict.fromkeys(lines), key=lambda line: line.number)


def _in_order(events: Iterable[Event], names: tuple[str, ...]) -> Iterator[Event]:
    """The events of a session by time, whatever lines they stand in.

    Args:
        events: all of them.
        names: of events, in the order in which those of one moment follow one another.
    """
    ranks = {name: rank for rank, name in enumerate(names)}

    def order(event: Event) -> tuple[datetime, int, int, int]:
        return *event.order, ranks.get(event.name, len(ranks))

    for _, group in groupby(sorted(events, key=order), key=order):
        yield from sorted(group, key=lambda event: sorted((name, str(of)) for name, of in event.values.items()))


def _session_id(event: Event) -> str | None:
    return as_name(event.values.get("session.id")) or as_name(event.values.get("conversation.id"))


@dataclass(kw_only=True)
class _LoggedTurn(Turn):
    """A turn, and the tools that are at work.

    Args:
        line: number of the last line that tells of it.
        call_ids: ids of its tool calls, each of which is one action.
        without_result: the events that tell of calls which have no result yet, by the calls' ids.
        at_work: ids of those of them that the agent waits for.
        at_last_answer: those of these that had begun by the last answer.
    """

    line: int
    call_ids: set[str] = field(default_factory=set)
    without_result: dict[str, Event] = field(default_factory=dict)
    at_work: set[str] = field(default_factory=set)
    at_last_answer: set[str] = field(default_factory=set)


@dataclass(kw_only=True)
class _Session:
    """What is known after some events of a session.

    Args:
        source: the file.
        session_id: its id.
    """

    source: Source
    session_id: str
    turns: list[_LoggedTurn] = field(default_factory=list, init=False)
    _of_prompt: dict[str, _LoggedTurn] = field(default_factory=dict, init=False)
    _denied: set[str] = field(default_factory=set, init=False)

    tool: ClassVar[str]
    agent_id: ClassVar[str]
    names: ClassVar[tuple[str, ...]]
    """Names of events, in the order in which those of one moment follow one another."""

    def lines(self, events: Iterable[Event]) -> Iterator[Line]:
        """The records of these events, which come in order."""
        for event in events:
            try:
                for record in self._event(event):
                    yield line_of(event.line, record)
            except UnusableRecordError as error:
                yield rejected(event.line, "", str(error))
        for turn in self.turns:
            yield from self._closed(turn)

    def _event(self, event: Event) -> Iterator[Record]:
        """What an event completes."""
        raise NotImplementedError

    def _is_over(self, turn: _LoggedTurn) -> bool:
        """Whether a turn ended, rather than that a tool may be at work of which no event tells yet."""
        return turn.is_certain or turn is not self.turns[-1]

    def _closed(self, turn: _LoggedTurn) -> Iterator[Line]:
        self._note(UNANSWERED, len(turn.without_result))
        if turn.is_untouched:
            self._note(UNTOUCHED)
        elif turn.outcome is None or turn.at_work or not self._is_over(turn):
            self._note(OPEN_TURN)
        else:
            yield line_of(turn.line, turn.record())

    def _note(self, what: str, count: int = 1) -> None:
        if count:
            self.source.notes[f"{self.tool} {what}"] += count

    # -- turns ---------------------------------------------------------------------------------------------------------

    def _prompt_id(self, event: Event) -> str | None:
        """The id of the prompt that an event belongs to; None where it tells none."""
        return as_name(event.values.get("prompt.id"))

    def _turn_of(self, event: Event) -> _LoggedTurn | None:
        prompt_id, turn = self._prompt_id(event), self.turns[-1] if self.turns else None
        if prompt_id is not None:
            turn = self._of_prompt.get(prompt_id)
        if turn is not None:
            turn.line = max(turn.line, event.line)
        return turn

    def _of(self, event: Event, turn: Turn | None) -> Record:
        """Ids of the agent and of the execution that a call belongs to, whose prompt may be in another file."""
        if turn is None:
            self._note(NO_PROMPT)
        execution_id = turn.execution_id if turn else self._prompt_id(event)
        return present({"agent_id": self.agent_id, "execution_id": execution_id})

    def _begin(self, event: Event, version: str | None) -> None:
        """Begin a turn; the second prompt of an id is a turn of its own."""
        prompt_id, timed = self._prompt_id(event), f"{self.session_id}:{event.at.isoformat()}"
        known = {
            "agent_id": self.agent_id,
            "agent_version": version,
            "session_id": self.session_id,
            "user_id": as_name(event.values.get("user.id")),
            "input": event.values.get("asked"),
        }
        is_new = prompt_id is not None and prompt_id not in self._of_prompt
        turn = _LoggedTurn(
            execution_id=prompt_id if is_new and prompt_id is not None else timed,
            known=present(known), started_at=event.at, model=_model(event), line=event.line,
        )  # fmt: skip
        self.turns.append(turn)
        if prompt_id is not None:
            self._of_prompt[prompt_id] = turn

    # -- calls ---------------------------------------------------------------------------------------------------------

    def _own_id(self, event: Event) -> str:
        """An id of a call that has none."""
        values = event.values
        tool = as_name(values.get("tool_name")) or as_name(values.get("function_name"))
        called = hex_id(8, tool, values.get("arguments"))  # tools of one batch may end in the same millisecond
        return f"{self.session_id}:{event.name}:{event.nanoseconds or event.at.isoformat()}:{called}"

    def _answered(
        self,
        event: Event,
        usage: Record,
        latency_ms: float | None,
        *,
        call_id: str | None = None,
        is_main: bool = True,
        is_certain: bool = False,
    ) -> Record:
        """The model call of an answer, which may end a turn.

        Args:
            event: tells of it.
            usage: tokens and cost.
            latency_ms: its duration.
            call_id: its id.
            is_main: whether the agent itself asked, and no subagent.
            is_certain: whether tools would be told that it asked for and that are at work.
        """
        turn, model = self._turn_of(event), _model(event)
        if turn is not None and is_main:
            turn.api_calls += 1
            turn.model = turn.model or model
            turn.at_work -= turn.at_last_answer  # the agent went on without their results
            turn.at_last_answer = set(turn.at_work)
            turn.end(SUCCESS, event.at, is_certain=is_certain)
        return self._model_call(event, turn, call_id, SUCCESS, latency_ms) | present(usage)

    def _failed(self, event: Event, *, call_id: str | None, is_main: bool, status: Any) -> Record:
        """The model call of a request that failed, which may end a turn."""
        turn, code = self._turn_of(event), as_count(status)
        kind = kind_of(event.values.get("error_type"))
        error = f"API error{f': {kind}' if kind else ''}{f' ({code})' if code else ''}"
        if turn is not None and is_main:
            turn.error_count += 1
            turn.end(FAILURE, event.at, error)
        latency_ms = as_number(event.values.get("duration_ms"))
        return self._model_call(event, turn, call_id, FAILURE, latency_ms) | {"error": error}

    def _model_call(
        self, event: Event, turn: Turn | None, call_id: str | None, status: str, latency_ms: float | None
    ) -> Record:
        return self._of(event, turn) | present(
            {
                "type": "model_call",
                "call_id": call_id or self._own_id(event),
                "model": _model(event) or UNKNOWN_MODEL,
                "ended_at": event.at.isoformat(),
                "status": status,
                "latency_ms": latency_ms,
            }
        )

    def _asked_for(self, event: Event, call_id: str | None, *, is_allowed: bool) -> None:
        """Note that a tool begins, or that it must not."""
        turn, tool = self._turn_of(event), as_name(event.values.get("tool_name"))
        if tool is None:
            raise UnusableRecordError("name of a tool is missing")
        if not is_allowed:
            self._note(NOT_ALLOWED)
            self._denied.add(call_id or "")
        if turn is None:
            return
        turn.go_on()
        if call_id is not None or not is_allowed:
            turn.actions.append(tool)
        if call_id is not None and is_allowed:
            turn.call_ids.add(call_id)
            turn.at_work.add(call_id)
            turn.without_result[call_id] = event

    def _tool_ended(self, event: Event, call_id: str | None, tool: str | None, error: str | None) -> Iterator[Record]:
        """The tool call of a result."""
        turn, duration_ms = self._turn_of(event), as_number(event.values.get("duration_ms"))
        if tool is None:
            raise UnusableRecordError("name of a tool is missing")
        if turn is not None:
            if call_id is None or (call_id not in turn.call_ids and call_id not in self._denied):
                turn.actions.append(tool)
            if call_id is not None:
                turn.call_ids.add(call_id)
                turn.at_work.discard(call_id)
                turn.without_result.pop(call_id, None)
            turn.go_on()
        if call_id in self._denied:
            return
        call = ToolCall(
            tool=tool, of=self._of(event, turn), started_at=event.at, arguments=event.values.get("arguments"), turn=turn
        )
        own_id = call_id or self._own_id(event)
        yield call.record(own_id, event.at, latency_ms=duration_ms, error=error, result=None)


class _ClaudeCode(_Session):
    """A session of Claude Code."""

    tool, agent_id = "Claude Code", "claude-code"
    names = ("user_prompt", "api_request", "assistant_response", "api_error", "tool_decision", "tool_result")
    _tells_texts = False

    def _event(self, event: Event) -> Iterator[Record]:
        values = event.values
        call_id = as_name(values.get("tool_use_id"))
        if event.name == "user_prompt":
            self._begin(event, as_name(values.get("app.version")) or event.version)
        elif event.name == "api_request":
            latency_ms, own_id = as_number(values.get("duration_ms")), as_name(values.get("request_id"))
            is_main = self._is_main(event)
            yield self._answered(event, _claude_usage(values), latency_ms, call_id=own_id, is_main=is_main)
        elif event.name == "assistant_response" and self._is_main(event):
            self._tells_texts, turn = True, self._turn_of(event)
            if turn is not None and turn.outcome == SUCCESS:
                turn.is_certain = True
        elif event.name == "api_error":
            own_id = as_name(values.get("request_id"))
            status, is_main = values.get("status_code"), self._is_main(event)
            yield self._failed(event, call_id=own_id, is_main=is_main, status=status)
        elif event.name == "tool_decision":
            self._asked_for(event, call_id, is_allowed=values.get("decision") != "reject")
        elif event.name == "tool_result":
            error = kind_of(values.get("error_type")) or "the tool failed"
            yield from self._tool_ended(
                event, call_id, as_name(values.get("tool_name")), error if _is_false(values.get("success")) else None
            )
        else:
            self._note(NO_EVENT)

    def _is_main(self, event: Event) -> bool:
        """Whether a model was asked for the agent itself; where that is not told, unless a subagent was at work."""
        query_source = as_name(event.values.get("query_source"))
        if query_source is not None:
            return MAIN_SOURCES.fullmatch(query_source) is not None
        turn, asked_at = self._turn_of(event), _before(event.at, as_number(event.values.get("duration_ms")))
        calls = turn.without_result.values() if turn else ()
        return not any(call.values["tool_name"] in SUBAGENT_TOOLS and call.at <= asked_at for call in calls)

    def _is_over(self, turn: _LoggedTurn) -> bool:
        """Whether its last answer has a text, which hands back; older versions do not tell which answers have one."""
        return turn.is_certain or not self._tells_texts


class _Codex(_Session):
    """A conversation of Codex."""

    tool, agent_id = "Codex", "codex"
    names = ("user_prompt", "api_request", "sse_event", "tool_decision", "tool_result")
    _requested_at: datetime | None = None

    def _event(self, event: Event) -> Iterator[Record]:
        values = event.values
        call_id, is_denied = as_name(values.get("call_id")), not str(values.get("decision")).startswith("approved")
        is_completed = values.get("event.kind") == "response.completed" and "input_token_count" in values
        if event.name == "user_prompt":
            self._begin(event, as_name(values.get("app.version")) or event.version)
        elif event.name == "sse_event" and is_completed:
            requested_at, self._requested_at = self._requested_at, None
            latency_ms = (event.at - requested_at) / timedelta(milliseconds=1) if requested_at else None
            yield self._answered(event, _codex_usage(values), latency_ms, is_certain=True)
        elif event.name in ("api_request", "sse_event") and self._is_of_model(values) and _has_failed(values):
            self._requested_at = None
            status = values.get("http.response.status_code")
            yield self._failed(event, call_id=None, is_main=True, status=status)
        elif event.name == "api_request" and self._is_of_model(values):
            self._requested_at = _before(event.at, as_number(values.get("duration_ms")))
            if turn := self._turn_of(event):
                turn.go_on()
            self._note(NO_EVENT)
        elif event.name == "tool_decision":
            self._asked_for(event, call_id, is_allowed=not is_denied)
        elif event.name == "tool_result":
            code, has_failed = values.get("exit_code"), _is_false(values.get("success"))
            error = f"exit code {code}" if code else "the tool failed" if has_failed else None
            yield from self._tool_ended(event, call_id, as_name(values.get("tool_name")), error)
        else:
            self._note(NO_EVENT)

    @staticmethod
    def _is_of_model(values: Record) -> bool:
        """Whether a request asks a model, rather than for a list of models; older versions do not tell."""
        return "/responses" in str(values.get("endpoint", "/responses"))


class _GeminiCli(_Session):
    """A session of Gemini CLI."""

    tool, agent_id = "Gemini CLI", "gemini-cli"
    names = ("user_prompt", "api_response", "api_error", "tool_call", "conversation_finished")

    def _prompt_id(self, event: Event) -> str | None:
        """The prompt's id begins with that of the session; other ids are of what no user asked for."""
        return as_name(event.values.get("prompt_id"))

    def _of(self, event: Event, turn: Turn | None) -> Record:
        of, prompt_id = super()._of(event, turn), self._prompt_id(event)
        if turn is None and prompt_id is not None and not prompt_id.startswith(self.session_id):
            of.pop("execution_id", None)
        return of

    def _event(self, event: Event) -> Iterator[Record]:
        values = event.values
        is_main = (as_name(values.get("role")) or "main") == "main"
        if event.name == "user_prompt":
            self._begin(event, None)
        elif event.name == "api_response":
            latency_ms = as_number(values.get("duration_ms"))
            yield self._answered(event, _gemini_usage(values), latency_ms, is_main=is_main)
            if is_main and (turn := self._turn_of(event)):
                asks_for_tool = values.get("asks_for_tool")
                if asks_for_tool:
                    turn.go_on()
                turn.is_certain = asks_for_tool is False
        elif event.name == "api_error":
            yield self._failed(event, call_id=None, is_main=is_main, status=values.get("status_code"))
        elif event.name == "tool_call":
            yield from self._tool_call(event)
        else:
            self._note(NO_EVENT)
            is_end = event.name in ("conversation_finished", "plan.approval_mode_duration")
            if is_end and self.turns and self.turns[-1].outcome == SUCCESS:
                self.turns[-1].is_certain = True

    def _tool_call(self, event: Event) -> Iterator[Record]:
        """The call of a tool, which is logged when it is over; one that was stopped has no error."""
        values, tool = event.values, as_name(event.values.get("function_name"))
        has_failed, is_stopped = _is_false(values.get("success")), "has_error" not in values
        if has_failed and is_stopped and tool is not None:
            self._note(NOT_ALLOWED)
            if turn := self._turn_of(event):
                turn.actions.append(tool)
                turn.go_on()
            return
        error = kind_of(values.get("error_type")) or "the tool failed"
        yield from self._tool_ended(event, None, tool, error if has_failed else None)


_SESSIONS: dict[str, type[_Session]] = {"claude_code": _ClaudeCode, "codex": _Codex, "gemini_cli": _GeminiCli}


def _model(event: Event) -> str | None:
    model = as_name(event.values.get("model"))
    return model and CONTEXT_SUFFIX.sub("", model)


def _has_failed(values: Record) -> bool:
    return "has_error" in values or (as_count(values.get("http.response.status_code")) or 0) >= BAD_STATUS


def _is_false(value: Any) -> bool:
    return value is False or value == "false"


def _before(at: datetime, duration_ms: float | None) -> datetime:
    try:
        return at - timedelta(milliseconds=max(duration_ms or 0, 0))
    except OverflowError:
        return at


def _claude_usage(values: Record) -> Record:
    """Tokens and cost; what Claude Code calls input leaves out what was read from the cache and written to it."""
    fresh = as_count(values.get("input_tokens"))
    cached = [as_count(values.get(name)) for name in ("cache_read_tokens", "cache_creation_tokens")]
    return {
        "input_tokens": None if fresh is None else fresh + sum(count or 0 for count in cached),
        "output_tokens": as_count(values.get("output_tokens")),
        "cache_read_tokens": cached[0],
        "cache_creation_tokens": cached[1],
        "cost_usd": as_number(values.get("cost_usd")),
    }


def _codex_usage(values: Record) -> Record:
    return {
        "input_tokens": as_count(values.get("input_token_count")),
        "output_tokens": as_count(values.get("output_token_count")),
        "cache_read_tokens": as_count(values.get("cached_token_count")),
        "cache_creation_tokens": as_count(values.get("cache_write_token_count")),
        "reasoning_tokens": as_count(values.get("reasoning_token_count")),
    }


def _gemini_usage(values: Record) -> Record:
    """Tokens; what Gemini CLI calls output leaves out the thoughts, and its input includes the cached tokens."""
    fresh, output = as_count(values.get("input_token_count")), as_count(values.get("output_token_count"))
    thoughts = as_count(values.get("thoughts_token_count"))
    return {
        "input_tokens": None if fresh is None else fresh + (as_count(values.get("tool_token_count")) or 0),
        "output_tokens": None if output is None else output + (thoughts or 0),
        "cache_read_tokens": as_count(values.get("cached_content_token_count")),
        "reasoning_tokens": thoughts,
    }
