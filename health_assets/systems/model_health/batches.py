"""Batches of model health."""

import pandas as pd
from ibis import ir

from health_assets.quality.batches import Source, hours, rows, with_facts


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
    most = source.settings.model_window_calls
    by_model = (
        f"(SELECT hour, least(count(*), {int(most)}) AS calls FROM model_calls GROUP BY hour, model) AS calls_of_models"
    )
    frame = with_facts(hours(source), ["kept_calls"], source.by_hour("SELECT hour, count(*) FROM model_components"))
    return with_facts(frame, ["last_calls"], source.by_hour(f"SELECT hour, sum(calls)::BIGINT FROM {by_model}"))


def hours_of_models(source: Source) -> pd.DataFrame:
    """`hours`, with the models called in the hour, and those of them that have a row."""
    called = "SELECT hour, count(DISTINCT model) FROM model_components"
    frame = with_facts(hours(source), ["called_models"], source.by_hour(called))
    is_scored = "(hour, model) IN (SELECT hour, model FROM model_health)"
    return with_facts(frame, ["scored_models"], source.by_hour(called, is_scored))
