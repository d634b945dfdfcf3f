"""Systems that had nothing to evaluate in some hours, and what the logs would have to say for them."""

from collections.abc import Iterator

from ibis import ir

from health_assets.core.hours import HourRange
from health_assets.warehouse.partition_states import PartitionStates
from health_assets.warehouse.session import Session

NEEDS = {
    "session_scores": ("sessions", "no session_id", "no gen_ai.conversation.id or session.id on any span"),
    "agent_reliability": (
        "reliability",
        "no task_id, and no two with the same input",
        "no two runs with the same input, and no item of an evaluation",
    ),
    "model_health": ("models", "no model_call lines", "no span of a model call"),
    "tool_health": ("tools", "no tool_call lines", "no span of a tool call"),
}
"""By table: its name for people, and what is missing in lines of the native format and in spans."""
NO_SIGNALS = "no signals lines"
NO_SIGNALS_OF_SPANS = "no signals lines, which name an agent's span as execution_id traceId:spanId"


def unevaluated(session: Session, hours: HourRange) -> str | None:
    """A sentence with each system that was materialized and has nothing to show; None where every one has.

    Args:
        session: a session.
        hours: the hours that are shown.
    """
    are_spans = bool(session.count_hours("spans", hours))
    missing = list(_missing(session, hours, are_spans=are_spans))
    return f"nothing to evaluate: {'; '.join(missing)}" if missing else None


def _missing(session: Session, hours: HourRange, *, are_spans: bool) -> Iterator[str]:
    materialized = PartitionStates(session)
    for table, (name, in_lines, in_spans) in NEEDS.items():
        if not materialized.of(table, hours):
            continue
        if session.latest_hour(table, hours) is None:
            yield f"{name}: {in_spans if are_spans else in_lines}"
        elif table == "session_scores" and not session.count(_evaluated(session, hours)):
            yield f"{name}: {NO_SIGNALS_OF_SPANS if are_spans else NO_SIGNALS}"


def _evaluated(session: Session, hours: HourRange) -> ir.Table:
    scores = session.hours_of("session_scores", hours)
    return scores.filter(scores.traces_evaluated > 0)
