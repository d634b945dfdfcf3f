"""OpenTelemetry logs of Claude Code: what an event says of a turn. The mapping: docs/opentelemetry.md."""

import re
from collections.abc import Iterator

from health_assets.logs.formats.agent_log_turns import NO_EVENT, LoggedSession, LoggedTurn, before, is_false
from health_assets.logs.formats.agent_logs import Event
from health_assets.logs.formats.coding_turns import SUCCESS, kind_of
from health_assets.logs.formats.foreign_lines import Record
from health_assets.logs.json_values import as_count, as_name, as_number

MAIN_SOURCES = re.compile(r"sdk|main|repl_main_thread(:.*)?")
"""What asks a model for the agent itself, rather than for a subagent, a title or a summary."""
SUBAGENT_TOOLS = {"Agent", "Task"}
"""Names of the tool that runs a subagent and returns its answer."""


class ClaudeCodeSession(LoggedSession):
    """A session of Claude Code."""

    agent_name, agent_id = "Claude Code", "claude-code"
    event_order = ("user_prompt", "api_request", "assistant_response", "api_error", "tool_decision", "tool_result")
    _has_texts = False

    def records(self, event: Event) -> Iterator[Record]:
        """The records that an event completes."""
        values = event.values
        call_id, request_id = as_name(values.get("tool_use_id")), as_name(values.get("request_id"))
        if event.name == "user_prompt":
            self.begin_turn(event, as_name(values.get("app.version")) or event.version)
        elif event.name == "api_request":
            latency_ms, is_main = as_number(values.get("duration_ms")), self._is_main(event)
            yield self.model_call_of_answer(event, _usage(values), latency_ms, call_id=request_id, is_main=is_main)
        elif event.name == "assistant_response" and self._is_main(event):
            self._has_texts, turn = True, self.turn_of(event)
            if turn is not None and turn.outcome == SUCCESS:
                turn.is_certain = True
        elif event.name == "api_error":
            status, is_main = values.get("status_code"), self._is_main(event)
            yield self.model_call_of_failure(event, call_id=request_id, is_main=is_main, status=status)
        elif event.name == "tool_decision":
            self.note_tool_decision(event, call_id, is_allowed=values.get("decision") != "reject")
        elif event.name == "tool_result":
            error = kind_of(values.get("error_type")) or "the tool failed"
            yield from self.tool_calls_of_result(
                event, call_id, as_name(values.get("tool_name")), error if is_false(values.get("success")) else None
            )
        else:
            self.count(NO_EVENT)

    def _is_main(self, event: Event) -> bool:
        """Whether a model was asked for the agent itself; where that is not told, unless a subagent was at work."""
        query_source = as_name(event.values.get("query_source"))
        if query_source is not None:
            return MAIN_SOURCES.fullmatch(query_source) is not None
        turn, asked_at = self.turn_of(event), before(event.at, as_number(event.values.get("duration_ms")))
        calls = turn.without_result.values() if turn else ()
        return not any(call.values["tool_name"] in SUBAGENT_TOOLS and call.at <= asked_at for call in calls)

    def is_over(self, turn: LoggedTurn) -> bool:
        """Whether its last answer has a text, which hands back; older versions do not tell which answers have one."""
        return turn.is_certain or not self._has_texts


def _usage(values: Record) -> Record:
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
