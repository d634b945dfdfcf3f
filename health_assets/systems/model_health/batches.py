"""Batches of model health."""

import ibis
import pandas as pd
from ibis import _, ir

from health_assets.quality.batches import Source, hours, rows, with_fact, with_facts
from health_assets.systems.model_health.names import NO_ALTERNATIVE


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


def replayed_calls(source: Source) -> ir.Table:
    """Rows of `fallback_components`, with whether an alternative and its score are there."""
    own = rows(source)
    return own.mutate(
        has_alternative=(own.alternative != NO_ALTERNATIVE).cast("int64"),
        has_alternative_score=own.alternative_health_score.notnull().cast("int64"),
    )


def hours_of_replayed_calls(source: Source) -> pd.DataFrame:
    """`hours`, with calls and failures of their models by the components and by the records."""
    parts, calls = (source.session.hours_of(name, source.hours) for name in ("fallback_components", "model_calls"))
    sums = source.facts(parts, _.calls.sum(), _.failures.sum())
    frame = with_facts(hours(source), ["calls_in_parts", "failures_in_parts"], sums)
    recorded = source.facts(calls.semi_join(parts, ["hour", "model"]), _.count(), _.count(where=_.status == "failure"))
    return with_facts(frame, ["calls_recorded", "failures_recorded"], recorded)


def fallbacks(source: Source) -> ir.Table:
    """Rows of `model_fallback`, with which estimates and ends are there, and which should be."""
    own = rows(source)
    ends = (own[f"{name}_failures{end}"] for name in ("avoided", "added") for end in ("", "_low", "_high"))
    return own.mutate(
        compared_successes=own.compared_calls - own.compared_failures,
        estimates=sum((end.notnull().cast("int64") for end in ends), ibis.literal(0)),
        estimates_due=(own.compared_calls > 0).ifelse(6, 0),
    )


def hours_of_fallbacks(source: Source) -> pd.DataFrame:
    """`hours`, with the failures of all windows, and those of the hours that the windows are made of."""
    length = source.settings.window_hours
    span = source.hours.extended_back(length - 1)
    by_hour = source.facts("fallback_components", _.failures.sum(), hours=span)
    counts = [by_hour.get(hour, (0,))[0] for hour in span]
    of_hours = [sum(counts[place : place + length]) for place in range(len(source.hours))]
    frame = hours(source).assign(failures_of_hours=of_hours)
    return with_facts(frame, ["failures_in_windows"], source.facts("model_fallback", _.failures.sum()))
