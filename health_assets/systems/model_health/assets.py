"""Model health (source 4): last calls, the rolling health of every model, and what a fallback might have avoided."""

from collections.abc import Mapping

import ibis
from ibis import ir

from health_assets.core.settings import Settings
from health_assets.pipeline.derived import Derived, Inputs, of_newest_hour
from health_assets.systems.model_health import FORMULA_VERSION
from health_assets.systems.model_health.model_fallback import fallback_components, known_scores, model_fallback
from health_assets.systems.model_health.model_health import model_components, model_health


def _last_calls(inputs: Inputs) -> ir.Table:
    return model_components(inputs.table("model_calls"), inputs.settings.model_window_calls)


def _models(inputs: Inputs) -> ir.Table:
    settings = inputs.settings
    rows = model_health(
        inputs.table("model_components", back_hours=settings.lookback_hours),
        inputs.table("model_calls", back_hours=settings.lookback_hours),
        inputs.hours,
        settings.lookback_hours,
        settings.model_window_calls,
        settings.model_degraded_threshold,
    )
    return inputs.with_as_of(rows)


def _known_hours(settings: Settings) -> int:
    """How many hours before an hour count for the scores known then: as many as are there for each of the window."""
    return min(settings.lookback_hours, settings.reach_hours - settings.window_hours)


def _replayed_calls(inputs: Inputs) -> ir.Table:
    settings, known_hours = inputs.settings, _known_hours(inputs.settings)
    components, calls = (inputs.table(name, back_hours=known_hours + 1) for name in ("model_components", "model_calls"))
    scores = known_scores(components, calls, inputs.hours, known_hours, settings.model_window_calls)
    return fallback_components(
        scores, inputs.table("model_calls"), settings.model_window_calls, settings.model_degraded_threshold
    )


def _fallbacks(inputs: Inputs) -> ir.Table:
    window_hours = inputs.settings.window_hours
    components = inputs.table("fallback_components", back_hours=window_hours)
    rows = model_fallback(components, inputs.hours, window_hours)
    return inputs.with_windows(rows, "fallback_components", window_hours)


def _failing_models(rows: ir.Table) -> ir.Table:
    counted = rows.group_by("model").aggregate(kept_calls=rows.count(), failures=rows.count(where=~rows.succeeded))
    return counted.order_by(counted.failures.desc(), "model")


def _worst_models(rows: ir.Table) -> ir.Table:
    latest = of_newest_hour(rows)
    return latest.order_by("health_score", "model").select(
        "hour",
        "model",
        "health_score",
        "success_count",
        "failure_count",
        "p50_latency_ms",
        "p95_latency_ms",
        "is_degraded",
        "last_error",
        "last_response_model",
    )


def _models_by_hour(rows: ir.Table) -> Mapping[str, ir.Value]:
    return {"mean health score": rows.health_score.mean(), "models degraded": rows.is_degraded.sum()}


def _most_failures(rows: ir.Table) -> ir.Table:
    summed = rows.group_by("model", "alternative").aggregate(calls=rows.calls.sum(), failures=rows.failures.sum())
    return summed.order_by(ibis.desc("failures"), "model", "alternative")


def _most_avoidable(rows: ir.Table) -> ir.Table:
    latest = of_newest_hour(rows)
    return latest.order_by(ibis.desc("failures"), "model", "alternative").select(
        "hour", "model", "alternative", "calls", "failures", "compared_failures", "avoided_failures_low",
        "avoided_failures_high", "added_failures_low", "added_failures_high",
    )  # fmt: skip


def _failures_by_hour(rows: ir.Table) -> Mapping[str, ir.Value]:
    return {"failures of degraded models": rows.failures.sum()}


ASSETS = (
    Derived(
        name="model_components",
        upstream=("model_calls",),
        rows=_last_calls,
        preview_title="models with most failures",
        preview_rows=_failing_models,
        blocked_by=("raw_logs",),
        empty_without="a call to a model",
        is_component=True,
        formula_version=FORMULA_VERSION,
    ),
    Derived(
        name="model_health",
        upstream=("model_components", "model_calls"),
        rows=_models,
        preview_title="worst models",
        preview_rows=_worst_models,
        empty_without="a call to a model in the look-back",
        back_hours=lambda settings: settings.lookback_hours,
        curves=_models_by_hour,
        formula_version=FORMULA_VERSION,
    ),
    Derived(
        name="fallback_components",
        upstream=("model_components", "model_calls"),
        rows=_replayed_calls,
        preview_title="degraded models with most failed calls",
        preview_rows=_most_failures,
        blocked_by=("raw_logs",),
        empty_without="a call to a model that was degraded before the hour",
        back_hours=lambda settings: _known_hours(settings) + 1,
        is_component=True,
        curves=_failures_by_hour,
        formula_version=FORMULA_VERSION,
    ),
    Derived(
        name="model_fallback",
        upstream=("fallback_components",),
        rows=_fallbacks,
        preview_title="failed calls that another model might have answered",
        preview_rows=_most_avoidable,
        empty_without="a call to a model that was degraded before its hour in the window",
        back_hours=lambda settings: settings.window_hours,
        curves=_failures_by_hour,
        formula_version=FORMULA_VERSION,
    ),
)
