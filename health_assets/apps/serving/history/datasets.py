"""The series that are copied: which rows of which tables, by which key a page looks them up, and which it lists.

What belongs here: expressions over the tables of an hour. What does not: files and threads.
"""

import hashlib
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import ibis
from ibis import ir

from health_assets.apps.serving import aggregates
from health_assets.apps.serving.history import row_visibility
from health_assets.apps.serving.history.copying_rules import Rules
from health_assets.apps.serving.history.row_visibility import mark_fallbacks, mark_models, mark_tools, name_agents
from health_assets.apps.serving.vocabulary import NOW_COUNTS
from health_assets.core.hours import HourRange
from health_assets.schema.catalog import columns_of
from health_assets.scoring.exact_sums import as_number, exact_sum
from health_assets.scoring.outcomes import NEGATIVE, POSITIVE
from health_assets.scoring.prices import COMPUTED
from health_assets.scoring.relations import first_line, lookup
from health_assets.scoring.usage import AMOUNTS, summed
from health_assets.systems.agent_health_model import claims, last_runs, severity_order
from health_assets.systems.agent_health_model.last_runs import with_last_runs
from health_assets.systems.agent_health_model.severity_order import with_now, with_verdict
from health_assets.systems.explanations import common_values
from health_assets.systems.session_scores.names import CALL_COUNTS
from health_assets.warehouse.ledger import ODD, UNREADABLE
from health_assets.warehouse.rejected_rows import OF_THE_LINE
from health_assets.warehouse.session import Session

Rows = Callable[[Session, HourRange], ir.Table]
More = Callable[[ir.Table, Session, HourRange, Rules], ir.Table]
OF_WINDOWS = ("window_start", "window_end", "as_of", "is_final")
_USAGE_OF_HOUR = ("executions", "successes", "input_tokens", "output_tokens", "cost_usd")
ERROR_CHARACTERS = 300
ERRORS_PER_HOUR = 20
"""Most errors of one agent that are kept of an hour, the most frequent ones; the others are one row without a text."""


@dataclass(frozen=True, kw_only=True)
class Series:
    """Rows of hours, copied when an hour of one of the sources changes.

    Args:
        name: its name, and that of its folder.
        key: the column by which it is looked up, never null; None where it is read as a whole.
        sources: the assets that it is made from; an hour that none of them has is not copied.
        rows: the rows of some hours, with `hour` among their columns.
        face: columns that lists of one hour show, kept by hour when the rest is put together by key; empty for none.
        more: adds the columns that settings or targets decide; None for none.
        decides: what of these changes the rows, as JSON can write it.
        repeats_lines: whether it repeats what single lines of logs say; then it goes where retention drops these.
    """

    name: str
    key: str | None
    sources: tuple[str, ...]
    rows: Rows
    face: tuple[str, ...] = ()
    more: More | None = None
    decides: Callable[[Rules], Any] = lambda _: None
    repeats_lines: bool = False


def _as_it_is(table: str) -> Rows:
    def rows(session: Session, hours: HourRange) -> ir.Table:
        return session.hours_of(table, hours).drop(*(name for name in OF_WINDOWS if name in columns_of(table)))

    return rows


def _of_agents(name: str, table: str) -> Series:
    """A table of agents as it is, all of which lists show."""
    face = tuple(column for column in columns_of(table) if column not in OF_WINDOWS)
    return Series(name=name, key="agent_id", sources=(table,), rows=_as_it_is(table), face=face)


