"""Model health (source 4): each hour's last calls, and the rolling health of every model."""

from collections.abc import Mapping

from ibis import ir

from health_assets.pipeline.derived import Derived, Inputs, of_newest_hour
from health_assets.systems.model_health import FORMULA_VERSION
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
)
