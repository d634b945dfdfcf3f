"""Turns and calls of a session that is known by its OpenTelemetry logs, as events of any coding agent complete them.

What belongs here: what all agents share. What does not: which event of an agent says what (`claude_code_otel`,
`codex_otel`, `gemini_cli_otel`), what a turn is (`coding_turns`), and how events are written (`agent_logs`).

No event tells that an agent handed back. So a turn ended where the last thing that is known of it is an answer of a
model, with no tool at work, or a failed call of a model.
"""

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any, ClassVar

from health_assets.logs.conventions import UNKNOWN_MODEL
from health_assets.logs.formats.agent_logs import Event
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


@dataclass(kw_only=True)
class LoggedTurn(Turn):
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
class LoggedSession:
    """What is known after some events of a session.

    Args:
        source: the file.
        session_id: its id.
    """

    source: Source
    session_id: str
    turns: list[LoggedTurn] = field(default_factory=list, init=False)
    _turns_of_prompts: dict[str, LoggedTurn] = field(default_factory=dict, init=False)
    _denied: set[str] = field(default_factory=set, init=False)

    agent_name: ClassVar[str]
    agent_id: ClassVar[str]
    event_order: ClassVar[tuple[str, ...]]
    """Names of events, in the order in which those of one moment follow one another."""

    def lines(self, events: Iterable[Event]) -> Iterator[Line]:
        """The records of these events, which come in order."""
        for event in events:
            try:
                for record in self.records(event):
                    yield line_of(event.line, record)
            except UnusableRecordError as error:
                yield rejected(event.line, "", str(error))
        for turn in self.turns:
            yield from self._closed(turn)

    def records(self, event: Event) -> Iterator[Record]:
        """The records that an event completes."""
        raise NotImplementedError

    def is_over(self, turn: LoggedTurn) -> bool:
        """Whether a turn ended, rather than that a tool may be at work of which no event tells yet."""
        return turn.is_certain or turn is not self.turns[-1]

    def _closed(self, turn: LoggedTurn) -> Iterator[Line]:
        self.count(UNANSWERED, len(turn.without_result))
        if turn.is_untouched:
            self.count(UNTOUCHED)
        elif turn.outcome is None or turn.at_work or not self.is_over(turn):
            self.count(OPEN_TURN)
        else:
            yield line_of(turn.line, turn.record())

    def count(self, what: str, count: int = 1) -> None:
        """Count what becomes no record."""
        if count:
            self.source.notes[f"{self.agent_name} {what}"] += count

    # -- turns ---------------------------------------------------------------------------------------------------------

    def prompt_id_of(self, event: Event) -> str | None:
        """The id of the prompt that an event belongs to; None where it tells none."""
        return as_name(event.values.get("prompt.id"))

    def turn_of(self, event: Event) -> LoggedTurn | None:
        """The turn that an event belongs to: that of its prompt, or the last one where it tells none."""
        prompt_id, turn = self.prompt_id_of(event), self.turns[-1] if self.turns else None
        if prompt_id is not None:
            turn = self._turns_of_prompts.get(prompt_id)
        if turn is not None:
            turn.line = max(turn.line, event.line)
        return turn

    def ids_of(self, event: Event, turn: Turn | None) -> Record:
        """Ids of the agent and of the execution that a call belongs to, whose prompt may be in another file."""
        if turn is None:
            self.count(NO_PROMPT)
        execution_id = turn.execution_id if turn else self.prompt_id_of(event)
        return present({"agent_id": self.agent_id, "execution_id": execution_id})

    def begin_turn(self, event: Event, version: str | None) -> None:
        """Begin a turn; the second prompt of an id is a turn of its own."""
        prompt_id, id_by_time = self.prompt_id_of(event), f"{self.session_id}:{event.at.isoformat()}"
        known = {
            "agent_id": self.agent_id,
            "agent_version": version,
            "session_id": self.session_id,
            "user_id": as_name(event.values.get("user.id")),
            "input": event.values.get("prompt_fingerprint"),
        }
        is_new = prompt_id is not None and prompt_id not in self._turns_of_prompts
        turn = LoggedTurn(
            execution_id=prompt_id if is_new and prompt_id is not None else id_by_time,
            known=present(known), started_at=event.at, model=_model(event), line=event.line,
        )  # fmt: skip
        self.turns.append(turn)
        if prompt_id is not None:
            self._turns_of_prompts[prompt_id] = turn

    # -- calls ---------------------------------------------------------------------------------------------------------

    def id_of_call(self, event: Event) -> str:
        """An id of a call that has none."""
        values = event.values
        tool = as_name(values.get("tool_name")) or as_name(values.get("function_name"))
        # tools of one batch may end in the same millisecond
        arguments_id = hex_id(8, tool, values.get("arguments_fingerprint"))
        return f"{self.session_id}:{event.name}:{event.nanoseconds or event.at.isoformat()}:{arguments_id}"

    def model_call_of_answer(
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
            is_certain: whether events would tell of tools that it asked for and that are at work.
        """
        turn, model = self.turn_of(event), _model(event)
        if turn is not None and is_main:
            turn.api_calls += 1
            turn.model = turn.model or model
            turn.at_work -= turn.at_last_answer  # the agent went on without their results
            turn.at_last_answer = set(turn.at_work)
            turn.end(SUCCESS, event.at, is_certain=is_certain)
        return self._model_call(event, turn, call_id, SUCCESS, latency_ms) | present(usage)

    def model_call_of_failure(self, event: Event, *, call_id: str | None, is_main: bool, status: Any) -> Record:
        """The model call of a request that failed, which may end a turn."""
        turn, code = self.turn_of(event), as_count(status)
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
        return self.ids_of(event, turn) | present(
            {
                "type": "model_call",
                "call_id": call_id or self.id_of_call(event),
                "model": _model(event) or UNKNOWN_MODEL,
                "ended_at": event.at.isoformat(),
                "status": status,
                "latency_ms": latency_ms,
            }
        )

    def note_tool_decision(self, event: Event, call_id: str | None, *, is_allowed: bool) -> None:
        """Note that a tool begins, or that it must not."""
        turn, tool = self.turn_of(event), as_name(event.values.get("tool_name"))
        if tool is None:
            raise UnusableRecordError("name of a tool is missing")
        if not is_allowed:
            self.count(NOT_ALLOWED)
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

    def tool_calls_of_result(
        self, event: Event, call_id: str | None, tool: str | None, error: str | None
    ) -> Iterator[Record]:
        """The tool call of a result."""
        turn, duration_ms = self.turn_of(event), as_number(event.values.get("duration_ms"))
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
            tool=tool,
            of=self.ids_of(event, turn),
            started_at=event.at,
            arguments=event.values.get("arguments_fingerprint"),
            turn=turn,
        )
        yield call.record(call_id or self.id_of_call(event), event.at, latency_ms=duration_ms, error=error, result=None)


def _model(event: Event) -> str | None:
    model = as_name(event.values.get("model"))
    return model and CONTEXT_SUFFIX.sub("", model)


def is_false(value: Any) -> bool:
    """Whether a value is no, in either spelling."""
    return value is False or value == "false"


def before(at: datetime, duration_ms: float | None) -> datetime:
    """The time so many milliseconds earlier."""
    try:
        return at - timedelta(milliseconds=max(duration_ms or 0, 0))
    except OverflowError:
        return at