def _agents(session: Session, hours: HourRange) -> ir.Table:
    """An agent a row: what it does now, its score, its document, its budget, and what happened in the hour itself."""
    scores = with_last_runs(session.hours_of("agent_health", hours), session, hours)
    scores = with_verdict(with_now(scores, session, hours)).drop(*OF_WINDOWS)
    states = session.hours_of("agent_health_state", hours).select(
        "hour", "agent_id", "status", "last_healthy_at", "uptime_seconds", "latency_p50_ms", "latency_p99_ms",
        "calibration_trend", "days_since_model_change", "last_capability_update", "baseline_latency_ms",
        "response_ratio", "error_ratio", "measurement_window_seconds", "sample_count",
    )  # fmt: skip
    budgets = session.hours_of("error_budget", hours).select(
        "hour", "agent_id", "allowed_failures", "budget_spent", "n_5m", "failures_5m", "burn_rate_5m", "n_30m",
        "failures_30m", "burn_rate_30m", "n_1h", "failures_1h", "burn_rate_1h", "n_6h", "failures_6h", "burn_rate_6h",
    )  # fmt: skip
    parts = session.hours_of("usage_components", hours)
    own = parts.group_by("hour", "agent_id").aggregate(
        **{f"hour_{name}": as_number(exact_sum(parts[name])) for name in _USAGE_OF_HOUR}
    )
    marks = session.hours_of("state_components", hours).select(
        "hour", "agent_id", "last_restart_at", "last_model_update_at", "last_capability_update_at",
        "last_model_switch_at", "last_model",
    )  # fmt: skip
    runs = session.hours_of("executions", hours)
    newest = runs.group_by("hour", "agent_id").aggregate(
        hour_version=runs.agent_version.argmax(runs.ended_at), hour_platform=runs.platform.argmax(runs.ended_at)
    )
    for other in (states, budgets, own, marks, newest):
        scores = lookup(scores, other, ["hour", "agent_id"])
    return scores


def _events(session: Session, hours: HourRange) -> ir.Table:
    """The events of the hour that weigh most, with the line of the raw log that told of each."""
    events = session.hours_of("evidence_components", hours)
    runs = session.hours_of("executions", hours)
    triggers = session.hours_of("trigger_events", hours)
    of_runs = runs.select(
        hour="hour", agent_id="agent_id", event_id="execution_id", happened_at="ended_at",
        source_file="source_file", line_number="line_number",
        error=runs.error.substr(0, ERROR_CHARACTERS), session_id="session_id", agent_version="agent_version",
        is_trigger=ibis.literal(False),
    )  # fmt: skip
    nothing = ibis.null("string")
    of_triggers = triggers.select(
        hour="hour", agent_id="agent_id", event_id="trigger_id", happened_at="fired_at",
        source_file="source_file", line_number="line_number",
        error=triggers.reason.substr(0, ERROR_CHARACTERS), session_id=nothing, agent_version=nothing,
        is_trigger=ibis.literal(True),
    )  # fmt: skip
    events = events.mutate(is_trigger=events.kind == "trigger_failure")
    keys = ["hour", "agent_id", "event_id", "happened_at", "is_trigger"]
    lines = ibis.union(of_runs, of_triggers).semi_join(events, keys)
    # several names in the logs may be one agent, and each of them may have an event of the id
    place = ibis.row_number().over(group_by=keys, order_by=["source_file", "line_number"])
    lines = lines.mutate(place=place)
    return lookup(events, lines.filter(lines.place == 0).drop("place"), keys).drop("is_trigger")


def _errors(session: Session, hours: HourRange) -> ir.Table:
    """Failed executions of the hour by version and first line of error; null where none is stated, or the rest.

    `last_run` is the latest of them.
    """
    runs = session.hours_of("executions", hours)
    failed = runs.filter(runs.status == "failure")
    line = first_line(failed.error).substr(0, ERROR_CHARACTERS)
    failed = failed.mutate(error_class=line)
    found = failed.group_by("hour", "agent_id", "agent_version", "error_class").aggregate(
        failures=failed.count(), last_at=failed.ended_at.max(), last_run=failed.execution_id.argmax(failed.ended_at)
    )
    order = [ibis.desc("failures"), ibis.desc("last_at")]
    placed = found.mutate(place=ibis.row_number().over(group_by=["hour", "agent_id"], order_by=order))
    named = placed.mutate(error_class=(placed.place < ERRORS_PER_HOUR).ifelse(placed.error_class, None))
    return named.group_by("hour", "agent_id", "agent_version", "error_class").aggregate(
        failures=named.failures.sum(), last_at=named.last_at.max(), last_run=named.last_run.argmax(named.last_at)
    )


