"""Fallback replay: of the calls to a degraded model, how many its best alternative might have answered.

A model is degraded, and an alternative is healthy, by the calls before the hour alone. What the alternative would have
done with a call is not known: its own success rate in the same hour stands for it, as if all calls were alike.

Over the hours of a window it is weighed by the failed calls of each, f of n calls to the alternative. The interval is
of the number that succeeds: Wilson's, of as many calls as vary as much (L. Kish, *Survey Sampling*, 1965), those that
are replayed among them:

    effective_calls = (sum of f) ** 2 / (sum of (f ** 2 / n) + sum of f)
"""

import ibis
from ibis import ir

from health_assets.core.hours import HOUR, HourRange
from health_assets.logs.conventions import UNKNOWN_MODEL
from health_assets.scoring.relations import lookup
from health_assets.scoring.wilson import interval
from health_assets.scoring.window_merges import merged_windows
from health_assets.systems.model_health.model_health import window_calls_of
from health_assets.systems.model_health.names import NO_ALTERNATIVE

KEYS = ("model", "alternative")
_COUNTS = (
    "calls", "failures", "compared_calls", "compared_failures", "compared_alternative_calls",
    "compared_alternative_failures",
)  # fmt: skip
_ESTIMATES = ("avoided_failures", "failures_spread", "added_failures", "successes_spread")


def known_scores(
    components: ir.Table, model_calls: ir.Table, hours: HourRange, lookback_hours: int, window_calls: int
) -> ir.Table:
    """The score of each model by the calls before each of `hours`: `hour`, `model`, `health_score`, `known_calls`.

    Args:
        components: the last calls of the hours before `hours`, and of the look-back before them.
        model_calls: all calls of the same hours; read only where a part was built for a smaller window.
        hours: the hours.
        lookback_hours: length of the look-back, which ends with the hour before.
        window_calls: length of the rolling window.
    """
    before = HourRange(hours.start - HOUR, hours.end - HOUR)
    calls = window_calls_of(components, model_calls, before, lookback_hours, window_calls)
    scores = calls.group_by("hour", "model").aggregate(
        health_score=calls.count(where=calls.succeeded) / calls.count(), known_calls=calls.count()
    )
    return scores.filter(scores.model != UNKNOWN_MODEL).mutate(hour=scores.hour + ibis.interval(hours=1))


def fallback_components(
    scores: ir.Table, model_calls: ir.Table, window_calls: int, degraded_threshold: float
) -> ir.Table:
    """One row per hour and degraded model with a call: every column of `fallback_components`.

    Args:
        scores: `known_scores` of the hours.
        model_calls: all calls of the hours.
        window_calls: setting used for the scores.
        degraded_threshold: a model whose score is below it is degraded.
    """
    is_degraded = scores.health_score < degraded_threshold
    order = [ibis.desc("health_score"), ibis.desc("known_calls"), "model"]  # of equal scores, the one of most calls
    healthy = scores.filter(~is_degraded)
    healthy = healthy.mutate(place=ibis.row_number().over(group_by="hour", order_by=order))
    best = healthy.filter(healthy.place == 0).select(
        "hour", alternative="model", alternative_health_score="health_score"
    )
    counts = model_calls.group_by("hour", "model").aggregate(
        calls=model_calls.count(), failures=model_calls.count(where=model_calls.status == "failure")
    )
    of_alternatives = counts.rename(alternative="model", alternative_calls="calls", alternative_failures="failures")
    degraded = scores.filter(is_degraded).select("hour", "model", "health_score").inner_join(counts, ["hour", "model"])
    rows = lookup(lookup(degraded, best, "hour"), of_alternatives, ["hour", "alternative"])
    return rows.mutate(
        alternative=rows.alternative.fill_null(NO_ALTERNATIVE),
        alternative_calls=rows.alternative_calls.fill_null(0),
        alternative_failures=rows.alternative_failures.fill_null(0),
        window_calls=ibis.literal(window_calls, "int64"),
        degraded_threshold=ibis.literal(float(degraded_threshold)),
    )


def model_fallback(components: ir.Table, hours: HourRange, window_hours: int) -> ir.Table:
    """One row per hour, degraded model and alternative: every column of `model_fallback` but those of the window.

    Args:
        components: `fallback_components` of `hours` and the window before them.
        hours: the hours to give rows for.
        window_hours: length of the window.
    """
    windows = merged_windows(_with_estimates(components), KEYS, hours, window_hours, [*_COUNTS, *_ESTIMATES])
    windows = windows.mutate(compared_successes=windows.compared_calls - windows.compared_failures)
    return windows.mutate(
        **_with_ends(windows, "avoided_failures", windows.compared_failures, windows.failures_spread),
        **_with_ends(windows, "added_failures", windows.compared_successes, windows.successes_spread),
    ).drop("compared_successes", "failures_spread", "successes_spread")


def _with_estimates(components: ir.Table) -> ir.Table:
    """Counts and estimates of the hours in which the alternative was called, and null estimates of the others."""
    is_compared = components.alternative_calls > 0
    cases = components.alternative_calls.nullif(0).cast("float64")
    failure_share = components.alternative_failures / cases
    successes = components.calls - components.failures
    return components.mutate(
        compared_calls=is_compared.ifelse(components.calls, 0),
        compared_failures=is_compared.ifelse(components.failures, 0),
        compared_alternative_calls=components.alternative_calls,
        compared_alternative_failures=components.alternative_failures,
        avoided_failures=components.failures * (1 - failure_share),
        failures_spread=components.failures * components.failures / cases,
        added_failures=successes * failure_share,
        successes_spread=successes * successes / cases,
    )


def _with_ends(
    windows: ir.Table, name: str, calls: ir.IntegerValue, spread: ir.NumericValue
) -> dict[str, ir.NumericValue]:
    """The ends of an estimate's interval; null where it is.

    Args:
        windows: windows with the estimate.
        name: the estimate.
        calls: the calls that it is about.
        spread: the sum of the squares of the calls of each hour, each over the calls to the alternative.
    """
    estimate, calls = windows[name], calls.cast("float64")
    effective_calls = calls * calls / (spread + calls).nullif(0)
    ends = interval(estimate / calls.nullif(0) * effective_calls, effective_calls, lambda value: value.sqrt())
    low, high = (end.fill_null(0.0) * calls for end in ends)
    nothing = ibis.null("float64")
    return {
        f"{name}_low": estimate.notnull().ifelse(ibis.greatest(0.0, ibis.least(low, estimate)), nothing),
        f"{name}_high": estimate.notnull().ifelse(ibis.least(calls, ibis.greatest(high, estimate)), nothing),
    }
