"""The Agent Health State (source 3): operational status, calibration and decay of every agent.

Ratios are compared by their counts, in whole numbers, so that 19 of 20 is 0.95 and a tenth more is not more than a
tenth. Without executions in the window, ratios and latencies are null and the status is unknown; without executions
whose runtime is known, latencies are null and no verdict rests on them.
"""

from collections.abc import Mapping
from datetime import datetime
from types import MappingProxyType

import ibis
from ibis import ir

from health_assets.core.hours import HOUR, HourRange
from health_assets.core.targets import Targets
from health_assets.scoring.decimal_limits import whole_us
from health_assets.scoring.latency_buckets import bucket_of_us, latency_ms
from health_assets.scoring.relations import lookup
from health_assets.scoring.target_columns import listed_agents, with_targets_used
from health_assets.scoring.windows import ends_of_hours, window_lengths_s, window_sums
from health_assets.systems.agent_health_state.agent_changes import with_latest_changes

STATUSES = ("healthy", "degraded", "unhealthy", "unknown")
TRENDS = ("stable", "declining", "improving")
FEWEST_SAMPLES = 10
BASELINE_FACTOR = 3
OF_CHANGES = ("uptime_seconds", "days_since_model_change", "last_capability_update")
"""Columns that follow from changes, however long ago."""
COUNTS = ("executions", "successes", "failures", "untimed")


def agent_health_state(
    components: ir.Table,
    changes: ir.Table,
    latencies: ir.Table,
    targets: Targets,
    hours: HourRange,
    window_hours: int,
    lookback_hours: int,
    as_of: Mapping[datetime, datetime] = MappingProxyType({}),
) -> ir.Table:
    """One row per known, not retired agent and hour: all columns but those of the window and `last_healthy_at`.

    Args:
        components: `health_components` of `hours`, and of the look-back and two windows before their ends.
        changes: `agent_changes` up to the end of `hours`.
        latencies: `hour`, `agent_id`, `p50_bucket` and `p99_bucket` of the windows with executions.
        targets: expectations of each agent.
        hours: the hours to describe.
        window_hours: length W of the evaluation window.
        lookback_hours: how long an agent stays known after its last event.
        as_of: up to when the hours are known that run.
    """
    rows = _counts(components, targets, hours, window_hours, lookback_hours)
    rows = lookup(rows, latencies, ["hour", "agent_id"])
    rows = rows.mutate(
        measurement_window_seconds=window_lengths_s(rows.hour, window_hours, as_of).floor().cast("int64"),
        latency_p50_ms=latency_ms(rows.p50_bucket),
        latency_p99_ms=latency_ms(rows.p99_bucket),
    )
    described = _with_trend(_status(_ratios(rows))).mutate(window_end=ends_of_hours(rows.hour, as_of))
    return with_changes(described, changes, hours).drop("window_end")


def _counts(
    components: ir.Table, targets: Targets, hours: HourRange, window_hours: int, lookback_hours: int
) -> ir.Table:
    """Known agents, the counts of each window and of the window just before it, and the target."""
    own, before = _sums(components, listed_agents(targets), hours, window_hours, lookback_hours)
    own = with_targets_used(own, targets, ["baseline_latency_ms"])
    before = before.select(
        "agent_id", hour=before.hour + ibis.interval(hours=window_hours),
        samples_before="executions", successes_before="successes",
    )  # fmt: skip
    joined = lookup(own, before, ["hour", "agent_id"])
    return joined.mutate(
        samples_before=joined.samples_before.fill_null(0),
        successes_before=joined.successes_before.fill_null(0),
        latency_sample_count=joined.executions - joined.untimed,
    ).rename(sample_count="executions")


def _sums(
    components: ir.Table, listed: ir.Table, hours: HourRange, window_hours: int, lookback_hours: int
) -> tuple[ir.Table, ir.Table]:
    """Sums over the windows of these hours, and at least over those that end one window earlier."""
    start, end = hours.start - window_hours * HOUR, hours.end - window_hours * HOUR
    if len(hours) > 1:  # the earlier windows are mostly later windows of the same pass
        both = window_sums(components, listed, HourRange(start, hours.end), window_hours, lookback_hours, COUNTS)
        return both.filter(both.hour >= hours.start), both
    own = window_sums(components, listed, hours, window_hours, lookback_hours, COUNTS)
    return own, window_sums(components, listed, HourRange(start, end), window_hours, window_hours, COUNTS)


def _ratios(rows: ir.Table) -> ir.Table:
    """Source 3, section 4.4."""
    return rows.mutate(
        response_ratio=rows.successes / rows.sample_count.nullif(0),
        error_ratio=rows.failures / rows.sample_count.nullif(0),
        previous_response_ratio=rows.successes_before / rows.samples_before.nullif(0),
    )


def _status(rows: ir.Table) -> ir.Table:
    """Source 3, section 4.3; errors for the majority of requests are a ratio below one half."""
    status = ibis.cases(
        (rows.sample_count < FEWEST_SAMPLES, "unknown"),
        (rows.successes * 2 < rows.sample_count, "unhealthy"),
        (rows.successes * 20 < rows.sample_count * 19, "degraded"),
        (is_slow(rows.p99_bucket, rows.baseline_latency_ms).fill_null(False), "degraded"),
        else_="healthy",
    )
    return rows.mutate(status=status)


def is_slow(p99_bucket: ir.IntegerValue, baseline_latency_ms: ir.FloatingValue) -> ir.BooleanValue:
    """Whether a latency exceeds three times the baseline; null where either is not known.

    It does where its bucket lies above the bucket of that limit: never at exactly the limit or below it, and always
    from the bucket's width above it.
    """
    return p99_bucket > bucket_of_us(whole_us(BASELINE_FACTOR * baseline_latency_ms / 1e3))


def _with_trend(rows: ir.Table) -> ir.Table:
    """Source 3, section 4.5; a change of more than 0.10 is a trend."""
    # both sides of ratio - ratio before > 1/10, times both counts; without samples in either, 0 > 0
    change = 10 * (rows.successes * rows.samples_before - rows.successes_before * rows.sample_count)
    tenth = rows.sample_count * rows.samples_before
    trend = ibis.cases((change > tenth, "improving"), (-change > tenth, "declining"), else_="stable")
    return rows.mutate(calibration_trend=trend)


def with_changes(rows: ir.Table, changes: ir.Table, hours: HourRange) -> ir.Table:
    """Add what follows from changes (`OF_CHANGES`): source 3, sections 4.3 (uptime) and 4.5.

    Args:
        rows: one row per `hour` and `agent_id`, for these hours, with `window_end`.
        changes: `agent_changes` up to the end of these hours.
        hours: at least one hour.
    """
    known = with_latest_changes(rows, changes, hours)
    now = known.window_end
    return known.select(
        *rows.columns,
        uptime_seconds=_seconds(known.last_restart_at, now),
        days_since_model_change=_seconds(known.last_model_change_at, now) / 86_400,
        last_capability_update=known.last_capability_update_at,
    )


def _seconds(start: ir.TimestampValue, end: ir.TimestampValue) -> ir.FloatingValue:
    """The seconds from `start` to `end`, to the microsecond; null if there is no start."""
    return end.delta(start, unit="microsecond") / 1e6