def _causes(session: Session, hours: HourRange) -> ir.Table:
    """Common values of the runs of the hour, of agents that are failing or suspect."""
    runs, now = (session.hours_of(name, hours) for name in ("executions", "agent_now"))
    tools, models = (session.hours_of(name, hours.extended_back(1)) for name in ("tool_calls", "model_calls"))
    return common_values.common_values(runs, tools, models, now)


def _claims(session: Session, hours: HourRange) -> ir.Table:
    """Claims of the hour that evidence contradicts, each with the latest execution that makes it."""
    return claims.claims_of(session, hours)


def _runs(session: Session, hours: HourRange) -> ir.Table:
    """Executions of the hour by agent, version, model and platform."""
    runs = session.hours_of("executions", hours)
    return runs.group_by("hour", "agent_id", "agent_version", "model", "platform").aggregate(
        timed=runs.runtime_s.count(), runtime_s_sum=runs.runtime_s.sum(), **_usage_of(runs)
    )


def _drifts(session: Session, hours: HourRange) -> ir.Table:
    """Agents that drift, without what tells how many agents there are."""
    rows = _as_it_is("drift")(session, hours)
    return rows.filter(rows.is_drifting).drop("detectors", "is_drifting")


def _usage_by_hour(session: Session, hours: HourRange) -> ir.Table:
    """Executions of the hour by model, of all agents together: sums of weeks must not ask every agent."""
    runs = session.hours_of("executions", hours)
    return runs.group_by("hour", "model").aggregate(**_usage_of(runs))


def _usage_of(runs: ir.Table) -> dict[str, ir.Value]:
    """Counts executions and adds up their tokens and cost, as `usage_components` does."""
    return {
        "executions": runs.count(),
        "successes": runs.count(where=runs.succeeded),
        "executions_with_tokens": runs.count(where=runs.input_tokens.notnull() | runs.output_tokens.notnull()),
        "executions_with_cost": runs.cost_usd.count(),
        "executions_with_computed_cost": runs.count(where=runs.cost_source == COMPUTED),
        "positive_feedback": runs.count(where=runs.feedback == POSITIVE),
        "negative_feedback": runs.count(where=runs.feedback == NEGATIVE),
        **{name: summed(runs, name) for name in AMOUNTS},
    }


def _agent_sessions(session: Session, hours: HourRange) -> ir.Table:
    """The session scores of the hour by the agent that ran the session."""
    scores = session.hours_of("session_scores", hours)
    return scores.filter(scores.agent_id.notnull()).select(
        "hour", "agent_id", "session_id", "total_traces", "traces_evaluated", "agent_reliability", "reliability_band",
        "consistency_traces_evaluated", "agent_consistency", "consistency_band", "runs", "failures",
        flagged=scores.flagged_traces.length(),
    )  # fmt: skip


FLAGGED_NAMED = 20


def _sessions(session: Session, hours: HourRange) -> ir.Table:
    """Sessions of the hour, with the number of flagged traces and the names of the worst of them."""
    scores = session.hours_of("session_scores", hours)
    flagged = scores.flagged_traces
    return scores.mutate(flagged=flagged.length(), flagged_traces=flagged[:FLAGGED_NAMED])


FAILED_PROBES = ("invalid", "http_error", "timeout", "unreachable", "refused", "private")
"""Outcomes of probes that found no valid document."""


def _survey(session: Session, hours: HourRange) -> ir.Table:
    """A platform a row, with how many of its agents gave no document, by outcome; null for all platforms together."""
    summary = session.hours_of("survey_summary", hours)
    probes = session.hours_of("agent_probes", hours)
    outcomes = probes.group_by("hour", "platform").aggregate(
        **{outcome: probes.count(where=probes.outcome == outcome) for outcome in FAILED_PROBES}
    )
    return lookup(summary, outcomes, ["hour", "platform"])


