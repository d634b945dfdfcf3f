"""Record types of the native log format (contract, section 2).

What belongs here: which columns each type must and may have, and what must hold between them. What does not: the values
that a column may hold (`native_fields`).
"""

from dataclasses import dataclass

from health_assets.logs.native_fields import SIGNALS


@dataclass(frozen=True, kw_only=True)
class RecordType:
    """One kind of record.

    Args:
        event_time: column that decides the hour.
        required: columns that must be there.
        optional: columns that may be there.
        condition: (SQL condition with `{column}` for a column's value, the reason when it does not hold) or None.
    """

    event_time: str
    required: tuple[str, ...]
    optional: tuple[str, ...]
    condition: tuple[str, str] | None = None

    @property
    def columns(self) -> tuple[str, ...]:
        """All columns that this type knows; a line's other fields are ignored."""
        return self.required + self.optional


RECORD_TYPES: dict[str, RecordType] = {
    "execution": RecordType(
        event_time="ended_at",
        required=("execution_id", "agent_id", "started_at", "ended_at", "status"),
        optional=(
            "session_id",
            "task_id",
            "condition",
            "trigger_id",
            "model",
            "error",
            "sla_s",
            "sla_breached",
            "confidence",
            "cost_usd",
            "api_calls",
            "error_count",
            "call_latency_s",
            "actions",
            "signals",
            "violations",
            "platform",
            "agent_version",
            "input_tokens",
            "output_tokens",
            "is_timed",
        ),
        condition=("{ended_at} >= {started_at}", "ended_at is before started_at"),
    ),
    "trigger": RecordType(
        event_time="fired_at", required=("trigger_id", "agent_id", "fired_at", "trigger_status"), optional=("reason",)
    ),
    "model_call": RecordType(
        event_time="ended_at",
        required=("call_id", "model", "ended_at", "status"),
        optional=(
            "agent_id",
            "execution_id",
            "latency_ms",
            "error",
            "input_tokens",
            "output_tokens",
            "cost_usd",
            "response_model",
        ),
    ),
    "tool_call": RecordType(
        event_time="ended_at",
        required=("call_id", "tool", "ended_at", "status"),
        optional=("agent_id", "execution_id", "latency_ms", "error"),
    ),
    "signals": RecordType(
        event_time="at",
        required=("execution_id", "at"),
        optional=("session_id", "agent_id", *SIGNALS),
        condition=(
            f"coalesce({', '.join(f'{{{name}}}' for name in SIGNALS)}) IS NOT NULL",
            "none of the four signals is there",
        ),
    ),
    "judgement": RecordType(
        event_time="at", required=("execution_id", "at", "violations"), optional=("agent_id", "judged_by", "judge")
    ),
    "agent_update": RecordType(event_time="at", required=("agent_id", "at", "kind"), optional=("detail",)),
}
