"""Model health's block: every model called lately, from the worst on, and the best one."""

from rich.console import Console
from rich.text import Text

from health_assets.core.hours import HourRange
from health_assets.core.terminal import printable
from health_assets.core.wording import counted
from health_assets.pipeline.layout import latest_hour, plain_table
from health_assets.warehouse.session import Session

MODELS_SHOWN = 10
ERROR_WIDTH = 40


def print_block(console: Console, session: Session, hours: HourRange) -> None:
    """The models in the last of these hours that has any, from the worst on."""
    latest = latest_hour(session, "model_health", hours)
    if latest is None:
        return
    found = session.query(
        """
        SELECT model, health_score, success_count + failure_count, p50_latency_ms, p95_latency_ms, is_degraded,
            last_error, window_calls
        FROM model_health WHERE hour = ? ORDER BY health_score, model
        """,
        [latest],
    )
    best = max(found, key=lambda row: row[1])
    degraded = sum(row[5] for row in found)
    title = Text(f"Models at {latest:%Y-%m-%d %H:%M} UTC: ", style="bold")
    title.append(f"{counted(len(found), 'model')}, last {found[0][7]:,} calls of each: ")
    title.append(f"{degraded:,} degraded", style="red" if degraded else "green")
    title.append("  best: ")
    title.append(printable(best[0]), style="green")
    console.print()
    console.print(title)
    table = plain_table()
    table.add_column("model", no_wrap=True, max_width=28)
    for heading in ("score", "calls", "p50 ms", "p95 ms"):
        table.add_column(heading, justify="right", no_wrap=True)
    table.add_column("", no_wrap=True)
    table.add_column("last error", no_wrap=True, max_width=ERROR_WIDTH)
    for model, score, calls, p50_ms, p95_ms, is_degraded, error, _ in found[:MODELS_SHOWN]:
        table.add_row(
            Text(printable(model)), Text(f"{score:.2f}", style="red" if is_degraded else ""), f"{calls:,}", _ms(p50_ms),
            _ms(p95_ms), Text("degraded" if is_degraded else "", style="red"),
            Text(printable(" ".join((error or "").split()))),
        )  # fmt: skip
    console.print(table)
    if len(found) > MODELS_SHOWN:
        console.print(f"the worst {MODELS_SHOWN} of {len(found):,} models; all are in the table model_health")


def _ms(latency_ms: float | None) -> str:
    return "–" if latency_ms is None else f"{latency_ms:,.0f}"