REJECTED_SAMPLES = 3
SAMPLE_CHARACTERS = 500
REASONS_PER_HOUR = 40
"""Most reasons that are kept apart of an hour, the most frequent ones; a hostile log may have one a line."""
OTHER_REASONS = "other reasons"


def _rejected(session: Session, hours: HourRange) -> ir.Table:
    """Rejected lines of the hour by reason, with the first few of them; `detail` is the reason of the single line."""
    rejected = session.hours_of("rejected_records", hours)
    rejected = rejected.mutate(
        detail=rejected.reason.substr(0, SAMPLE_CHARACTERS),
        reason=rejected.reason.re_replace(OF_THE_LINE, "").substr(0, ERROR_CHARACTERS),
    )
    counts = rejected.group_by("hour", "reason").aggregate(of_reason=rejected.lines.sum())
    order = [ibis.desc("of_reason"), counts.reason]
    ranks = counts.mutate(rank=ibis.row_number().over(group_by="hour", order_by=order)).drop("of_reason")
    ranked = lookup(rejected, ranks, ["hour", "reason"])
    named = ranked.mutate(reason=(ranked["rank"] < REASONS_PER_HOUR).ifelse(ranked.reason, OTHER_REASONS))
    # engines add whole numbers up to decimals, which JSON has no way to write
    by_reason = named.group_by("hour", "reason").aggregate(lines=named.lines.cast("float64").sum().cast("int64"))
    places = ibis.row_number().over(group_by=["hour", "reason"], order_by=[named.source_file, named.line_number])
    placed = named.mutate(place=places)
    first = placed.filter(placed.place < REJECTED_SAMPLES)
    samples = first.select(
        "hour", "reason", "place", "source_file", "line_number", "detail", raw=first.raw.substr(0, SAMPLE_CHARACTERS)
    )
    return lookup(samples, by_reason, ["hour", "reason"])


SERIES: tuple[Series, ...] = (
    Series(
        name="agents",
        key="agent_id",
        sources=(
            "agent_health", "agent_now", "agent_health_state", "error_budget", "usage_components", "state_components",
        ),
        rows=_agents,
        face=(
            "hour", "agent_id", "now", "now_since", *NOW_COUNTS, "points_at_stake", "state",
            "is_provisional", "health_score", "urgency", "n", "n_full", "failures",
            "status", "budget_spent", "burn_rate_1h", "burn_rate_6h", "latency_p50_ms", "latency_p99_ms",
            "expected_runtime_s",
            "hour_platform", "hour_version",
        ),
    ),
    Series(name="causes", key="agent_id", sources=("agent_now", "executions"), rows=_causes),
    Series(
        name="claims",
        key="agent_id",
        sources=("agent_health", "executions", "tool_calls", "model_calls"),
        rows=_claims,
        repeats_lines=True,
    ),
    Series(name="events", key="agent_id", sources=("evidence_components",), rows=_events, repeats_lines=True),
    Series(name="errors", key="agent_id", sources=("executions",), rows=_errors, repeats_lines=True),
    Series(
        name="runs",
        key="agent_id",
        sources=("executions",),
        rows=_runs,
        face=(
            "hour", "agent_id", "agent_version", "model", "platform", "executions", "successes", "input_tokens",
            "output_tokens", "cache_read_tokens", "cache_creation_tokens", "reasoning_tokens", "cost_usd",
            "executions_with_cost", "executions_with_computed_cost", "executions_with_tokens", "positive_feedback",
            "negative_feedback",
        ),
    ),
    Series(
        name="tools",
        key="agent_id",
        sources=("tool_health",),
        rows=_as_it_is("tool_health"),
        face=(
            "hour", "agent_id", "tool", "calls", "failures", "failure_share", "failure_share_at_least",
            "p50_latency_ms", "p95_latency_ms", "last_error", "last_error_at", "is_public", "rules",
        ),
        more=mark_tools,
        decides=lambda rules: [rules.fingerprint, rules.settings.window_hours],
    ),
    _of_agents("releases", "release_comparison"),
    Series(name="drifts", key="agent_id", sources=("drift",), rows=_drifts),
    _of_agents("usage", "agent_usage"),
    _of_agents("usage_breakdown", "usage_breakdown"),
    Series(
        name="sessions",
        key="session_id",
        sources=("session_scores",),
        rows=_sessions,
        face=(
            "hour", "session_id", "agent_id", "total_traces", "traces_evaluated", "agent_reliability",
            "agent_consistency", "consistency_traces_evaluated", "reliability_passed", "consistency_passed",
            "reliability_band", "consistency_band", "max_risk", "flagged", "other_agents", "runs", "failures",
            "cancelled_runs", "first_started_at", "last_ended_at", "input_tokens", "output_tokens", "cost_usd",
            "cost_source", *CALL_COUNTS, "last_error", "last_error_at",
        ),
        more=name_agents,
        decides=lambda rules: [rules.has_owners, rules.settings.lookback_hours],
    ),
    Series(
        name="agent_sessions",
        key="agent_id",
        sources=("session_scores",),
        rows=_agent_sessions,
        more=name_agents,
        decides=lambda rules: [rules.has_owners, rules.settings.lookback_hours],
    ),
    _of_agents("reliability", "agent_reliability"),
    _of_agents("tasks", "task_consistency"),
    Series(name="fleet", key=None, sources=("system_health",), rows=_as_it_is("system_health")),
    Series(name="usage_by_hour", key=None, sources=("executions",), rows=_usage_by_hour),
    Series(
        name="models",
        key=None,
        sources=("model_health",),
        rows=_as_it_is("model_health"),
        more=mark_models,
        decides=lambda rules: [rules.fingerprint, rules.settings.lookback_hours],
    ),
    Series(
        name="fallbacks",
        key=None,
        sources=("model_fallback",),
        rows=_as_it_is("model_fallback"),
        more=mark_fallbacks,
        decides=lambda rules: [rules.fingerprint, rules.settings.window_hours, rules.settings.lookback_hours],
    ),
    Series(
        name="survey", key=None, sources=("survey_summary", "agent_probes"), rows=_survey
    ),
    Series(name="rejected", key=None, sources=("rejected_records",), rows=_rejected, repeats_lines=True),
)  # fmt: skip


