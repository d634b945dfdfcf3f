"""Model health's block: every model called lately from the worst on, the best one, and what a fallback might avoid."""

from typing import Any

import ibis
from ibis import ir
from rich.console import Console
from rich.table import Table
from rich.text import Text

from health_assets.core.console import plain_table
from health_assets.core.formatting import counted
from health_assets.core.hours import HourRange
from health_assets.core.terminal import printable
from health_assets.systems.model_health.model_fallback import KEYS
from health_assets.systems.model_health.texts import CAVEAT, fallback_text
from health_assets.warehouse.session import Session

MODELS_SHOWN = 10
ERROR_WIDTH = 40
SHOWN = (
    "model", "health_score", "p50_latency_ms", "p95_latency_ms", "is_degraded", "last_error", "window_calls",
    "last_response_model", "previous_response_model", "response_model_changed_at",
)  # fmt: skip


def print_block(console: Console, session: Session, hours: HourRange) -> None:
    """The models in the last of these hours that has any, from the worst on."""
    latest = session.latest_hour("model_health", hours)
    if latest is None:
        return
    models = session.dicts(_from_the_worst_on(session.hours_of("model_health", HourRange.of(latest))))
    best = max(models, key=lambda model: model["health_score"])
    degraded = sum(model["is_degraded"] for model in models)
    title = Text(f"Models at {latest:%Y-%m-%d %H:%M} UTC: ", style="bold")
    title.append(f"{counted(len(models), 'model')}, last {models[0]['window_calls']:,} calls of each: ")
    title.append(f"{degraded:,} degraded", style="red" if degraded else "green")
    title.append("  best: ")
    title.append(printable(best["model"]), style="green")
    console.print()
    console.print(title)
    console.print(_table(models[:MODELS_SHOWN]))
    if len(models) > MODELS_SHOWN:
        console.print(f"the worst {MODELS_SHOWN} of {len(models):,} models; all are in the table model_health")
    for model in models:
        if model["previous_response_model"] is not None:
            console.print(Text(printable(_change(model))))
    _print_fallbacks(console, session, HourRange.of(latest))


def _print_fallbacks(console: Console, session: Session, hour: HourRange) -> None:
    rows = session.hours_of("model_fallback", hour)
    rows = rows.filter(rows.failures > 0).order_by(ibis.desc("failures"), "model", "alternative").limit(MODELS_SHOWN)
    found = session.dicts(rows)
    for row in found:
        shown = row | {name: printable(row[name]) for name in KEYS}
        console.print(Text(f"{shown['model']} while degraded: {fallback_text(shown)}"))
    if found:
        console.print(Text(CAVEAT, style="dim"))


def _from_the_worst_on(models: ir.Table) -> ir.Table:
    calls = models.success_count + models.failure_count
    return models.order_by("health_score", "model").select(*SHOWN, calls=calls)


def _table(models: list[dict[str, Any]]) -> Table:
    table = plain_table()
    table.add_column("model", no_wrap=True, max_width=28)
    for heading in ("score", "calls", "p50 ms", "p95 ms"):
        table.add_column(heading, justify="right", no_wrap=True)
    table.add_column("", no_wrap=True)
    table.add_column("last error", no_wrap=True, max_width=ERROR_WIDTH)
    for model in models:
        is_degraded = model["is_degraded"]
        table.add_row(
            Text(printable(model["model"])), Text(f"{model['health_score']:.2f}", style="red" if is_degraded else ""),
            f"{model['calls']:,}", _ms(model["p50_latency_ms"]), _ms(model["p95_latency_ms"]),
            Text("degraded" if is_degraded else "", style="red"),
            Text(printable(" ".join((model["last_error"] or "").split()))),
        )  # fmt: skip
    return table


def _change(model: dict[str, Any]) -> str:
    at = model["response_model_changed_at"]
    since = "" if at is None else f" since {at:%Y-%m-%d %H:%M} UTC"
    before, now = model["previous_response_model"], model["last_response_model"]
    return f"{model['model']}: answered by {now}{since}, by {before} before"


def _ms(latency_ms: float | None) -> str:
    return "–" if latency_ms is None else f"{latency_ms:,.0f}"
