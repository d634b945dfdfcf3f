"""The Agent Health Model (source 1): from window sums and targets to a score of 0 to 100 and a state.

Four dimensions between 0 and 1 are weighted 40, 20, 20 and 20. An agent without executions in the window is inactive:
its scores are null, never 0 and never 100.
"""

from collections.abc import Mapping
from datetime import datetime
from types import MappingProxyType

import ibis
from ibis import ir

from health_assets.core.hours import HourRange
from health_assets.core.targets import Targets
from health_assets.scoring.agent_health_weights import (
    FAILURE_SHARE,
    OPERATIONAL_POINTS,
    PERFORMANCE_POINTS,
    RELIABILITY_POINTS,
    SLA_SHARE,
    STABILITY_POINTS,
    SUCCESS_SHARE,
    TRIGGER_SHARE,
)
from health_assets.scoring.decimal_limits import to_9_decimals, whole_us
from health_assets.scoring.target_columns import listed_agents, with_targets_used
from health_assets.scoring.tested_parts import tested_parts
from health_assets.scoring.windows import window_lengths_s, window_sums
from health_assets.systems.agent_health_model.names import TARGETS_USED


def agent_health(
    components: ir.Table,
    targets: Targets,
    hours: HourRange,
    window_hours: int,
    lookback_hours: int,
    as_of: Mapping[datetime, datetime] = MappingProxyType({}),
) -> ir.Table:
    """One row per known, not retired agent and hour: every column of `agent_health` but those of the window.

    Args:
        components: hourly components, at least of `hours` and the look-back before them.
        targets: expectations of each agent.
        hours: the hours to score.
        window_hours: length W of the evaluation window.
        lookback_hours: how long an agent stays known after its last event.
        as_of: up to when the hours are known that run.
    """
    sums = window_sums(components, listed_agents(targets), hours, window_hours, lookback_hours)
    rows = with_targets_used(sums, targets, TARGETS_USED)
    if not as_of:
        return scored(rows, float(window_hours))
    lengths_h = window_lengths_s(rows.hour, window_hours, as_of) / 3600
    return scored(rows.mutate(window_length_h=lengths_h), "window_length_h").drop("window_length_h")


def scored(rows: ir.Table, hours: float | str) -> ir.Table:
    """The score and all that leads to it, of the sums and targets of each row.

    Args:
        rows: with `SUMS` of `scoring.health_components` and `TARGETS_USED`.
        hours: over how many hours the sums are, or the column that says so.
    """
    rows = _reliability(rows.rename(n="executions"), hours)
    return _health(_operational(_stability(_performance(rows))))


def _at_most_one(value: ir.NumericValue) -> ir.NumericValue:
    return ibis.least(value, ibis.literal(1.0))


def _where_active(rows: ir.Table, value: ir.Value) -> ir.Value:
    return (rows.n > 0).ifelse(value, ibis.null(value.type()))


def _reliability(rows: ir.Table, hours: float | str) -> ir.Table:
    """Source 1, "Reliability Score": success and failure scores at 0.7 and 0.3, blended towards 1 while n is small."""
    over_hours = rows[hours] if isinstance(hours, str) else hours
    rows = rows.mutate(asr=rows.successes / rows.n.nullif(0), afh=rows.failures / over_hours)
    rows = rows.mutate(
        success_score=_where_active(
            rows,
            (rows.expected_success_rate == 0).ifelse(
                1.0, _at_most_one(rows.asr / rows.expected_success_rate.nullif(0))
            ),
        ),
        failure_score=_where_active(
            rows, (rows.afh == 0).ifelse(1.0, _at_most_one(rows.expected_failures_per_hour / rows.afh.nullif(0)))
        ),
        confidence_factor=_at_most_one(rows.n / rows.n_full.cast("float64")),
    )
    rows = rows.mutate(reliability_raw=SUCCESS_SHARE * rows.success_score + FAILURE_SHARE * rows.failure_score)
    return rows.mutate(reliability_score=rows.confidence_factor * rows.reliability_raw + (1 - rows.confidence_factor))


