"""Expectations of `raw_logs` and the record tables."""

from collections.abc import Sequence

from health_assets.core.judges import KINDS
from health_assets.quality import batches as common
from health_assets.quality import record_batches as batches
from health_assets.quality.check_names import FEW_LINES_ARE_REJECTED, MOST_REJECTED_SHARE
from health_assets.quality.every_table import OF_EVERY_TABLE
from health_assets.quality.expectations import (
    Check,
    HoursMaker,
    RowsMaker,
    Suite,
    at_least,
    between,
    equal,
    greater,
    one_of,
    unique,
)

OF_EVERY_RECORD_TABLE = (
    *OF_EVERY_TABLE,
    Check(name="every_line_is_a_row", expectations=equal("rows_kept", "lines_kept"), batch="hours"),
)


def _record_suite(
    asset: str, event_time: str, checks: Sequence[Check] = (), *, key: str | None = None,
    hours: HoursMaker = batches.hours_of_records,
) -> Suite:  # fmt: skip
    within = Check(
        name="times_are_within_their_hour",
        expectations=[*at_least(event_time, "hour"), *greater("next_hour", event_time)],
    )
    own = [*OF_EVERY_RECORD_TABLE, within, *checks]
    made: dict[str, RowsMaker] = {"rows": common.rows}
    if key:
        own += [
            Check(name=f"{key}_is_unique_within_the_hour", expectations=unique("hour", key, *_tells_apart(key))),
            Check(
                name=f"{key}_is_in_one_hour_only",
                expectations=between(0, 1, "hours_with_id"),
                severity="warn",
                batch="ids_in_several_hours",
            ),
            Check(
                name="no_id_belongs_to_two_agents",
                expectations=between(0, 1, "agents_with_id"),
                severity="warn",
                batch="ids_of_several_agents",
            ),
        ]
        made |= {
            "ids_in_several_hours": batches.ids_in_several_hours,
            "ids_of_several_agents": batches.ids_of_several_agents,
        }
    return Suite(asset=asset, checks=own, rows=made, hours=hours, searches=frozenset(made) - {"rows"})


def _tells_apart(key: str) -> list[str]:
    """Columns that tell records of one id apart: agents number theirs independently, and some calls name no agent."""
    return ["agent_id", "agent_id_reported", *(["execution_id"] if key == "call_id" else [])]


SIGNAL_COLUMNS = ("signal_confidence", "signal_loop_detection", "signal_tool_correctness", "signal_coherence")

RAW_LOGS = Suite(
    asset="raw_logs",
    checks=[
        *OF_EVERY_TABLE,
        Check(name="every_line_is_accounted_for", expectations=equal("lines_counted", "lines_read"), batch="files"),
        Check(
            name="few_lines_of_a_file_are_rejected",
            expectations=between(0, MOST_REJECTED_SHARE, "rejected_share"),
            severity="warn",
            batch="files",
        ),
        Check(
            name="counts_are_possible",
            expectations=between(0, None, "lines"),
        ),
    ],
    rows={"rows": common.rows, "files": batches.files},
)

EXECUTIONS = _record_suite(
    "executions",
    "ended_at",
    [
        Check(
            name="executions_end_after_they_start",
            expectations=[*at_least("ended_at", "started_at"), *between(0, None, "runtime_s")],
        ),
        Check(
            name="statuses_are_known",
            expectations=[
                *one_of("status", "success", "failure"),
                *one_of("condition", "baseline", "fault", "structural", "prompt"),
            ],
        ),
        Check(name="shares_are_between_0_and_1", expectations=between(0, 1, "confidence", *SIGNAL_COLUMNS)),
        Check(
            name="resources_are_not_negative",
            expectations=between(
                0,
                None,
                "sla_s",
                "cost_usd",
                "api_calls",
                "error_count",
                "call_latency_s",
                "action_count",
                "input_tokens",
                "output_tokens",
            ),
        ),
        Check(
            name="no_failure_is_replaced",
            expectations=between(None, 0, "replaced_failures"),
            severity="warn",
            batch="hours",
        ),
    ],
    key="execution_id",
    hours=batches.hours_of_executions,
)

TRIGGER_EVENTS = _record_suite(
    "trigger_events",
    "fired_at",
    [Check(name="statuses_are_known", expectations=one_of("status", "fired", "failed"))],
    key="trigger_id",
)

MODEL_CALLS = _record_suite(
    "model_calls",
    "ended_at",
    [
        Check(name="statuses_are_known", expectations=one_of("status", "success", "failure")),
        Check(name="latencies_are_not_negative", expectations=between(0, None, "latency_ms")),
        Check(
            name="amounts_are_not_negative", expectations=between(0, None, "input_tokens", "output_tokens", "cost_usd")
        ),
    ],
    key="call_id",
)

TOOL_CALLS = _record_suite(
    "tool_calls",
    "ended_at",
    [
        Check(name="statuses_are_known", expectations=one_of("status", "success", "failure")),
        Check(name="latencies_are_not_negative", expectations=between(0, None, "latency_ms")),
    ],
    key="call_id",
)

SIGNALS = _record_suite(
    "signals", "given_at", [Check(name="shares_are_between_0_and_1", expectations=between(0, 1, *SIGNAL_COLUMNS))]
)

JUDGEMENTS = _record_suite(
    "judgements",
    "judged_at",
    [
        Check(
            name="judges_are_known", expectations=[*one_of("judged_by", *KINDS), *one_of("judged_by_reported", *KINDS)]
        ),
        Check(
            name="judges_may_speak_for_whom_they_say",
            expectations=equal("judged_by", "judged_by_reported"),
            severity="warn",
        ),
    ],
)

AGENT_UPDATES = _record_suite(
    "agent_updates",
    "updated_at",
    [Check(name="kinds_are_known", expectations=one_of("kind", "restart", "model_change", "capability_update"))],
)

SPANS = _record_suite(
    "spans",
    "ended_at",
    [
        Check(name="spans_end_after_they_start", expectations=at_least("ended_at", "started_at")),
        Check(name="kinds_are_known", expectations=[*one_of("kind", "agent", "workflow", "chat", "tool", "other")]),
        Check(
            name="amounts_are_not_negative", expectations=between(0, None, "input_tokens", "output_tokens", "cost_usd")
        ),
    ],
)

REJECTED_RECORDS = Suite(
    asset="rejected_records",
    checks=[
        *OF_EVERY_RECORD_TABLE,
        Check(
            name=FEW_LINES_ARE_REJECTED,
            expectations=between(0, MOST_REJECTED_SHARE, "rejected_share"),
            severity="warn",
            batch="hours",
        ),
    ],
    rows={"rows": common.rows},
    hours=batches.hours_of_rejections,
)

SUITES = (
    RAW_LOGS, SPANS, EXECUTIONS, TRIGGER_EVENTS, MODEL_CALLS, TOOL_CALLS, SIGNALS, JUDGEMENTS, AGENT_UPDATES,
    REJECTED_RECORDS,
)  # fmt: skip
