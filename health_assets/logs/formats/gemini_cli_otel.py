"""OpenTelemetry logs of Gemini CLI: what an event says of a turn. The mapping: docs/opentelemetry.md."""

from collections.abc import Iterator

from health_assets.logs.formats.agent_log_turns import NO_EVENT, LoggedSession, is_false
from health_assets.logs.formats.agent_logs import Event
from health_assets.logs.formats.coding_turns import NOT_ALLOWED, SUCCESS, Turn, kind_of
from health_assets.logs.formats.foreign_lines import Record
from health_assets.logs.json_values import as_count, as_name, as_number


class GeminiCliSession(LoggedSession):
    """A session of Gemini CLI."""

    agent_name, agent_id = "Gemini CLI", "gemini-cli"
    event_order = ("user_prompt", "api_response", "api_error", "tool_call", "conversation_finished")

    def prompt_id_of(self, event: Event) -> str | None:
        """The prompt's id begins with that of the session; other ids are of what no user asked for."""
        return as_name(event.values.get("prompt_id"))

    def ids_of(self, event: Event, turn: Turn | None) -> Record:
        """Ids of the agent and of the execution; of the agent alone where no user asked for the call."""
        ids, prompt_id = super().ids_of(event, turn), self.prompt_id_of(event)
        if turn is None and prompt_id is not None and not prompt_id.startswith(self.session_id):
            ids.pop("execution_id", None)
        return ids

    def records(self, event: Event) -> Iterator[Record]:
        """The records that an event completes."""
        values = event.values
        is_main = (as_name(values.get("role")) or "main") == "main"
        if event.name == "user_prompt":
            self.begin_turn(event, None)
        elif event.name == "api_response":
            latency_ms = as_number(values.get("duration_ms"))
            yield self.model_call_of_answer(event, _usage(values), latency_ms, is_main=is_main)
            if is_main and (turn := self.turn_of(event)):
                asks_for_tool = values.get("asks_for_tool")
                if asks_for_tool:
                    turn.go_on()
                turn.is_certain = asks_for_tool is False
        elif event.name == "api_error":
            yield self.model_call_of_failure(event, call_id=None, is_main=is_main, status=values.get("status_code"))
        elif event.name == "tool_call":
            yield from self._tool_call(event)
        else:
            self.count(NO_EVENT)
            is_end = event.name in ("conversation_finished", "plan.approval_mode_duration")
            if is_end and self.turns and self.turns[-1].outcome == SUCCESS:
                self.turns[-1].is_certain = True

    def _tool_call(self, event: Event) -> Iterator[Record]:
        """The call of a tool, which is logged when it is over; one that was stopped has no error."""
        values, tool = event.values, as_name(event.values.get("function_name"))
        has_failed, is_stopped = is_false(values.get("success")), "has_error" not in values
        if has_failed and is_stopped and tool is not None:
            self.count(NOT_ALLOWED)
            if turn := self.turn_of(event):
                turn.actions.append(tool)
                turn.go_on()
            return
        error = kind_of(values.get("error_type")) or "the tool failed"
        yield from self.tool_calls_of_result(event, None, tool, error if has_failed else None)


def _usage(values: Record) -> Record:
    """Tokens; what Gemini CLI calls output leaves out the thoughts, and its input includes the cached tokens."""
    fresh, output = as_count(values.get("input_token_count")), as_count(values.get("output_token_count"))
    thoughts = as_count(values.get("thoughts_token_count"))
    return {
        "input_tokens": None if fresh is None else fresh + (as_count(values.get("tool_token_count")) or 0),
        "output_tokens": None if output is None else output + (thoughts or 0),
        "cache_read_tokens": as_count(values.get("cached_content_token_count")),
        "reasoning_tokens": thoughts,
    }
