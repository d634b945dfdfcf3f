"""OpenTelemetry logs of Codex: what an event says of a turn. The mapping: docs/opentelemetry.md."""

from collections.abc import Iterator
from datetime import datetime, timedelta

from health_assets.logs.formats.agent_log_turns import NO_EVENT, LoggedSession, before, is_false
from health_assets.logs.formats.agent_logs import Event
from health_assets.logs.formats.foreign_lines import Record
from health_assets.logs.json_values import as_count, as_name, as_number

BAD_STATUS = 400


class CodexSession(LoggedSession):
    """A conversation of Codex."""

    agent_name, agent_id = "Codex", "codex"
    event_order = ("user_prompt", "api_request", "sse_event", "tool_decision", "tool_result")
    _requested_at: datetime | None = None

    def records(self, event: Event) -> Iterator[Record]:
        """The records that an event completes."""
        values = event.values
        call_id, is_denied = as_name(values.get("call_id")), not str(values.get("decision")).startswith("approved")
        is_completed = values.get("event.kind") == "response.completed" and "input_token_count" in values
        if event.name == "user_prompt":
            self.begin_turn(event, as_name(values.get("app.version")) or event.version)
        elif event.name == "sse_event" and is_completed:
            requested_at, self._requested_at = self._requested_at, None
            latency_ms = (event.at - requested_at) / timedelta(milliseconds=1) if requested_at else None
            yield self.model_call_of_answer(event, _usage(values), latency_ms, is_certain=True)
        elif event.name in ("api_request", "sse_event") and self._is_of_model(values) and _has_failed(values):
            self._requested_at = None
            status = values.get("http.response.status_code")
            yield self.model_call_of_failure(event, call_id=None, is_main=True, status=status)
        elif event.name == "api_request" and self._is_of_model(values):
            self._requested_at = before(event.at, as_number(values.get("duration_ms")))
            if turn := self.turn_of(event):
                turn.go_on()
            self.count(NO_EVENT)
        elif event.name == "tool_decision":
            self.note_tool_decision(event, call_id, is_allowed=not is_denied)
        elif event.name == "tool_result":
            code, has_failed = values.get("exit_code"), is_false(values.get("success"))
            error = f"exit code {code}" if code else "the tool failed" if has_failed else None
            yield from self.tool_calls_of_result(event, call_id, as_name(values.get("tool_name")), error)
        else:
            self.count(NO_EVENT)

    @staticmethod
    def _is_of_model(values: Record) -> bool:
        """Whether a request asks a model, rather than for a list of models; older versions do not tell."""
        return "/responses" in str(values.get("endpoint", "/responses"))


def _has_failed(values: Record) -> bool:
    return "has_error" in values or (as_count(values.get("http.response.status_code")) or 0) >= BAD_STATUS


def _usage(values: Record) -> Record:
    return {
        "input_tokens": as_count(values.get("input_token_count")),
        "output_tokens": as_count(values.get("output_token_count")),
        "cache_read_tokens": as_count(values.get("cached_token_count")),
        "cache_creation_tokens": as_count(values.get("cache_write_token_count")),
        "reasoning_tokens": as_count(values.get("reasoning_token_count")),
    }
