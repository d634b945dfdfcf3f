"""Batches of model health."""

import ibis
import pandas as pd
from ibis import _, ir

from health_assets.quality.batches import Source, hours, rows, with_fact, with_facts


def scored_models(source: Source) -> ir.Table:
    """Rows of `model_health`, with the calls in the window, and whether they are and should be called degraded."""
    own = rows(source)
    return own.mutate(
        calls=own.success_count + own.failure_count,
        called_degraded=own.is_degraded.cast("int64"),
        below_threshold=(own.health_score < own.degraded_threshold).cast("int64"),
    )


def hours_of_last_calls(source: Source) -> pd.DataFrame:
    """`hours`, with the calls that `model_components` has, and those that it should have of all calls."""
    calls = source.session.hours_of("model_calls", source.hours)
    most = source.settings.model_window_calls
    by_model = calls.group_by("hour", "model").aggregate(calls=ibis.least(calls.count(), most))
    frame = with_fact(hours(source), "kept_calls", source.counts("model_components"))
    return with_facts(frame, ["last_calls"], source.facts(by_model, _.calls.sum()))


def hours_of_models(source: Source) -> pd.DataFrame:
    """`hours`, with the models called in the hour, and those of them that have a row."""
    called, scored = (source.session.hours_of(name, source.hours) for name in ("model_components", "model_health"))
    frame = with_facts(hours(source), ["called_models"], source.facts(called, _.model.nunique()))
    called_and_scored = called.semi_join(scored, ["hour", "model"])
    return with_facts(frame, ["scored_models"], source.facts(called_and_scored, _.model.nunique()))