def _since(table: str) -> Callable[[Session, HourRange], ir.Table]:
    return lambda session, hours: session.hours_of(table, hours)


def _file_notes(session: Session, _: HourRange) -> ir.Table:
    """Notes on raw logs, by `kind`: `unreadable` tells why not read, `odd` what is odd, `counted` how many records."""
    notes = session.table("raw_file_notes")
    is_unreadable, is_odd = notes.note.startswith(UNREADABLE), notes.note.startswith(ODD)
    kind = ibis.cases((is_unreadable, "unreadable"), (is_odd, "odd"), else_="counted")
    text = ibis.cases(
        (is_unreadable, notes.note.substr(len(UNREADABLE))), (is_odd, notes.note.substr(len(ODD))), else_=notes.note
    )
    return notes.select("source_file", "records", note=text, kind=kind)


WHOLE: dict[str, Callable[[Session, HourRange], ir.Table]] = {
    "checks": _since("expectation_results"),
    "materialized": _since("partition_states"),
    "incidents": lambda session, _: session.table("alerts"),
    "deliveries": lambda session, _: session.table("alert_deliveries"),
    "silences": lambda session, _: session.table("alert_silences"),
    "files": lambda session, _: session.table("raw_files"),
    "file_notes": _file_notes,
}
"""Small tables that are copied as they are where anything in them has changed."""

DIGESTED = {"checks": "expectation_results", "materialized": "partition_states"}
"""The series with rows of every hour, with the tables of the warehouse: these are compared there."""

_DECLARING = (
    __file__,
    row_visibility.__file__,
    aggregates.__file__,
    severity_order.__file__,
    claims.__file__,
    last_runs.__file__,
    common_values.__file__,
)
COPY = hashlib.sha256(b"".join(Path(path).read_bytes() for path in _DECLARING)).hexdigest()[:12]
"""Changes with what is copied, which makes every hour stale."""
