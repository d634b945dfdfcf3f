"""The page of models: how well each answers right now, by its last calls (source 4).

What belongs here: models of one hour, their scores over the last days, and what a fallback might have avoided. What
does not: tools (`tools_page`).

A model's health is measured over the agents of all teams, so a caller whose view is limited to some sees a sentence in
place of numbers, as the API says it.
"""

from typing import Any

from health_assets.apps.serving.auth import NO_AGGREGATES
from health_assets.apps.serving.pages.page import Page
from health_assets.apps.serving.pages.scoped_history import ScopedHistory
from health_assets.model_tracker import best_of
from health_assets.systems.model_health.texts import CAVEAT

CURVE_DAYS = 7
CURVES = ("stability", "unhealthy", "operation", "degraded", "score")
"""Colours of the curves; so many models are drawn."""
FALLBACKS = 20
"""Most pairs of a degraded model and its alternative that are listed."""
LISTED = (
    "model", "health_score", "is_degraded", "success_count", "failure_count", "p50_latency_ms", "p95_latency_ms",
    "last_call_at", "window_calls", "degraded_threshold", "last_response_model", "previous_response_model",
    "response_model_changed_at",
)  # fmt: skip


def models_page(look: ScopedHistory) -> Page:
    """All models at one hour."""
    data: dict[str, Any] = {
        "hour": look.hour,
        "why_none": None,
        "best": None,
        "shows_errors": look.view.shows_texts,
        "drawn": [],
        "curve": [],
        "models": [],
        "fallbacks": [],
    }
    if not look.sees_all:
        return _page({**data, "why_none": f"{NO_AGGREGATES[0].upper()}{NO_AGGREGATES[1:]}."})
    columns = (*LISTED, "last_error") if look.view.shows_texts else LISTED
    rows = look.at("models").to_pylist()
    models = [{name: row[name] for name in columns} | {"calls": _calls(row)} for row in rows]
    models.sort(key=lambda one: (not one["is_degraded"], one["health_score"], one["model"]))
    drawn = [one["model"] for one in models[: len(CURVES)]]
    return _page(
        {
            **data,
            "best": _best(models),
            "drawn": drawn,
            "curve": _curve(look, drawn),
            "models": models,
            "fallbacks": _fallbacks(look),
        }
    )


def _page(data: dict[str, Any]) -> Page:
    curves = [(f"m{place}", name, CURVES[place]) for place, name in enumerate(data["drawn"])]
    shown = {"curves": curves, "caveat": CAVEAT}
    return Page(name="models", title="Models", data=data, listing="models", shown=shown)


def _calls(model: dict[str, Any]) -> int:
    return model["success_count"] + model["failure_count"]


def _best(models: list[dict[str, Any]]) -> str | None:
    """The model to fall back to: the highest score; of equal ones that which rests on most calls."""
    if not models:
        return None
    in_order = sorted(models, key=lambda one: (-one["calls"], one["model"]))
    return best_of({one["model"]: one["health_score"] for one in models}, [one["model"] for one in in_order])


def _fallbacks(look: ScopedHistory) -> list[dict[str, Any]]:
    """The rows of `model_fallback` with a failed call, most failed ones first."""
    rows = [row for row in look.at("fallbacks").to_pylist() if row["failures"]]
    return sorted(rows, key=lambda row: (-row["failures"], row["model"], row["alternative"]))[:FALLBACKS]


def _curve(look: ScopedHistory, drawn: list[str]) -> list[dict[str, Any]]:
    """The scores of some models hour by hour, under `m0`, `m1`, …; null where one has none that may be shown."""
    places = {name: f"m{place}" for place, name in enumerate(drawn)}
    scores: dict[Any, dict[str, float]] = {}
    rows = look.between("models", look.back(CURVE_DAYS))
    if not rows.num_rows:
        return []
    for row in rows.select(["hour", "model", "health_score"]).to_pylist():
        if row["model"] in places:
            scores.setdefault(row["hour"], {})[places[row["model"]]] = row["health_score"]
    nothing = dict.fromkeys(places.values())
    return [
        {"hour": hour, **nothing, **scores.get(hour, {})}
        for hour in look.back(CURVE_DAYS)
        if scores and hour >= min(scores)
    ]
