"""Batches of agent drift."""

import ibis
from ibis import ir

from health_assets.quality.batches import Source, rows
from health_assets.systems.agent_drift.names import BUCKETS, MEASURES, SUCCESS_RATE, TOOL, VOLUME_DROP, VOLUME_RISE


def drifts(source: Source) -> ir.Table:
    """Rows of `drift`, with how far each is beyond its limit where it drifts, and where its cause is told."""
    own = rows(source)
    is_higher = own.measure.isin([measure for measure in MEASURES if measure not in (SUCCESS_RATE, VOLUME_DROP)])
    beyond = is_higher.ifelse(own.value - own.limit_value, own.limit_value - own.value)
    is_share = ~own.measure.isin([VOLUME_DROP, VOLUME_RISE])
    return own.mutate(
        beyond_limit=own.is_drifting.ifelse(beyond, ibis.null("float64")),
        share=is_share.ifelse(own.value, ibis.null("float64")),
        baseline_share=is_share.ifelse(own.baseline, ibis.null("float64")),
        has_dimension=own.cause_dimension.notnull().cast("int64"),
        has_cause=own.cause.notnull().cast("int64"),
        has_hint=own.hint.notnull().cast("int64"),
        has_cause_share=(own.cause_share.notnull() | (own.cause_dimension == TOOL)).cast("int64"),
        has_threshold=own.threshold.notnull().cast("int64"),
        is_of_amount=own.measure.isin(list(BUCKETS)).cast("int64"),
    )