def _performance(rows: ir.Table) -> ir.Table:
    """Source 1, "Performance Score": 1 within the expected runtime, 0 from `deviation_allowed` above it.

    Executions without a runtime have no share in the mean. Where there is no mean, nothing is lost, as where nothing is
    expected.
    """
    timed = (rows.n - rows.untimed).nullif(0)
    is_on_time = rows.runtime_us_sum <= whole_us(timed * rows.expected_runtime_s)
    rows = rows.mutate(ar_s=rows.runtime_us_sum / 1e6 / timed, is_on_time=is_on_time)
    rows = rows.mutate(deviation=(rows.ar_s - rows.expected_runtime_s) / rows.expected_runtime_s)
    penalty = _at_most_one(rows.deviation / rows.deviation_allowed)
    is_within = rows.deviation.isnull() | rows.is_on_time
    scored = rows.mutate(performance_score=_where_active(rows, is_within.ifelse(1.0, 1 - penalty)))
    return scored.drop("is_on_time")


def _stability(rows: ir.Table) -> ir.Table:
    """Source 1, "Stability Score": falls with the logarithm of the number of long-running executions."""
    share = (rows.long_running + 1.0).ln() / (rows.stability_threshold + 1.0).ln()
    return rows.mutate(stability_score=_where_active(rows, 1 - _at_most_one(share)))


def _operational(rows: ir.Table) -> ir.Table:
    """Source 1, "Operational Score": SLA breaches at 0.6 and failed triggers at 0.4."""
    rows = rows.mutate(
        sla_score=_where_active(rows, 1 - _at_most_one(rows.sla_breaches / rows.sla_breach_threshold)),
        trigger_score=_where_active(rows, 1 - _at_most_one(rows.trigger_failures / rows.trigger_failure_threshold)),
    )
    return rows.mutate(operational_score=SLA_SHARE * rows.sla_score + TRIGGER_SHARE * rows.trigger_score)


def _health(rows: ir.Table) -> ir.Table:
    """Source 1, "Final Health Score" and "Health States"; rounded, so that a score of exactly 85 is healthy."""
    score = (
        RELIABILITY_POINTS * rows.reliability_score
        + PERFORMANCE_POINTS * rows.performance_score
        + STABILITY_POINTS * rows.stability_score
        + OPERATIONAL_POINTS * rows.operational_score
    )
    rows = rows.mutate(health_score=to_9_decimals(score))
    state = ibis.cases(
        (rows.n == 0, "inactive"),
        (rows.health_score >= to_9_decimals(rows.healthy_at), "healthy"),
        (rows.health_score >= to_9_decimals(rows.degraded_at), "degraded"),
        else_="unhealthy",
    )
    return rows.mutate(
        state=state,
        is_provisional=(rows.n > 0) & (rows.n < rows.n_full),
        points_at_stake=_where_active(rows, _points_at_stake(rows)),
    )


def _points_at_stake(rows: ir.Table) -> ir.FloatingValue:
    """The points that something in the window tests; all others count in full, so the score is at least 100 less these.

    Rounded as the score is.
    """
    is_tested = tested_parts(rows)
    at_stake = (
        RELIABILITY_POINTS * rows.confidence_factor
        + _points_where(is_tested["performance"], PERFORMANCE_POINTS)
        + _points_where(is_tested["stability"], STABILITY_POINTS)
        + _points_where(is_tested["slas"], OPERATIONAL_POINTS * SLA_SHARE)
        + _points_where(is_tested["triggers"], OPERATIONAL_POINTS * TRIGGER_SHARE)
    )
    return to_9_decimals(at_stake)


def _points_where(is_tested: ir.BooleanValue, points: float) -> ir.FloatingValue:
    return is_tested.ifelse(float(points), 0.0)
