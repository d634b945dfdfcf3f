"""Batches of the Agent Health State."""

import ibis
import pandas as pd
from ibis import _, ir

from health_assets.quality.batches import Source, hours, hours_with_windows, rows, with_fact, with_facts
from health_assets.systems.agent_health_state.agent_health_state import FEWEST_SAMPLES

RATIOS, LATENCIES = ("response_ratio", "error_ratio"), ("latency_p50_ms", "latency_p99_ms")


def parts_of_states(source: Source) -> ir.Table:
    """Rows of `state_components`, with extremes and order of their buckets, and which model columns are there."""
    own = rows(source)
    buckets = own.latency_buckets
    return own.mutate(
        least_bucket=buckets.mins(),
        greatest_bucket=buckets.maxs(),
        has_buckets=buckets.notnull().cast("int64"),
        has_ascending_buckets=(buckets == buckets.sort()).fill_null(False).cast("int64"),
        has_first_model=own.first_model.notnull().cast("int64"),
        has_last_model=own.last_model.notnull().cast("int64"),
        has_first_model_at=own.first_model_at.notnull().cast("int64"),
        has_model_switch=own.last_model_switch_at.notnull().cast("int64"),
    )


def changes(source: Source) -> ir.Table:
    """Rows of `agent_changes`, with the number of facts that each tells."""
    own = rows(source)
    facts = ("last_restart_at", "last_model_update_at", "last_capability_update_at", "first_model_at")
    return own.mutate(facts=sum((own[name].notnull().cast("int64") for name in facts), ibis.literal(0)))


def states(source: Source) -> ir.Table:
    """Rows of `agent_health_state`, with what their samples and statuses say that the other columns must be."""
    own = rows(source)
    has_ratio = own.status.cases(
        ("healthy", own.response_ratio >= 0.95),
        ("degraded", own.response_ratio >= 0.5),
        ("unhealthy", own.response_ratio < 0.5),
        else_=True,
    )
    is_healthy_now = (own.last_healthy_at == own.window_end).fill_null(False)
    return own.mutate(
        sum_of_ratios=own.response_ratio + own.error_ratio,
        measures=sum((own[name].notnull().cast("int64") for name in (*RATIOS, *LATENCIES)), ibis.literal(0)),
        measures_due=(own.sample_count > 0).ifelse(len(RATIOS), 0)
        + (own.latency_sample_count > 0).ifelse(len(LATENCIES), 0),
        is_unknown=(own.status == "unknown").cast("int64"),
        has_few_samples=(own.sample_count < FEWEST_SAMPLES).cast("int64"),
        has_ratio_of_status=has_ratio.fill_null(False).cast("int64"),
        is_healthy=(own.status == "healthy").cast("int64"),
        was_healthy_last_now=is_healthy_now.cast("int64"),
        window_hours=ibis.literal(source.settings.window_hours),
    )


def hours_of_parts_of_states(source: Source) -> pd.DataFrame:
    """`hours`, with the latencies that the parts hold and the executions with a runtime, which they were made from."""
    latencies = source.facts("state_components", _.latency_buckets.length().sum().fill_null(0))
    frame = with_facts(hours(source), ["latencies"], latencies)
    return with_facts(frame, ["timed_executions"], source.facts("executions", _.runtime_s.count()))


def hours_of_states(source: Source) -> pd.DataFrame:
    """Facts as those of `hours_of_windows`, with the number of agents that the hours' two kinds of components know."""
    frame = hours_with_windows(source, "sample_count")
    for name, table in (("agents_with_parts", "state_components"), ("agents_with_components", "health_components")):
        frame = with_fact(frame, name, source.counts(table))
    return frame
